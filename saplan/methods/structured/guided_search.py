"""The search of an agent whose changes are certain: plain in small graphs, led by the algebra in large ones.

Edges depend on ρ alone, so all tasks share one graph. A first search has few nodes. Tasks that need more are searched
with lower bounds from the prices of the equation (A*). For goals still deeper, the equation itself gives the changes
of a plan, which are put in an order in which each is feasible.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float, Float32

from saplan.algebra import Cyclic
from saplan.goals import Goal
from saplan.methods.agent import PlannerSettings
from saplan.planning import AnyRoute, DialRoute, Edges, Graph, Outcome, Raised, Route
from saplan.planning.algebraic import find_plan
from saplan.planning.certificate import unreachable_because
from saplan.planning.heuristic import Potentials, read_levels
from saplan.planning.integer_program import DEFAULT_LIMITS, Limits, Status
from saplan.planning.needs import Needs, read_needs
from saplan.planning.problem import Problem
from saplan.planning.search import route_along, search_in

if TYPE_CHECKING:
    from saplan.methods.structured.agent import StructuredAgent

SHALLOW = 1_000
"""Nodes of the first search."""
DEEP = 20_000
"""Nodes of the search with lower bounds; beyond them the equation is solved for whole counts."""
GROWTH = 1.2
"""Growth of the graph after which the least costs of changes are read off it again."""
REFERENCES = 64
"""Values of ρ from which the needs of changes are read off the edge detector."""
ROUNDS = 8
"""Multisets of changes that are tried before the search goes on."""


@dataclass(frozen=True)
class SearchTask:
    """One start and goal, with the edges that failed from it."""

    rho: Float32[np.ndarray, "K"]
    low: Float32[np.ndarray, "K"]
    high: Float32[np.ndarray, "K"]
    raised: Raised = ()


class GuidedSearch:
    """Routes to any goals, in one graph."""

    def __init__(self, agent: "StructuredAgent", planner: PlannerSettings) -> None:
        """Start with an empty graph."""
        # Without its policy, which planning does not ask: every call of a compiled program looks through all arrays.
        self.agent, self.planner = eqx.tree_at(lambda a: a.policy, agent, None), planner
        self.graph = self._new_graph()
        self._priced = 0

    def __call__(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planner: PlannerSettings, raised: Sequence[Raised] = ()
    ) -> Sequence[AnyRoute]:
        """Routes along mean changes from several ρ to a goal each; `raised` names edges with an added cost."""
        if self.graph.full:
            self.graph, self._priced = self._new_graph(), 0
        bounds = np.asarray(rho, np.float32), np.asarray(goals.low, np.float32), np.asarray(goals.high, np.float32)
        tasks = [SearchTask(*task) for task in zip(*bounds, raised or [()] * len(rho), strict=True)]
        self._deadline = time.monotonic() + self.planner.max_seconds
        most = self.planner.max_nodes
        # Changes in the body's own frame do not add up, whatever their order, so there is no equation for poses.
        if not self.planner.algebra or self.agent.game.space.frames:
            return self._search(tasks, most)
        dials = self._turn_dials(tasks)
        if dials is not None:
            return dials
        found = self._search(tasks, min(SHALLOW, most))
        deep = [k for k, route in enumerate(found) if route.cut]
        for k, route in zip(deep, self._search([tasks[k] for k in deep], min(DEEP, most), led=True), strict=True):
            found[k] = route if route.outcome is not Outcome.SPENT else self._solve(tasks[k], route)
        return found

    def _turn_dials(self, tasks: list[SearchTask]) -> list[DialRoute] | None:
        """Routes by the equation alone, where all trusted changes turn dials of one size; None where some do not."""
        space, found = self.agent.game.space, list[DialRoute]()
        if not all(isinstance(block, Cyclic) for block in space.blocks):
            return None
        deltas = np.asarray(self.agent.memory.delta, float)
        costs = np.where(self.agent.planned, 1.0, np.inf)
        for task in tasks:
            start, low, high = (np.asarray(side, float) for side in (task.rho, task.low, task.high))
            problem = Problem(space, start, low, high, deltas, costs)
            route = DialRoute.find(problem, self._edges, self.graph.grain, task.raised)
            if route is None:
                return None
            found.append(route)
        return found

    def _new_graph(self) -> Graph:
        return Graph(np.asarray(self.agent.game.space.grain, np.float32), self._edges)

    def _edges(self, nodes: Float[np.ndarray, "n K"]) -> Edges:
        edges: Edges = self.agent.edges(nodes, self.planner)
        return edges

    def _search(self, tasks: list[SearchTask], max_nodes: int, led: bool = False) -> list[Route]:
        """Search side by side; `led` by lower bounds on the cost that remains."""
        if not tasks:
            return []
        problems = [self._problem(task) for task in tasks] if led else ()
        bounds = [self._potentials(problem) for problem in problems]
        starts, low, high = (np.stack([getattr(task, name) for task in tasks]) for name in ("rho", "low", "high"))
        seconds, raised = self._deadline - time.monotonic(), [task.raised for task in tasks]
        return search_in(self.graph, starts, low, high, max_nodes, seconds, raised, self.planner.critic / 2, bounds)

    def _solve(self, task: SearchTask, led: Route) -> Route:
        """A route by the counts of the equation, put in order; if that fails, a longer search."""
        # The nearest point that satisfies the goal is probed too: do changes still lead to its values?
        references = np.vstack([some_of(led.met), np.clip(task.rho, task.low, task.high)])
        problem = self._problem(task, read_needs(self.agent.game.space, self._feasible, references))
        if why := beyond_reach(problem):
            return replace(led, outcome=Outcome.UNREACHABLE, why=why)
        plan = find_plan(problem, self._feasible, self._limits, ROUNDS)
        if plan.found:
            path = plan.rho.astype(np.float32)
            return route_along(self.graph, path, task.low, task.high, task.raised, max(plan.bound, led.bound))
        if plan.status is Status.INFEASIBLE:
            return replace(led, outcome=Outcome.UNREACHABLE, why=unreachable_because(problem) or "")
        return self._search([task], self.planner.max_nodes, led=True)[0]

    def _feasible(self, points: Float[np.ndarray, "n K"]) -> Bool[np.ndarray, "n C"]:
        return np.asarray(np.isfinite(self.agent.edges(points.astype(np.float32), self.planner).cost))

    @cached_property
    def _limits(self) -> Limits:
        """Bounds of the integer program: nodes, and a share of the time where a person waits."""
        seconds = self.planner.max_seconds / ROUNDS
        return replace(DEFAULT_LIMITS, seconds=seconds) if np.isfinite(seconds) else DEFAULT_LIMITS

    def _problem(self, task: SearchTask, needs: Needs | None = None) -> Problem:
        """The task as an equation over 𝓑, priced by the least costs in the graph."""
        self._read_prices()
        ends = np.asarray(task.rho, float), np.asarray(task.low, float), np.asarray(task.high, float)
        return Problem(self.agent.game.space, *ends, self._delta, self._least, needs)

    def _read_prices(self) -> None:
        """Read the least costs of all changes off the graph, if it has grown since."""
        if self._priced and len(self.graph) < GROWTH * self._priced:
            return
        self._priced = len(self.graph)
        self._delta = np.asarray(self.agent.memory.delta, float)
        self._least = least_costs(self.graph, self.agent.planned)
        here, anywhere = np.zeros(self.agent.game.space.size), np.full(self.agent.game.space.size, np.inf)
        problem = Problem(self.agent.game.space, here, -anywhere, anywhere, self._delta, self._least)
        known = self.graph.expanded
        self._potentials = Potentials(read_levels(problem, self.graph.rho[known], self.graph.cost[known]))


def beyond_reach(problem: Problem) -> str | None:
    """Why the goal asks for more, or less, of an attribute than any change leads to; None where it does not."""
    assert problem.needs is not None
    changes, space, (low, high) = problem.changes[problem.usable], problem.space, problem.bounds
    needs_low, needs_high = problem.needs.low[problem.usable], problem.needs.high[problem.usable]
    most = np.max(np.where(changes > 0, needs_high + changes, -np.inf), axis=0, initial=-np.inf)
    least = np.min(np.where(changes < 0, needs_low + changes, np.inf), axis=0, initial=np.inf)
    most, least = np.maximum(most, problem.start), np.minimum(least, problem.start)
    for i, (name, block) in enumerate(zip(space.names, space.blocks, strict=True)):
        if problem.is_line(i) and low[i] > most[i]:
            return f"no known change leads beyond {name}={block.format(float(most[i]))}"
        if problem.is_line(i) and high[i] < least[i]:
            return f"no known change leads below {name}={block.format(float(least[i]))}"
    return None


def some_of(met: Float32[np.ndarray, "n K"]) -> Float32[np.ndarray, "m K"]:
    """A few of many ρ, evenly spread."""
    distinct = np.unique(met, axis=0)
    return distinct[:: max(1, len(distinct) // REFERENCES)]


def least_costs(graph: Graph, trusted: Bool[np.ndarray, "C"]) -> Float[np.ndarray, "C"]:
    """The least cost of every change among the edges of a graph; for changes without an edge, the least of all."""
    least = np.full(len(trusted), np.inf)
    if graph.cost.size:
        least = np.min(graph.cost, axis=0).astype(float)
    least[~np.isfinite(least)] = np.min(least, initial=1.0)
    return np.where(trusted, least, np.inf)
