"""Plans by algebra: solve the equation for counts, put them in order, cut off counts that have no order, repeat."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from saplan.planning.equation import Cut, solve
from saplan.planning.needs import Feasible
from saplan.planning.ordering import order
from saplan.planning.problem import Problem
from saplan.planning.program import DEFAULT_LIMITS, Limits, Status

SHARE = 1000
"""Sets of left counts that one order may look at, of the budget of all."""


@dataclass(frozen=True)
class AlgebraicPlan:
    """A path of changes with a lower bound on the cost of any path, or the reason why there is none."""

    status: Status
    transitions: Int[np.ndarray, "n"]
    rho: Float[np.ndarray, "m K"]
    """The attributes along the path, start and end included."""
    cost: float = np.inf
    """The sum of the problem's costs."""
    bound: float = 0.0
    """No path costs less."""
    cuts: tuple[Cut, ...] = ()

    @property
    def found(self) -> bool:
        """Whether there is a path."""
        return self.status in (Status.OPTIMAL, Status.FEASIBLE)


def find_plan(
    problem: Problem, feasible: Feasible, limits: Limits = DEFAULT_LIMITS, rounds: int = 24, budget: int = 3000
) -> AlgebraicPlan:
    """The cheapest path to the goal, each change feasible where it is made.

    `rounds` bounds the counts that are tried, `budget` the orders of all of them. A status of BOUND leaves the question
    open: search then. INFEASIBLE holds for any path, given what `feasible` and the needs say.
    """
    cuts: list[Cut] = []
    proven, bound = True, 0.0
    here = np.asarray(problem.start, float)[None]
    nothing = np.zeros(0, np.int64)
    while len(cuts) < rounds:
        solution = solve(problem, cuts, limits)
        bound = max(bound, solution.bound) if proven else bound
        if not solution.found:
            status = solution.status if proven else Status.BOUND
            return AlgebraicPlan(status, nothing, here, bound=bound, cuts=tuple(cuts))
        found = order(problem, solution.counts, feasible, min(budget, SHARE))
        budget = max(budget - found.looked_at, 0)
        if found.found:
            cost = float(np.sum(problem.costs[found.transitions]))
            status = Status.OPTIMAL if proven and cost <= bound + 1e-6 * max(1.0, cost) else Status.FEASIBLE
            return AlgebraicPlan(status, found.transitions, found.rho, cost, min(bound, cost), tuple(cuts))
        assert found.cut is not None
        cuts.append(found.cut)
        # A cut spares only counts that are not the cheapest if the solver did not finish, or orders were left untried.
        proven = proven and found.proven and solution.status is Status.OPTIMAL
        if proven and not found.cut.changes:
            return AlgebraicPlan(Status.INFEASIBLE, nothing, here, bound=np.inf, cuts=tuple(cuts))
    return AlgebraicPlan(Status.BOUND, nothing, here, bound=bound, cuts=tuple(cuts))
