"""Shortest paths: Dijkstra in the implicit graph, bounded, and with its outcome as a value."""

import enum
import time
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int64
from scipy.sparse.csgraph import dijkstra

from saplan.planning.graph import NO_NODE, EdgeFunction, Graph, Nodes


class Outcome(enum.Enum):
    """How a search ended, with a sentence for people."""

    FOUND = "a path was found"
    UNREACHABLE = "no path leads there, as far as the agent knows"
    SPENT = "the search reached its bound before it found a path"


@dataclass(frozen=True)
class Plan:
    """A path of transitions from a start, or the reason why there is none."""

    outcome: Outcome
    cost: float = np.inf
    rho: tuple[tuple[float, ...], ...] = ()
    """The attributes along the path, start and goal included."""
    transitions: tuple[int, ...] = ()
    """The entry of 𝓑 that leads from each to the next."""


@dataclass
class Route:
    """All that a search found out about one goal: from any node it met, the way on is a look-up."""

    graph: Graph
    owner: int
    outcome: Outcome
    remaining: Float[np.ndarray, "n"]
    """Cost from every node of the graph to the goal."""
    penalties: dict[tuple[int, int], float] = field(default_factory=dict)
    """(node, transition) → what is added to its price, because it failed here before."""

    def node(self, rho: Float[np.ndarray, "K"]) -> int:
        """The node of ρ in this route's graph, NO_NODE if the search did not meet it or did not look beyond it."""
        found = int(self.graph.find(np.asarray(rho, np.float32)[None], np.array([self.owner]))[0])
        return found if found != NO_NODE and self.graph.expanded[found] else NO_NODE

    def options(self, node: int) -> Float[np.ndarray, "C"]:
        """The cost to the goal by way of each transition from a node."""
        ends = self.graph.ends[node]
        beyond = np.where(ends >= 0, self.remaining[ends], np.inf)
        total = self.graph.cost[node] + beyond
        for (at, transition), price in self.penalties.items():
            if at == node:
                total[transition] += price
        return total

    def penalise(self, node: int, transition: int, price: float) -> None:
        """Makes a transition dearer here: it failed, and a wall should not be run against again and again."""
        self.penalties[node, transition] = self.penalties.get((node, transition), 0.0) + price

    def plan(self, rho: Float[np.ndarray, "K"]) -> Plan:
        """The cheapest path from ρ, if the search met it."""
        node = self.node(rho)
        if node == NO_NODE or not np.isfinite(self.remaining[node]):
            return Plan(self.outcome if self.outcome is not Outcome.FOUND else Outcome.UNREACHABLE)
        cost, path, transitions = float(self.remaining[node]), [node], []
        while self.remaining[node] > 0:
            transition = int(np.argmin(self.options(node)))
            node = int(self.graph.ends[node, transition])
            transitions.append(transition)
            if node in path:  # penalties can lead in circles; a plan must not
                return Plan(Outcome.UNREACHABLE)
            path.append(node)
        visited = tuple(tuple(map(float, self.graph.rho[n])) for n in path)
        return Plan(Outcome.FOUND, cost, visited, tuple(transitions))


def search(
    starts: Nodes,
    low: Nodes,
    high: Nodes,
    grain: Float[np.ndarray, "K"],
    edges: EdgeFunction,
    max_nodes: int = 100_000,
    max_seconds: float = 10.0,
) -> list[Route]:
    """Searches from several starts, each for its own goal low <= ρ <= high, side by side.

    The graph grows layer by layer, in batches. Once an owner's goal has been met, only nodes cheaper to reach than the
    goal are looked beyond, as Dijkstra would; when none is left the path is optimal. `max_nodes` bounds the nodes per
    owner, `max_seconds` the whole call.
    """
    graph, deadline = Graph(starts, grain, edges), time.monotonic() + max_seconds
    spent = np.zeros(len(starts), bool)
    while True:
        is_goal = np.all((graph.rho >= low[graph.owner]) & (graph.rho <= high[graph.owner]), axis=1)
        frontier = _frontier(graph, is_goal, spent)
        if not len(frontier):
            break
        counts = np.bincount(graph.owner, minlength=len(starts))
        full = (counts >= max_nodes) | (time.monotonic() > deadline)
        spent[graph.owner[frontier]] |= full[graph.owner[frontier]]
        frontier = frontier[~spent[graph.owner[frontier]]]
        if len(frontier):
            graph.expand(frontier)
    remaining = distances(graph, np.flatnonzero(is_goal), backwards=True)
    return [Route(graph, k, _outcome(remaining[k], spent[k]), remaining) for k in range(len(starts))]


def _outcome(remaining: float, spent: bool) -> Outcome:
    if np.isfinite(remaining):
        return Outcome.FOUND
    return Outcome.SPENT if spent else Outcome.UNREACHABLE


def _frontier(graph: Graph, is_goal: Bool[np.ndarray, "n"], spent: Bool[np.ndarray, "owners"]) -> Int64[np.ndarray, "m"]:
    """The unexpanded nodes worth looking beyond: not yet spent, and cheaper to reach than the owner's nearest goal."""
    waiting = ~graph.expanded & ~is_goal & ~spent[graph.owner]
    goals_of = np.zeros(len(spent), bool)
    goals_of[graph.owner[is_goal]] = True
    if np.any(waiting & goals_of[graph.owner]):
        reach = distances(graph, np.arange(len(spent)), backwards=False)
        nearest = np.full(len(spent), np.inf)
        np.minimum.at(nearest, graph.owner[is_goal], reach[is_goal])
        waiting &= reach < nearest[graph.owner]
    return np.flatnonzero(waiting)


def distances(graph: Graph, sources: Int64[np.ndarray, "m"], backwards: bool) -> Float[np.ndarray, "n"]:
    """The cost of the cheapest path from the nearest source to every node, or from every node to its nearest source."""
    size = len(graph)
    if not len(sources) or not graph.ends.size:
        result = np.full(size, np.inf)
        result[sources] = 0.0
        return result
    real = graph.ends >= 0
    start = np.repeat(np.arange(size), real.sum(axis=1))
    end = graph.ends[real]
    # csgraph reads a stored zero as "no edge"; a hair more than nothing keeps free edges.
    cost = np.maximum(graph.cost[real].astype(np.float64), 1e-9)
    if graph.parallel:  # csgraph would add up parallel edges; only the cheapest counts
        order = np.lexsort((cost, end, start))
        start, end, cost = start[order], end[order], cost[order]
        first = np.append(True, (start[1:] != start[:-1]) | (end[1:] != end[:-1]))
        start, end, cost = start[first], end[first], cost[first]
    pair = (end, start) if backwards else (start, end)
    matrix = scipy.sparse.csr_matrix((cost, pair), shape=(size, size))
    return dijkstra(matrix, indices=sources, min_only=True)
