"""A*: the cheapest path in the implicit graph, led by a lower bound on what is left, expanded in batches."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Float32, Int64

from saplan.goals import meets
from saplan.planning.graph import EdgeFunction, Graph, Nodes, Raised, with_raised
from saplan.planning.search import Outcome, Route, distances

LowerBound = Callable[[Nodes], Float[np.ndarray, "n"]]
"""ρ of a batch of nodes → a consistent lower bound on the cost from each to the goal."""
BATCH = 64
"""Nodes expanded together, those first that promise the cheapest paths."""
TIE = 1e-6
"""Costs closer than this are equal: edges are float32."""


def astar(
    start: Float32[np.ndarray, "K"],
    low: Float32[np.ndarray, "K"],
    high: Float32[np.ndarray, "K"],
    grain: Float32[np.ndarray, "K"],
    edges: EdgeFunction,
    remaining: LowerBound,
    max_nodes: int = 100_000,
    raised: Raised = (),
) -> Route:
    """Searches for the cheapest path to low <= ρ <= high; `raised` names edges that cost more than `edges` says.

    The path is optimal if the outcome is FOUND and fewer than `max_nodes` nodes were met. The costs that the route
    gives from other nodes are those of the paths that this search saw.
    """
    graph = Graph(np.asarray(start, np.float32)[None], grain, with_raised(edges, raised, grain))
    is_goal, bound = np.zeros(0, bool), np.zeros(0)
    spent = False
    while True:
        fresh = graph.rho[len(is_goal) :]
        is_goal = np.append(is_goal, np.all(meets(low, high, fresh), axis=1))
        bound = np.append(bound, remaining(fresh))
        frontier = _most_promising(graph, is_goal, bound)
        if not len(frontier):
            break
        if len(graph) >= max_nodes:
            spent = True
            break
        graph.expand(frontier)
    left = distances(graph, is_goal)
    outcome = Outcome.FOUND if np.isfinite(left[0]) else Outcome.SPENT if spent else Outcome.UNREACHABLE
    return Route(graph, left, 0, low, high, outcome, raised, spent)


def _most_promising(
    graph: Graph, is_goal: Bool[np.ndarray, "n"], bound: Float[np.ndarray, "n"]
) -> Int64[np.ndarray, "m"]:
    """The unexpanded nodes with the least cost so far plus lower bound, of those below the best path found."""
    best = np.min(graph.reach[is_goal], initial=np.inf)
    total = graph.reach + bound
    waiting = np.flatnonzero(~graph.expanded & ~is_goal & (total < best - TIE))
    if len(waiting) > BATCH:
        # Of equals, those nearest to the goal first.
        waiting = waiting[np.argpartition((total + TIE * bound)[waiting], BATCH)[:BATCH]]
    return waiting
