"""Cheapest paths in the implicit graph for several tasks side by side: Dijkstra's search, or A* where a lower bound on
the cost that remains is known. Searches are bounded, and their outcome is a value.
"""

import time
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float32

from saplan.planning.graph import EdgeFunction, Graph, Nodes, Raised
from saplan.planning.route import Outcome, Route
from saplan.planning.side_by_side import LowerBound, Searches

MOST_TOGETHER = 64
"""Searches that run side by side, at most."""
TABLE = 320_000
"""Nodes that the searches of a group may reach together."""
MOST_BESIDE = 256
"""Length of a path whose surroundings are looked at."""


def search(
    starts: Nodes,
    low: Nodes,
    high: Nodes,
    grain: Float[np.ndarray, "K"],
    edges: EdgeFunction,
    max_nodes: int = 100_000,
    max_seconds: float = np.inf,
) -> list[Route]:
    """Routes from several starts, each to its own goal low <= ρ <= high, in a graph of their own."""
    return search_in(Graph(np.asarray(grain, np.float32), edges), starts, low, high, max_nodes, max_seconds)


def search_in(
    graph: Graph,
    starts: Nodes,
    low: Nodes,
    high: Nodes,
    max_nodes: int = 100_000,
    max_seconds: float = np.inf,
    raised: Sequence[Raised] = (),
    margin: float = 0.0,
    bounds: Sequence[LowerBound] = (),
) -> list[Route]:
    """Routes from several starts, each to its own goal low <= ρ <= high, searched side by side in a shared graph.

    Each search expands nodes in batches, cheapest first, until no path can be cheaper than the best one found; with a
    `margin`, until all paths within it of the cheapest are known. `max_nodes` bounds the nodes that each search
    comes to. `max_seconds` bounds the whole call where a person waits for it; the result then depends on the machine.
    `raised` names, for each search, edges that cost more than the graph says. `bounds` makes the searches A*.
    """
    deadline = time.monotonic() + max_seconds
    together = max(1, min(MOST_TOGETHER, TABLE // max_nodes))
    groups = [slice(first, first + together) for first in range(0, len(starts), together)]
    starts = np.asarray(starts, np.float32)
    return [
        route
        for one in groups
        for route in _run(
            Searches(graph, starts[one], low[one], high[one], raised[one], bounds[one]), max_nodes, deadline, margin
        )
    ]


def _run(group: Searches, max_nodes: int, deadline: float, margin: float) -> list[Route]:
    """Carry out the searches of a group."""
    while (wanted := group.wanted(margin)).any():
        late = time.monotonic() > deadline
        wanted = group.stop(wanted, (group.met >= max_nodes) | late, Outcome.LATE if late else Outcome.SPENT)
        if wanted.any():
            group.expand(group.nearest(wanted))
    return group.routes()


def route_along(
    graph: Graph,
    path: Nodes,
    low: Float32[np.ndarray, "K"],
    high: Float32[np.ndarray, "K"],
    raised: Raised = (),
    bound: float = 0.0,
) -> Route:
    """The route of a path that is known already, from its start to a goal low <= ρ <= high.

    Its changes can often be made in another order, so the route also covers every ρ that one later change, made early,
    leads to beside the path.
    """
    later = {tuple(delta) for delta in np.diff(path, axis=0)} if len(path) <= MOST_BESIDE else ()
    places = np.concatenate([path[:-1], *(path[:-1] + np.array(delta, np.float32) for delta in later)])
    group = Searches(graph, path[:1], low[None], high[None], [raised], ())
    group.follow(np.unique(graph.add(places)))
    group.cut, group.floor = [Outcome.SPENT], np.array([bound])
    return group.routes()[0]
