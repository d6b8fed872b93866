"""The cheapest counts of changes that add up to a goal; `ordering` puts them in order.

The equation is solved with landmark rows, which add what changes need but do not use up, and without the counts that
are known to have no order. Where all changes turn dials of one prime size, elimination solves it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from saplan.planning.equation import Equation, build_equation
from saplan.planning.integer_program import CLOSE, DEFAULT_LIMITS, Answer, Limits, Program, Status
from saplan.planning.landmarks import add_landmarks, enabled_changes
from saplan.planning.modular import solve_modular
from saplan.planning.problem import Problem

SPARE = 16.0
"""Changes of the highest cost that a plan may make beyond half as much again as the linear relaxation."""
ROUNDS = 4
"""Costs that are assumed, one after the other."""
CHEAPEST = 1e-6
"""Changes that cost less are not bounded by what a cost pays for."""
BRANCHES = 200
"""Cases that are distinguished to prove that no counts exist."""


@dataclass(frozen=True)
class Cut:
    """Counts that no order makes feasible: a plan uses one of `changes` more often than `counts` does."""

    counts: Int[np.ndarray, "C"]
    changes: tuple[int, ...]


@dataclass(frozen=True)
class Solution:
    """Counts of changes that add up to the goal, or the reason why there are none."""

    status: Status
    counts: Int[np.ndarray, "C"]
    cost: float = np.inf
    bound: float = -np.inf
    """No plan costs less."""
    nodes: int = 0
    """Nodes of branch and bound."""

    @property
    def found(self) -> bool:
        """Whether there are counts."""
        return self.status in (Status.OPTIMAL, Status.FEASIBLE)


def solve(problem: Problem, cuts: Sequence[Cut] = (), limits: Limits = DEFAULT_LIMITS) -> Solution:
    """The cheapest counts of changes that add up to the goal, satisfy the landmarks and lie beyond all cuts."""
    nothing = np.zeros(len(problem.costs), np.int64)
    if not np.all(problem.inside(np.asarray(problem.start, float)[None])):
        return Solution(Status.INFEASIBLE, nothing, bound=np.inf)
    if problem.reached(np.asarray(problem.start, float)[None])[0]:
        return Solution(Status.OPTIMAL, nothing, 0.0, 0.0)
    reach = enabled_changes(problem)
    if not reach.goal:
        return Solution(Status.INFEASIBLE, nothing, bound=np.inf)
    if not cuts and (modular := solve_modular(problem, reach.enabled)) is not None:
        counts = np.rint(modular.values).astype(np.int64)
        return Solution(modular.status, counts, modular.cost, modular.bound)
    equation = build_equation(problem, reach.enabled)
    base = equation.from_start(problem.start)
    if cuts:
        base.high = [0.0 if high == 0 else np.inf for high in base.high]
        for cut in cuts:
            _add_cut(base, cut)
    answer = _solve_bounded(equation, base, limits)
    counts = np.rint(answer.values[: len(nothing)]).astype(np.int64)
    return Solution(answer.status, counts, answer.cost, answer.bound, answer.nodes)


def _add_cut(program: Program, cut: Cut) -> None:
    """At least one of the changes is made more often than in the counts that were cut off."""
    more = [program.column(high=1.0) for _ in cut.changes]
    for change, column in zip(cut.changes, more, strict=True):
        program.row([change, column], [1.0, -float(cut.counts[change] + 1)], 0.0, np.inf)
    program.row(more, [1.0] * len(more), 1.0, np.inf)


def _solve_bounded(equation: Equation, base: Program, limits: Limits) -> Answer:
    """Solves for all plans up to a cost that is assumed, and assumes more until there is one.

    A cost pays for each change only so many times. These bounds on counts make landmark rows possible, and the solver a
    hundred times faster. A solution within the assumed cost is as good as any; so is none, if the proof succeeds.
    """
    problem, relaxed = equation.problem, base.relax()
    costs, changes = np.asarray(problem.costs, float), len(problem.costs)
    nothing = np.zeros(len(base.cost))
    if relaxed.status == 2:
        return Answer(Status.INFEASIBLE, nothing, np.inf, np.inf)
    if relaxed.status != 0:
        return base.solve(limits)
    assumed = 1.5 * relaxed.fun + SPARE * np.max(costs[problem.usable], initial=0.0)
    for _ in range(ROUNDS):
        most = np.minimum(base.high[:changes], np.floor(assumed / np.maximum(costs, CHEAPEST) + CLOSE))
        answer = _with_landmarks(equation, base, most).solve(limits)
        if answer.status is Status.BOUND:
            return replace(answer, bound=min(max(answer.bound, relaxed.fun), assumed))
        if answer.status is not Status.INFEASIBLE and answer.cost <= assumed:
            free = np.any(problem.usable & (costs < CHEAPEST))
            return replace(answer, status=Status.FEASIBLE, bound=relaxed.fun) if free else answer
        assumed = 8 * assumed if answer.status is Status.INFEASIBLE else answer.cost
    status = Status.INFEASIBLE if _ruled_out(equation, base, limits) else Status.BOUND
    return Answer(status, nothing, np.inf, np.inf if status is Status.INFEASIBLE else relaxed.fun)


def _with_landmarks(equation: Equation, base: Program, most: Float[np.ndarray, "C"]) -> Program:
    """The program with landmark rows, given the greatest count of every change."""
    program = base.copy()
    program.high[: len(most)] = most.tolist()
    for link in add_landmarks(program, equation.problem, equation.dials):
        program.row([link.column, link.indicator], [1.0, -float(most[link.change])], -np.inf, 0.0)
    return program


def _ruled_out(equation: Equation, base: Program, limits: Limits) -> bool:
    """Whether no counts satisfy the rows, however large: branches on "a linked count is 0" or "its indicator is 1"."""
    program = base.copy()
    links = add_landmarks(program, equation.problem, equation.dials)
    stack, tried = [(program, links)], 0
    while stack:
        program, links = stack.pop()
        tried += 1
        found = program.relax()
        if found.status == 2:
            continue
        if found.status != 0 or tried > BRANCHES:
            return False
        loose = [link for link in links if found.x[link.column] > CLOSE and found.x[link.indicator] < 1 - CLOSE]
        if not loose:
            if program.solve(limits).status is not Status.INFEASIBLE:
                return False
            continue
        never, always = program.copy(), program.copy()
        never.high[loose[0].column] = 0.0
        always.low[loose[0].indicator] = 1.0
        rest = [link for link in links if link is not loose[0]]
        stack += [(never, rest), (always, rest)]
    return True
