"""A*: the cheapest path of one task in a graph of its own, led by a lower bound on what is left."""

import numpy as np
from jaxtyping import Float32

from saplan.planning.graph import EdgeFunction, Graph
from saplan.planning.route import Route
from saplan.planning.search import search_in
from saplan.planning.side_by_side import LowerBound


def astar(
    start: Float32[np.ndarray, "K"],
    low: Float32[np.ndarray, "K"],
    high: Float32[np.ndarray, "K"],
    grain: Float32[np.ndarray, "K"],
    edges: EdgeFunction,
    remaining: LowerBound,
    max_nodes: int = 100_000,
) -> Route:
    """Searches for the cheapest path to low <= ρ <= high.

    The path is optimal if the outcome is FOUND and the route was not cut.
    """
    task = start[None], low[None], high[None]
    return search_in(Graph(grain, edges), *task, max_nodes=max_nodes, bounds=[remaining])[0]
