"""Deep searches guided by the algebra: where a plain search grows too large, the equation takes over.

The equation gives the changes of a plan, and they are put in an order in which each is feasible. Where no order is
found, A* searches with the prices of the equation's relaxation.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Float32

from saplan.algebra import Cyclic
from saplan.goals import Goal
from saplan.methods.agent import PlannerSettings
from saplan.planning import DialRoute, Outcome, Raised, Route
from saplan.planning.algebraic import find_plan
from saplan.planning.astar import astar
from saplan.planning.graph import Graph
from saplan.planning.heuristic import potential
from saplan.planning.needs import Needs, read_needs
from saplan.planning.problem import Problem
from saplan.planning.program import DEFAULT_LIMITS, Limits, Status
from saplan.planning.search import route_along

if TYPE_CHECKING:
    from saplan.methods.structured.agent import StructuredAgent

REFERENCES = 64
"""Values of ρ from which the needs of changes are read off the edge detector."""
ROUNDS = 8
"""Multisets of changes that are tried before A* takes over."""


def guided_route(
    agent: "StructuredAgent", planner: PlannerSettings, shallow: Route, rho: Float32[np.ndarray, "K"], raised: Raised
) -> Route:
    """Route to the goal of a search that reached its bound: along a plan of the equation, else by A*."""
    grain = np.asarray(agent.game.space.grain, np.float32)
    edges = lambda nodes: agent.edges(nodes, planner)  # noqa: E731

    def feasible(points: Float[np.ndarray, "n K"]) -> Bool[np.ndarray, "n C"]:
        return np.asarray(np.isfinite(agent.edges(points.astype(np.float32), planner).cost))

    needs = read_needs(agent.game.space, feasible, some_of(shallow.met))
    problem = problem_of(agent, shallow, rho, needs)
    plan = find_plan(problem, feasible, limits_of(planner), ROUNDS)
    if plan.found:
        return route_along(plan.rho.astype(np.float32), shallow.low, shallow.high, grain, edges, raised)
    if plan.status is Status.INFEASIBLE:
        return replace(shallow, outcome=Outcome.UNREACHABLE)
    if np.isfinite(planner.max_seconds):  # a person waits, and A* may take long
        return replace(shallow, outcome=Outcome.LATE)
    return astar(rho, shallow.low, shallow.high, grain, edges, potential(problem), planner.max_nodes, raised)


def dial_routes(
    agent: "StructuredAgent", planner: PlannerSettings, rho: Float32[np.ndarray, "n K"], goals: Goal, raised: Raised
) -> list[DialRoute] | None:
    """Routes by the equation alone, where all trusted changes turn dials of one size; None where some do not."""
    space, found = agent.game.space, []
    if not all(isinstance(block, Cyclic) for block in space.blocks):
        return None
    deltas, costs = np.asarray(agent.memory.delta, float), np.where(np.asarray(agent.trusted), 1.0, np.inf)
    for start, low, high in zip(rho, np.asarray(goals.low, float), np.asarray(goals.high, float), strict=True):
        problem = Problem(space, np.asarray(start, float), low, high, deltas, costs)
        grain = np.asarray(space.grain, np.float32)
        route = DialRoute.find(problem, lambda nodes: agent.edges(nodes, planner), grain, raised)
        if route is None:
            return None
        found.append(route)
    return found


def limits_of(planner: PlannerSettings) -> Limits:
    """Bounds of the integer program: nodes, and a share of the time where a person waits."""
    seconds = planner.max_seconds / ROUNDS
    return replace(DEFAULT_LIMITS, seconds=seconds) if np.isfinite(seconds) else DEFAULT_LIMITS


def some_of(met: Float32[np.ndarray, "n K"]) -> Float32[np.ndarray, "m K"]:
    """A few of many ρ, evenly spread."""
    distinct = np.unique(met, axis=0)
    return distinct[:: max(1, len(distinct) // REFERENCES)]


def problem_of(
    agent: "StructuredAgent", shallow: Route, rho: Float32[np.ndarray, "K"], needs: Needs | None = None
) -> Problem:
    """The goal of a search as an equation over 𝓑, priced by the least costs that the search met."""
    return Problem(
        space=agent.game.space,
        start=np.asarray(rho, float),
        low=np.asarray(shallow.low, float),
        high=np.asarray(shallow.high, float),
        deltas=np.asarray(agent.memory.delta, float),
        costs=least_costs(shallow.graph, np.asarray(agent.trusted)),
        needs=needs,
    )


def least_costs(graph: Graph, trusted: Bool[np.ndarray, "C"]) -> Float[np.ndarray, "C"]:
    """The least cost of every change among the edges of a graph; for changes without an edge, the least of all."""
    least = np.full(len(trusted), np.inf)
    if graph.cost.size:
        least = np.min(graph.cost, axis=0).astype(float)
    least[~np.isfinite(least)] = np.min(least, initial=1.0)
    return np.where(trusted, least, np.inf)
