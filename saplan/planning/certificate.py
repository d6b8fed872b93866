"""Why a goal is unreachable, in words, before any search: what counts of changes can and cannot add up to.

A ρ on any path is the start plus Σ n_j δρ_j with counts n_j that are not negative. Linear programs over the counts give
the most and the least of every attribute. Anything that they rule out is unreachable; anything that they allow may
still be. `proof` finds the certificate behind the words, and `proof_checker` checks it.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

from saplan.algebra import Categorical
from saplan.algebra.real import Continuous
from saplan.games import Game
from saplan.goals import Goal, format_goal
from saplan.planning.equation import build_equation
from saplan.planning.problem import Problem
from saplan.planning.proof import find_certificate
from saplan.planning.proof_checker import PARITY, Modular, RowName, Weighted, Weights, exact_rows

SLACK = 1e-6
NAMED = 3
"""Attributes that a sentence lists, at most."""

Range = tuple[float, float]


def rules_problem(game: Game[Any], rho: Float[np.ndarray, "K"], goal: Goal | None = None) -> Problem | None:
    """The problem that a game's rules pose; None where changes are not named, or vary in size as quantities do."""
    changes = [delta for _, delta in game.admissible()]
    if not changes or game.space.frames or any(isinstance(block, Continuous) for block in game.space.blocks):
        return None
    free = np.full(game.space.size, np.inf)
    low, high = (-free, free) if goal is None else (np.asarray(goal.low, float), np.asarray(goal.high, float))
    return Problem(game.space, np.asarray(rho, float), low, high, np.array(changes, float), np.ones(len(changes)))


class Arithmetic:
    """What each attribute can become by the rules of a game, from one ρ on."""

    def __init__(self, game: Game[Any], rho: Float[np.ndarray, "K"]) -> None:
        """Nothing is ruled out where the changes are not known."""
        self.problem = rules_problem(game, rho)

    def span(self, k: int) -> Range:
        """The least and the most that an attribute can become."""
        return (-np.inf, np.inf) if self.problem is None else span(self.problem, k)


def span(problem: Problem, k: int) -> Range:
    """The least and the most that an attribute on a line can become, the goal left aside."""
    if not problem.is_line(k):
        return -np.inf, np.inf
    least, most = (_extreme(problem, k, sign)[0] for sign in (1.0, -1.0))
    return float(np.round(problem.start[k] + least, 4)), float(np.round(problem.start[k] - most, 4))


def _extreme(problem: Problem, k: int, sign: float) -> tuple[float, Float[np.ndarray, "K"]]:
    """The least of sign times what counts add to an attribute, and the price of every attribute at that point."""
    free = np.full(problem.space.size, np.inf)
    equation = build_equation(replace(problem, low=-free, high=free))
    program = equation.from_start(problem.start)
    adds = sign * problem.changes[:, k] - problem.width[:, k]
    program.cost = [*np.where(problem.usable, adds, 0.0), *[0.0] * (len(program.cost) - len(adds))]
    found, prices = program.relax(), np.zeros(problem.space.size)
    if found.status != 0:
        return -np.inf, prices
    for attribute, price in zip(equation.attributes, found.row_duals, strict=True):
        prices[attribute] += abs(price) if attribute >= 0 else 0.0
    return float(found.fun), prices


def why_not(
    game: Game[Any], rho: Float[np.ndarray, "K"], goal: Goal, path: Sequence[Float[np.ndarray, "K"]] = ()
) -> str | None:
    """Why a goal is unreachable by the rules, in a sentence; None where arithmetic does not rule it out.

    `path` holds the changes of a path to the goal, if one is known. No program is solved if the rules list them all:
    the path itself is a solution.
    """
    problem = rules_problem(game, rho, goal)
    if problem is None:
        return game.rules_out(goal)
    listed = all(np.any(np.all(problem.deltas == change, axis=1)) for change in path)
    return None if len(path) and listed else unreachable_because(problem)


