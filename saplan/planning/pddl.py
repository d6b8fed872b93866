"""A planning problem as numeric PDDL, for other planners to read, and their plans as changes.

Attributes on a line become numeric fluents, labels become predicates. A position on a circle is a numeric fluent whose
changes wrap around by a conditional effect, so that an action of a plan is always one change. Preconditions are the
problem's needs, and that no value leaves its space. The mean stands for a change that varies; a comment has the spread.
"""

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from jaxtyping import Float, Int

from saplan.algebra import CircleRow, LabelRow, LineRow
from saplan.errors import InputError
from saplan.planning.problem import BEYOND, Problem

REQUIREMENTS = ":strips :numeric-fluents :conditional-effects :disjunctive-preconditions :action-costs"
NAMED = 3
"""Attributes that the name of an action lists, at most."""
ACTION = re.compile(r"c(\d+)(?:-.*)?")


class Names:
    """PDDL names of attributes, labels and changes: lower case, distinct."""

    def __init__(self, problem: Problem) -> None:
        """Every name keeps what PDDL allows of the original."""
        taken = {"total-cost", "object", "and", "or", "not", "when", "increase", "decrease", "assign"}
        self.fluents = [_distinct(name, taken) for name in problem.space.names]
        self.labels = [
            [_distinct(f"{fluent}-{block.format(v)}", taken) for v in range(row.size)]
            if isinstance(row, LabelRow)
            else []
            for fluent, block, row in zip(self.fluents, problem.space.blocks, problem.rows, strict=True)
        ]
        self.actions = [self._action(problem, j) for j in range(len(problem.costs))]

    def _action(self, problem: Problem, j: int) -> str:
        """`c` and the number of a change, and what it does where that is short."""
        changed = np.flatnonzero(problem.changes[j])
        parts = [f"{self.fluents[i]}-{_words(problem, i, problem.changes[j, i])}" for i in map(int, changed)]
        return "-".join([f"c{j}", *(parts if len(parts) <= NAMED else [])])


def write_domain(problem: Problem, name: str, about: Sequence[str] = (), notes: Sequence[str] = ()) -> str:
    """The domain: fluents, and one action for every change that may be used.

    `about` becomes comments at the top, and `notes`, one for each change, comments of the actions.
    """
    names = Names(problem)
    predicates = [f"({label})" for labels in names.labels for label in labels]
    numbers = [f"({names.fluents[i]})" for i in _numeric(problem)]
    actions = [_action(problem, names, j, notes[j] if notes else "") for j in map(int, np.flatnonzero(problem.usable))]
    blocks = [f"{names.fluents[i]}: {block.symbol}" for i, block in enumerate(problem.space.blocks)]
    lines = [
        *_comments(about),
        f"(define (domain {_distinct(name, set())})",
        f"  (:requirements {REQUIREMENTS})",
        *(f"  {line}" for line in _comments(blocks)),
        *([f"  (:predicates {' '.join(predicates)})"] if predicates else []),
        f"  (:functions {' '.join([*numbers, '(total-cost)'])})",
        *actions,
        ")",
    ]
    return "\n".join(lines) + "\n"


def write_problem(problem: Problem, name: str, about: Sequence[str] = ()) -> str:
    """The start and the goal; the metric is the total cost."""
    names, start = Names(problem), problem.start
    init = [f"(= ({names.fluents[i]}) {_number(start[i])})" for i in _numeric(problem)]
    init += [f"({labels[int(start[i])]})" for i, labels in enumerate(names.labels) if labels]
    goal = [condition for i in range(len(start)) for condition in _goal(problem, names, i)]
    domain = _distinct(name, set())
    lines = [
        *_comments(about),
        f"(define (problem {domain}-problem)",
        f"  (:domain {domain})",
        f"  (:init {' '.join([*init, '(= (total-cost) 0)'])})",
        f"  (:goal {_all_of(goal)})",
        "  (:metric minimize (total-cost)))",
    ]
    return "\n".join(lines) + "\n"


def read_actions(actions: Iterable[str]) -> Int[np.ndarray, "n"]:
    """The changes of a plan, given the names of its actions."""
    found = []
    for action in actions:
        match = ACTION.fullmatch(action.strip().strip("()").lower())
        if match is None:
            raise InputError(f"{action!r} is not an action of an exported domain")
        found.append(int(match[1]))
    return np.array(found, np.int64)


def follow(problem: Problem, transitions: Int[np.ndarray, "n"]) -> Float[np.ndarray, "m K"]:
    """ρ before and after every change, start and end included."""
    path = [np.asarray(problem.start, float)]
    for change in transitions:
        path.append(problem.repeat(path[-1][None], np.array([change]))[0])
    return np.array(path)


def _numeric(problem: Problem) -> list[int]:
    """Attributes that are numeric fluents; those that never restrict a plan are left out."""
    return [i for i, row in enumerate(problem.rows) if isinstance(row, LineRow | CircleRow)]


def _action(problem: Problem, names: Names, j: int, note: str) -> str:
    """One change as an action."""
    before = [condition for i in range(problem.space.size) for condition in _conditions(problem, names, j, i)]
    effects = [effect for i in np.flatnonzero(problem.changes[j]) for effect in _effects(problem, names, j, int(i))]
    spread = [f"{names.fluents[i]} ±{problem.width[j, i]:.3g}" for i in np.flatnonzero(problem.width[j])]
    said = [problem.space.format_delta(problem.deltas[j]), *([f"spread {', '.join(spread)}"] if spread else []), note]
    lines = [
        f"  (:action {names.actions[j]}",
        *(f"    {line}" for line in _comments([". ".join(part for part in said if part)])),
        "    :parameters ()",
        f"    :precondition {_all_of(before)}",
        f"    :effect (and {' '.join([*effects, f'(increase (total-cost) {_number(problem.costs[j])})'])}))",
    ]
    return "\n".join(lines)


