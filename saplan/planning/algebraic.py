"""Plans by algebra: solve the equation for counts, put them in order, cut off counts that have no order, repeat."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Float32, Int

from saplan.planning.counts import Cut, solve
from saplan.planning.graph import Edges, Graph
from saplan.planning.heuristic import potential
from saplan.planning.integer_program import DEFAULT_LIMITS, Limits, Status
from saplan.planning.needs import Feasible
from saplan.planning.ordering import Feasibility, order
from saplan.planning.problem import ROUND, Problem
from saplan.planning.proof import find_certificate
from saplan.planning.route import Outcome
from saplan.planning.search import search_in

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
    problem: Problem,
    feasible: Feasible,
    limits: Limits = DEFAULT_LIMITS,
    rounds: int = 24,
    budget: int = 3000,
    nodes: int = 0,
) -> AlgebraicPlan:
    """The cheapest path to the goal, each change feasible where it is made.

    `rounds` bounds the counts that are tried, `budget` the orders of all of them. What they leave open is answered by a
    certificate, or by an A* search of at most `nodes` nodes. The status BOUND means that the question is still open.
    INFEASIBLE holds for any path, given `feasible` and the needs.
    """
    plan = _by_counts(problem, feasible, limits, rounds, budget)
    if plan.status is not Status.BOUND or not nodes:
        return plan
    if find_certificate(problem) is not None:
        return replace(plan, status=Status.INFEASIBLE, bound=np.inf)
    return _searched(problem, feasible, plan, nodes)


def _searched(problem: Problem, feasible: Feasible, open_question: AlgebraicPlan, nodes: int) -> AlgebraicPlan:
    """The answer of A* on the mean changes, which is BOUND where it would need more nodes."""
    step, every = Feasibility(problem, feasible), np.arange(len(problem.costs))

    def edges(rho: Float32[np.ndarray, "n K"]) -> Edges:
        ends = problem.repeat(np.repeat(rho, len(every), axis=0), np.tile(every, len(rho)))
        cost = np.where(step.possible(rho.astype(float), every) & problem.usable, problem.costs, np.inf)
        return Edges(ends.reshape(len(rho), len(every), -1).astype(np.float32), cost.astype(np.float32))

    graph = Graph(np.array(problem.space.grain, np.float32), edges)
    start, low, high = (np.asarray(x, np.float32) for x in (problem.start, *problem.bounds))
    task = start[None], low[None] - ROUND, high[None] + ROUND
    (route,) = search_in(graph, *task, max_nodes=nodes, bounds=[potential(problem)])
    if route.outcome is Outcome.UNREACHABLE:
        return replace(open_question, status=Status.INFEASIBLE, bound=np.inf)
    if route.outcome is not Outcome.FOUND:
        return open_question
    plan = route.plan(start)
    transitions = np.array(plan.transitions, np.int64)
    cost = float(np.sum(problem.costs[transitions]))
    path = np.array(plan.rho, float)
    if route.cut:
        return replace(open_question, status=Status.FEASIBLE, transitions=transitions, rho=path, cost=cost)
    return replace(open_question, status=Status.OPTIMAL, transitions=transitions, rho=path, cost=cost, bound=cost)


def _by_counts(problem: Problem, feasible: Feasible, limits: Limits, rounds: int, budget: int) -> AlgebraicPlan:
    """A plan by solving, ordering and cutting."""
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