def unreachable_because(problem: Problem) -> str | None:
    """Why the goal of a problem is unreachable, in a sentence; None where no proof of that was found."""
    space, (low, high) = problem.space, problem.bounds
    for k, (name, block) in enumerate(zip(space.names, space.blocks, strict=True)):
        if not (np.isfinite(problem.low[k]) or np.isfinite(problem.high[k])) or not problem.is_line(k):
            continue
        least, most = span(problem, k)
        if low[k] > most + SLACK:
            limit = block.format(np.floor(most + SLACK) if problem.rows[k].whole else most)  # type: ignore[union-attr]
            return f"{name} can become at most {limit} from here: {_why_no_more(problem, k)}"
        if high[k] < least - SLACK:
            limit = block.format(np.ceil(least - SLACK) if problem.rows[k].whole else least)  # type: ignore[union-attr]
            return f"{name} can become no less than {limit} from here: {_why_no_less(problem, k)}"
    certificate = find_certificate(problem)
    if certificate is None:
        return None
    goal = format_goal(space, Goal(np.asarray(problem.low, np.float32), np.asarray(problem.high, np.float32)))
    if certificate.reason is None:
        return f"no change that can be made from here leads to {goal}"
    words = ""
    changes = [int(j) for j in np.flatnonzero(certificate.reach.enabled)]
    if isinstance(certificate.reason, Weighted):
        words = _weighted_words(problem, certificate.reason.weights, changes)
    elif isinstance(certificate.reason, Modular):
        words = _modular_words(problem, certificate.reason.weights, changes)
    return f"each part of {goal} is possible by itself, but not all at once" + (f": {words}" if words else "")


def _why_no_more(problem: Problem, k: int) -> str:
    """What runs out before an attribute can rise further."""
    name, (_, prices) = problem.space.names[k], _extreme(problem, k, -1.0)
    makers = np.flatnonzero(problem.usable & (problem.changes[:, k] > 0))
    if not len(makers):
        return f"no change makes {name}"
    used = [np.flatnonzero((problem.changes[j] < 0) & (prices > SLACK)) for j in makers]
    scarce = sorted({int(i) for row in used for i in row} - {k})
    if not scarce or len(scarce) > NAMED or not all(len(row) for row in used):
        return f"every change that makes {name} uses up others, of which too few are left"
    left = [(problem.space.names[i], problem.space.blocks[i].format(float(problem.start[i]))) for i in scarce]
    if len(left) == 1:
        return f"no change makes {name} without using up {left[0][0]}, of which {left[0][1]} are left"
    return f"every change that makes {name} uses up " + " or ".join(f"{other} ({n} left)" for other, n in left)


def _why_no_less(problem: Problem, k: int) -> str:
    name = problem.space.names[k]
    if not np.any(problem.usable & (problem.changes[:, k] < 0)):
        return f"no change uses up {name}"
    return f"every change that uses up {name} needs others, of which too few are left"


def _weighted_words(problem: Problem, weights: Weights, changes: list[int]) -> str:
    """Weights under which no change raises a sum, as a sentence about that sum."""
    rows = exact_rows(problem, changes)
    whole = math.lcm(*(weight.denominator for _, weight in weights))
    weights = tuple((name, weight * whole) for name, weight in weights)
    sign = 1 if sum(weight for _, weight in weights) > 0 else -1
    ends = [rows[name].low if weight > 0 else rows[name].high for name, weight in weights]
    needs: Fraction | int = sum(weight * end for (_, weight), end in zip(weights, ends, strict=True) if end is not None)
    now: Fraction | int = sum(weight * rows[name].value for name, weight in weights)
    verb, limit = ("raises", "at least") if sign > 0 else ("lowers", "at most")
    total = _sum_words(problem, tuple((name, sign * weight) for name, weight in weights))
    now, needs = sign * now, sign * needs
    return f"no change {verb} {total}, which is {_number(now)} now, and the goal needs {limit} {_number(needs)}"


def _modular_words(problem: Problem, weights: Weights, changes: list[int]) -> str:
    """Weights under which every change adds a whole number, as a sentence about remainders."""
    rows = exact_rows(problem, changes)
    modulus = math.lcm(*(weight.denominator for _, weight in weights))
    scaled = tuple((name, weight * modulus) for name, weight in weights)
    now = sum(weight * rows[name].value for name, weight in scaled) % modulus
    needs = sum(weight * (rows[name].low or 0) for name, weight in scaled) % modulus
    total = _sum_words(problem, scaled)
    return f"every change keeps {total} the same modulo {modulus}; it is {now} now, and the goal needs {needs}"


def _sum_words(problem: Problem, weights: Weights) -> str:
    """A weighted sum of attributes, such as `2·red + green - blue`."""
    text = ""
    for name, weight in weights:
        term = ("" if abs(weight) == 1 else f"{_number(abs(weight))}·") + _row_words(problem, name)
        sign = "-" if weight < 0 else "+"
        text += f" {sign} {term}" if text else f"{sign if sign == '-' else ''}{term}"
    return text


def _row_words(problem: Problem, name: RowName) -> str:
    attribute, label = name
    block = problem.space.blocks[attribute]
    shown = problem.space.names[attribute]
    if label <= PARITY:
        return f"[parity of {shown}]"
    return f"[{shown}={block.labels[label]}]" if isinstance(block, Categorical) and label >= 0 else shown


def _number(value: Fraction | int) -> str:
    return f"{float(value):.10g}"
