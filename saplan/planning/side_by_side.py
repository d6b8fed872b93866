"""Several searches side by side in one graph: what each knows of every node, and the nodes to expand next."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Float64, Int, Int32, Int64
from scipy.sparse.csgraph import dijkstra

from saplan.goals import meets
from saplan.planning.graph import Graph, Nodes, Raised
from saplan.planning.route import FREE, Outcome, Route

LowerBound = Callable[[Nodes], Float[np.ndarray, "n"]]
"""ρ of a batch of nodes → a consistent lower bound on the cost from each to the goal."""
Pairs = Int64[np.ndarray, "m"]
"""Numbers of (node, search) pairs: row of the node × number of searches + number of the search."""
BATCH = 1024
"""Nodes that one search expands together, those first that promise the cheapest paths."""
TIE = 1e-6
"""Costs closer than this are equal: edges are float32."""


class Searches:
    """The searches of one call. A table holds what they know of the nodes: a row per node, a column per search."""

    def __init__(
        self,
        graph: Graph,
        starts: Nodes,
        low: Nodes,
        high: Nodes,
        raised: Sequence[Raised],
        bounds: Sequence[LowerBound],
    ) -> None:
        """Enter the starts."""
        self.graph, self.low, self.high, self.bounds = graph, low, high, bounds
        self.count = len(starts)
        self.raised = list(raised) or [()] * self.count
        self.starts = graph.add(starts)
        self._surcharges = [
            (search, int(graph.add(np.asarray(rho, np.float32)[None])[0]), transition, added)
            for search, entries in enumerate(self.raised)
            for rho, transition, added in entries
        ]
        self.row = np.full(len(graph), -1, np.int32)
        """Row of every node of the graph, -1 without one."""
        self.node = np.empty(0, np.int32)
        """Node of every row."""
        self.reach, self.bound = np.empty(0), np.empty(0, np.float32)
        """Per pair: the least cost from the start found so far, and the lower bound on the cost to the goal."""
        self.seen, self.is_goal, self.closed, self.waits = (np.empty(0, bool) for _ in range(4))
        self._slot = np.empty(0, np.int32)
        self.open: Pairs = np.empty(0, np.int64)
        """Pairs to expand."""
        self.promise = np.empty(0)
        """Of every open pair: the least cost of a path through it, as far as is known."""
        self.met = np.zeros(self.count, np.int64)
        self.best, self.floor = np.full(self.count, np.inf), np.zeros(self.count)
        """Per search: the cost of the best path found, and a cost that no path is below."""
        self.trust, self.stride = np.ones(self.count), np.zeros(self.count)
        """Per search: the share of the bounds that the edges seen allow, and the costs that are expanded together."""
        self.cut: list[Outcome | None] = [None] * self.count
        self._reach_out(self.starts, np.arange(self.count), np.zeros(self.count))

    def wanted(self, margin: float) -> Bool[np.ndarray, "open"]:
        """Which open pairs can still be on a path that is wanted. Searches without such pairs have ended."""
        owner = self.open % self.count
        self.promise = self.reach[self.open] + self.trust[owner] * self.bound[self.open]
        wanted = self.promise < (self.best + (margin - TIE))[owner]
        active = np.zeros(self.count, bool)
        active[owner[wanted]] = True
        least = np.full(self.count, np.inf)
        np.minimum.at(least, owner, self.promise)
        self.floor = np.where(active, np.minimum(least, self.best), self.floor)
        self._keep(active[owner])
        kept: Bool[np.ndarray, "open"] = wanted[active[owner]]
        return kept

    def stop(
        self, wanted: Bool[np.ndarray, "open"], ends: Bool[np.ndarray, "searches"], why: Outcome
    ) -> Bool[np.ndarray, "left"]:
        """End some searches before their time, and return which pairs of the others are wanted."""
        owner = self.open % self.count
        for k in np.unique(owner[wanted & ends[owner]]):
            self.cut[k] = why
        self._keep(~ends[owner])
        left: Bool[np.ndarray, "left"] = wanted[~ends[owner]]
        return left

    def nearest(self, wanted: Bool[np.ndarray, "open"]) -> Bool[np.ndarray, "open"]:
        """Of the wanted pairs of each search, those with nearly the least promise, a batch at most."""
        owner = self.open % self.count
        least = np.full(self.count, np.inf)
        np.minimum.at(least, owner[wanted], self.promise[wanted])
        chosen: Bool[np.ndarray, "open"] = wanted & (self.promise <= (least + self.stride)[owner])
        if np.max(np.bincount(owner[chosen], minlength=1)) > BATCH:
            places = np.flatnonzero(chosen)
            # Of equals, those nearest to the goal first.
            order = places[np.lexsort((self.bound[self.open[places]], self.promise[places], owner[places]))]
            first = np.searchsorted(owner[order], np.arange(self.count))
            chosen[order[np.arange(len(order)) - first[owner[order]] >= BATCH]] = False
        return chosen

    def expand(self, chosen: Bool[np.ndarray, "open"]) -> None:
        """Follow all edges of some open pairs."""
        pairs = self.open[chosen]
        self._keep(~chosen)
        self.waits[pairs], self.closed[pairs] = False, True
        node, owner = self.node[pairs // self.count], pairs % self.count
        self.graph.expand(node)
        ends, cost = self.graph.ends[node], self._cost(node, owner)
        real = ends >= 0
        width = real.sum(axis=1)
        cost, owner, begin = cost[real], np.repeat(owner, width), np.repeat(pairs, width)
        np.maximum.at(self.stride, owner, cost)
        arrived = self._reach_out(ends[real], owner, self.reach[begin] + cost)
        if self.bounds:
            # Costs that were not known when the bound was made may be lower than it assumed: trust it less.
            gain = self.bound[begin].astype(np.float64) - self.bound[arrived]
            over = gain * self.trust[owner] > cost + TIE
            np.minimum.at(self.trust, owner[over], cost[over] / gain[over])

    def follow(self, nodes: Int64[np.ndarray, "n"]) -> None:
        """Expand given nodes for the first search, whatever they cost to reach."""
        self.graph.expand(nodes)
        pairs = self._reach_out(nodes, np.zeros(len(nodes), np.int64), np.zeros(len(nodes)))
        self.closed[pairs] = True
        ends = self.graph.ends[nodes]
        ends = ends[ends >= 0]
        self._reach_out(ends, np.zeros(len(ends), np.int64), np.zeros(len(ends)))

    def _cost(self, node: Int32[np.ndarray, "n"], owner: Int64[np.ndarray, "n"]) -> Float64[np.ndarray, "n C"]:
        cost = np.maximum(self.graph.cost[node].astype(np.float64), FREE)
        for search, place, transition, added in self._surcharges:
            cost[(node == place) & (owner == search), transition] += added
        return np.asarray(cost)

    def _reach_out(self, node: Int[np.ndarray, "n"], owner: Int64[np.ndarray, "n"], cost: np.ndarray) -> Pairs:
        """Reach nodes at some cost: enter those that are new, and open those that are now nearer to the start."""
        pairs = self._rows(node).astype(np.int64) * self.count + owner
        nearer = cost < self.reach[pairs]
        better, cost = pairs[nearer], cost[nearer]
        np.minimum.at(self.reach, better, cost)
        self._slot[better] = np.arange(len(better))
        better = better[self._slot[better] == np.arange(len(better))]  # each once
        self._enter(better[~self.seen[better]])
        goals = better[self.is_goal[better]]
        np.minimum.at(self.best, goals % self.count, self.reach[goals])
        fresh = better[~self.is_goal[better] & ~self.waits[better]]
        self.waits[fresh] = True
        self.open = np.append(self.open, fresh)
        return np.asarray(pairs)

    def _enter(self, pairs: Pairs) -> None:
        """Look at pairs for the first time: whether they satisfy the goal, and how far from it they are at least."""
        rho, owner = self.graph.rho[self.node[pairs // self.count]], pairs % self.count
        self.seen[pairs] = True
        self.is_goal[pairs] = np.all(meets(self.low[owner], self.high[owner], rho), axis=1)
        self.met += np.bincount(owner, minlength=self.count)
        for search in np.unique(owner) if self.bounds else ():
            own = owner == search
            self.bound[pairs[own]] = self.bounds[search](rho[own])

    def _rows(self, node: Int[np.ndarray, "n"]) -> Int32[np.ndarray, "n"]:
        """Rows of nodes, added where missing."""
        if len(self.graph) > len(self.row):
            grown = np.full(2 * len(self.graph), -1, np.int32)
            grown[: len(self.row)] = self.row
            self.row = grown
        new = np.unique(node[self.row[node] < 0])
        self.row[new] = len(self.node) + np.arange(len(new))
        self.node = np.append(self.node, new.astype(np.int32))
        if (room := len(self.node) * self.count) > len(self.reach):
            self.reach = _longer(self.reach, 2 * room, np.inf)
            self.bound, self._slot = _longer(self.bound, 2 * room, 0), _longer(self._slot, 2 * room, 0)
            flags = self.seen, self.is_goal, self.closed, self.waits
            self.seen, self.is_goal, self.closed, self.waits = (_longer(flag, 2 * room, 0) for flag in flags)
        rows: Int32[np.ndarray, "n"] = self.row[node]
        return rows

    def _keep(self, kept: Bool[np.ndarray, "open"]) -> None:
        self.open, self.promise = self.open[kept], self.promise[kept]

    def routes(self) -> list[Route]:
        """What every search found."""
        pairs = np.flatnonzero(self.seen)
        node, owner = self.node[pairs // self.count], pairs % self.count
        remaining = self._distances(pairs)
        order = np.lexsort((node, owner))
        edges = np.searchsorted(owner[order], np.arange(self.count + 1))
        parts = [order[begin:end] for begin, end in itertools.pairwise(edges)]
        return [self._route(k, node[part], self.closed[pairs[part]], remaining[part]) for k, part in enumerate(parts)]

    def _route(
        self, k: int, nodes: Int32[np.ndarray, "m"], closed: Bool[np.ndarray, "m"], left: Float64[np.ndarray, "m"]
    ) -> Route:
        cut, start = self.cut[k], int(self.starts[k])
        cost = float(left[np.searchsorted(nodes, start)])
        outcome = Outcome.FOUND if np.isfinite(cost) else cut or Outcome.UNREACHABLE
        least = cost if cut is None else float(self.floor[k])
        kept = self.graph, start, nodes, closed, left, self.low[k], self.high[k], outcome, tuple(self.raised[k])
        return Route(*kept, cut=cut is not None, bound=least)

    def _distances(self, pairs: Pairs) -> Float64[np.ndarray, "pairs"]:
        """Cost of the cheapest path from every pair to the goal of its search."""
        number = self._slot
        number[pairs] = np.arange(len(pairs))
        closed = np.flatnonzero(self.closed[pairs])
        node, owner = self.node[pairs[closed] // self.count], pairs[closed] % self.count
        goals = np.flatnonzero(self.is_goal[pairs])
        if not len(goals) or not len(closed):
            return np.where(self.is_goal[pairs], 0.0, np.inf)
        ends = self.graph.ends[node]
        real = ends >= 0
        width = np.zeros(len(pairs) + 1, np.int32)
        width[closed + 1] = real.sum(axis=1)
        to = number[self.row[ends[real]].astype(np.int64) * self.count + np.repeat(owner, width[closed + 1])]
        # The rows of edges are read as columns, which reverses the graph. Parallel edges stay apart this way; a matrix
        # of (row, column) pairs would add them up.
        cost, first = self._cost(node, owner)[real], np.cumsum(width, dtype=np.int32)
        against = scipy.sparse.csc_array((cost, to, first), shape=(len(pairs), len(pairs)))
        found: Float64[np.ndarray, "pairs"] = dijkstra(against, indices=goals, min_only=True)
        return found


def _longer(array: np.ndarray, length: int, blank: float) -> np.ndarray:
    """Copy of an array with more places, the added ones blank."""
    longer = np.full(length, blank, array.dtype)
    longer[: len(array)] = array
    return longer
