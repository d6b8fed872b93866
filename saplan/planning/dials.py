"""Routes where every change turns dials of one prime size: changes commute, and the equation alone is the plan.

No graph is searched. At every ρ the equation is solved again, in milliseconds, and all changes that the solution still
counts are equally good first steps, so that the policy can begin with the nearest.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, Float32

from saplan.planning.graph import EdgeFunction, Edges, Raised, raised_at
from saplan.planning.integer_program import Answer, Status
from saplan.planning.modular import solve_modular
from saplan.planning.problem import Problem
from saplan.planning.route import Outcome, Plan, PlannedTransition, Successors, known, to_tuple

DENIED = 5.0
"""Nats that a change costs more where the edges deny it: it may still be made later, from another ρ."""
Rho = Float32[np.ndarray, "K"]


@dataclass(frozen=True)
class DialRoute:
    """All ways to one goal; the interface is that of `search.Route`."""

    problem: Problem
    """The equation at any ρ, apart from its start; infinite costs for changes that are not used."""
    edges: EdgeFunction
    grain: Float32[np.ndarray, "K"]
    raised: Raised = ()
    solved: dict[bytes, tuple[Answer, Edges]] = field(default_factory=dict)
    """Solutions so far, by ρ."""

    @classmethod
    def find(
        cls, problem: Problem, edges: EdgeFunction, grain: Float32[np.ndarray, "K"], raised: Raised = ()
    ) -> "DialRoute | None":
        """The route of a problem; None where its changes do not turn dials alone, or cannot be made in any order."""
        route = cls(problem, edges, grain, raised)
        start = np.asarray(problem.start, np.float32)
        if solve_modular(problem, problem.usable) is None:
            return None
        plan = route.plan(start)
        return route if plan.outcome is not Outcome.SPENT else None

    @property
    def low(self) -> Float[np.ndarray, "K"]:
        """The least values that the goal allows."""
        return self.problem.low

    @property
    def high(self) -> Float[np.ndarray, "K"]:
        """The greatest values that the goal allows."""
        return self.problem.high

    @property
    def outcome(self) -> Outcome:
        """Whether the goal can be reached; as changes can be undone, the answer is the same at every ρ on the way."""
        answer, _ = self._solve(np.asarray(self.problem.start, np.float32))
        return Outcome.UNREACHABLE if answer.status is Status.INFEASIBLE else Outcome.FOUND

    @property
    def failure(self) -> Outcome:
        """The outcome for a ρ without a path."""
        return Outcome.UNREACHABLE

    @property
    def met(self) -> Float32[np.ndarray, "n K"]:
        """The start, and every ρ that one change leads to from there."""
        start = np.asarray(self.problem.start, float)[None]
        ends = self.problem.repeat(start, np.flatnonzero(self.problem.usable))
        return np.concatenate([start, ends]).astype(np.float32)

    def knows(self, rho: Rho) -> bool:
        """Always: the equation can be solved from any ρ."""
        return True

    def stale(self, rho: Rho) -> bool:
        """Never: no bound cuts the solution short."""
        return False

    def successors(self, rho: Rho) -> Successors | None:
        """Every transition from ρ; those that the solution counts lead to the goal. None where the goal holds."""
        answer, priced = self._solve(rho)
        if answer.status is Status.OPTIMAL and not answer.values.any():
            return None
        counted = answer.values > 0
        raised = raised_at(rho, self.raised, self.grain, len(counted))
        cost = priced.cost[0] + raised
        # All that are counted must be made: the order changes no sum, so those that can be made now come first.
        possible = counted & np.isfinite(cost) if np.any(counted & np.isfinite(cost)) else counted
        total = np.where(possible, answer.cost, np.inf)
        cost = np.where(possible & ~np.isfinite(cost), DENIED, cost)
        assert priced.probability is not None
        assert priced.steps is not None
        return Successors(cost, raised, total, possible, priced.probability[0], priced.steps[0])

    def plan(self, rho: Rho, first: int | None = None) -> Plan:
        """A path from ρ, the cheapest change first; SPENT where the edges deny every order that was tried."""
        answer, _ = self._solve(rho)
        if answer.status is Status.INFEASIBLE:
            return Plan(Outcome.UNREACHABLE)
        here, left, path = np.asarray(rho, float), answer.values.astype(int), list[PlannedTransition]()
        while left.any():
            priced = self.edges(here.astype(np.float32)[None])
            cost = np.where(left > 0, priced.cost[0], np.inf)
            chosen = int(np.argmin(cost)) if path or first is None else first
            if not np.isfinite(cost[chosen]):
                return Plan(Outcome.SPENT)
            here, left[chosen] = self.problem.repeat(here[None], np.array([chosen]))[0], left[chosen] - 1
            assert priced.probability is not None
            assert priced.steps is not None
            estimates = known(priced.probability[0, chosen]), known(priced.steps[0, chosen])
            path.append(PlannedTransition(chosen, to_tuple(here), *estimates))
        return Plan(Outcome.FOUND, float(answer.cost), to_tuple(rho), tuple(path))

    def _solve(self, rho: Rho) -> tuple[Answer, Edges]:
        """The cheapest counts from ρ, and the prices of all changes there."""
        key = np.asarray(rho, np.float32).tobytes()
        if key not in self.solved:
            priced = self.edges(np.asarray(rho, np.float32)[None])
            cost = priced.cost[0] + raised_at(rho, self.raised, self.grain, len(priced.cost[0]))
            finite = cost[np.isfinite(cost)]
            cost = np.where(np.isfinite(cost), cost, DENIED + finite.max(initial=0.0))
            costs = np.where(np.isfinite(self.problem.costs), cost, np.inf)
            problem = replace(self.problem, start=np.asarray(rho, float), costs=costs.astype(float))
            answer = solve_modular(problem, problem.usable)
            assert answer is not None
            self.solved[key] = answer, priced
        return self.solved[key]