def _conditions(problem: Problem, names: Names, j: int, i: int) -> list[str]:
    """What a change needs of one attribute."""
    row, delta, needs = problem.rows[i], problem.changes[j, i], problem.needs
    fluent, allowed = f"({names.fluents[i]})", problem.allowed(j, i)
    if isinstance(row, LineRow):
        low, high = (-np.inf, np.inf) if needs is None else (needs.low[j, i], needs.high[j, i])
        low = max(low, row.low - delta) if delta < 0 and row.low > -BEYOND else low
        high = min(high, row.high - delta) if delta > 0 and row.high < BEYOND else high
        return _between(fluent, low, high)
    if isinstance(row, LabelRow):
        starts = {v for v, _ in row.moves(delta)}
        return _one_of(starts if allowed is None else starts & allowed, row.size, lambda v: f"({names.labels[i][v]})")
    if isinstance(row, CircleRow) and allowed is not None:
        return _one_of(allowed, row.size, lambda v: f"(= {fluent} {v})")
    return []


def _effects(problem: Problem, names: Names, j: int, i: int) -> list[str]:
    """What a change does to one attribute."""
    row, delta, fluent = problem.rows[i], problem.changes[j, i], f"({names.fluents[i]})"
    if isinstance(row, LabelRow):
        start, end = next(iter(row.moves(delta)))
        labels = names.labels[i]
        return [f"(not ({labels[start]}))", f"({labels[end]})"] if start != end else []
    if isinstance(row, CircleRow):
        if problem.is_dial(i):  # one effect per position: planners are led better by these than by comparisons
            allowed = problem.allowed(j, i)
            moves = [(v, w) for v, w in row.moves(delta) if allowed is None or v in allowed]
            if len(moves) == 1:
                return [f"(assign {fluent} {moves[0][1]})"]
            return [f"(when (= {fluent} {v}) (assign {fluent} {w}))" for v, w in moves]
        turn, wraps = _number(delta % row.size), _number(row.size - delta % row.size)
        return [
            f"(when (< {fluent} {wraps}) (increase {fluent} {turn}))",
            f"(when (>= {fluent} {wraps}) (decrease {fluent} {wraps}))",
        ]
    return [f"({'increase' if delta > 0 else 'decrease'} {fluent} {_number(abs(delta))})"]


def _goal(problem: Problem, names: Names, i: int) -> list[str]:
    """What the goal asks of one attribute."""
    row, fluent = problem.rows[i], f"({names.fluents[i]})"
    if row is None:
        return []
    if isinstance(row, LineRow):
        asked = np.isfinite([problem.low[i], problem.high[i]])
        low, high = problem.bounds[0][i], problem.bounds[1][i]
        return _between(fluent, low if asked[0] else -np.inf, high if asked[1] else np.inf)
    if isinstance(row, LabelRow):
        return _one_of(problem.ends_at(i), row.size, lambda v: f"({names.labels[i][v]})")
    return _one_of(problem.ends_at(i), row.size, lambda v: f"(= {fluent} {v})")


def _all_of(conditions: list[str]) -> str:
    return f"(and {' '.join(conditions)})" if conditions else "(and)"


def _between(fluent: str, low: float, high: float) -> list[str]:
    if low == high:
        return [f"(= {fluent} {_number(low)})"]
    found = [f"(>= {fluent} {_number(low)})"] if np.isfinite(low) else []
    return found + ([f"(<= {fluent} {_number(high)})"] if np.isfinite(high) else [])


def _one_of(values: Iterable[int], size: int, condition: Callable[[int], str]) -> list[str]:
    """A condition that holds at some of `size` values; nothing where it holds at all."""
    chosen = sorted(values)
    if len(chosen) == size:
        return []
    found = [condition(v) for v in chosen]
    return found if len(found) == 1 else [f"(or {' '.join(found)})"]


def _words(problem: Problem, i: int, delta: float) -> str:
    """A change of one attribute as a part of a name."""
    row = problem.rows[i]
    if isinstance(row, LabelRow):
        start, end = next(iter(row.moves(delta)), (0, 0))
        block = problem.space.blocks[i]
        return _plain(f"{block.format(start)}-to-{block.format(end)}")
    return f"{'plus' if delta > 0 else 'minus'}-{_plain(f'{abs(delta):.4g}')}"


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-_")


def _distinct(text: str, taken: set[str]) -> str:
    """A PDDL name close to a text that is not taken yet; takes it."""
    name = _plain(text)
    name = name if name[:1].isalpha() else f"x-{name}".rstrip("-")
    fresh = next(c for c in [name, *(f"{name}-{k}" for k in range(2, len(taken) + 3))] if c not in taken)
    taken.add(fresh)
    return fresh


def _number(value: float) -> str:
    """A number without an exponent, which PDDL does not know."""
    return f"{value:.6f}".rstrip("0").rstrip(".") if value != round(value) else str(round(value))


def _comments(lines: Iterable[str]) -> list[str]:
    return [f"; {part}" for line in lines for part in line.splitlines()]
