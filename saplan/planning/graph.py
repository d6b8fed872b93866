"""The implicit attribute graph: nodes are ρ, edges are the transitions of 𝓑, made only as far as they are needed.

Several searches can share one graph without seeing each other: every node belongs to an owner, and edges stay with
their owner. That is how a thousand tasks are planned with a handful of large batches.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32, Int64

from saplan.algebra.hashing import hashed, mixers
from saplan.planning.node_index import NO_NODE, Index

Nodes = Float32[np.ndarray, "n K"]
EdgeFunction = Callable[[Nodes], tuple[Float32[np.ndarray, "n C K"], Float32[np.ndarray, "n C"]]]
"""ρ of a batch of nodes → the ends of all transitions from them, and their costs (infinite: no edge)."""

Raised = Sequence[tuple[Float32[np.ndarray, "K"], int, float]]
"""Edges that cost more than they seem to: (ρ, transition, how much more)."""

__all__ = ["NO_NODE", "EdgeFunction", "Graph", "Nodes", "Raised", "raised_at", "with_raised"]


def with_raised(edges: EdgeFunction, raised: Raised, grain: Float32[np.ndarray, "K"]) -> EdgeFunction:
    """The same edges, some of them at a higher cost."""

    def costlier(nodes: Nodes) -> tuple[Float32[np.ndarray, "n C K"], Float32[np.ndarray, "n C"]]:
        ends, cost = edges(nodes)
        cost = np.array(cost)
        cells = np.rint(nodes / grain)
        for rho, transition, price in raised:
            cost[np.all(cells == np.rint(rho / grain), axis=1), transition] += price
        return ends, cost

    return costlier if raised else edges


def raised_at(
    rho: Float32[np.ndarray, "K"], raised: Raised, grain: Float32[np.ndarray, "K"], transitions: int
) -> Float64[np.ndarray, "C"]:
    """How much more every transition costs at one ρ."""
    more = np.zeros(transitions)
    for place, transition, price in raised:
        if np.all(np.rint(place / grain) == np.rint(rho / grain)):
            more[transition] += price
    return more


class Graph:
    """Nodes in the order they were met, and for every expanded node its edges."""

    def __init__(self, starts: Nodes, grain: Float32[np.ndarray, "K"], edges: EdgeFunction) -> None:
        """One start per owner; `grain` is the spacing below which two values of an attribute are the same node."""
        self._edges = edges
        self.grain = grain
        self._mixers = mixers(starts.shape[1] + 1)
        self._index = Index()
        # Arrays have room to spare and double when it is used up; in use are the first `len(self)` rows.
        self._rho = np.empty((0, starts.shape[1]), np.float32)
        self._owner = np.empty(0, np.int64)
        self._expanded = np.empty(0, bool)
        self._reach = np.empty(0, np.float64)
        self._ends = np.empty((0, 0), np.int32)
        self._cost = np.empty((0, 0), np.float32)
        owners = np.arange(len(starts))
        self._index.intern(self._hash(starts, owners))
        self._append(starts.astype(np.float32), owners)
        self.reach[:] = 0.0

    def __len__(self) -> int:
        return self._index.size

    @property
    def rho(self) -> Nodes:
        """ρ of every node."""
        return self._rho[: len(self)]

    @property
    def owner(self) -> Int64[np.ndarray, "n"]:
        """Whose search every node belongs to."""
        return self._owner[: len(self)]

    @property
    def expanded(self) -> Bool[np.ndarray, "n"]:
        """Which nodes have their edges."""
        return self._expanded[: len(self)]

    @property
    def reach(self) -> Float64[np.ndarray, "n"]:
        """The least cost found so far from the owner's start to every node."""
        return self._reach[: len(self)]

    @property
    def ends(self) -> Int32[np.ndarray, "n C"]:
        """The node that every transition leads to, NO_NODE where there is no edge, or none yet."""
        return self._ends[: len(self)]

    @property
    def cost(self) -> Float32[np.ndarray, "n C"]:
        """What every transition costs, infinite where there is no edge, or none yet."""
        return self._cost[: len(self)]

    def find(self, rho: Nodes, owner: Int64[np.ndarray, "m"]) -> Int64[np.ndarray, "m"]:
        """The nodes of given ρ, NO_NODE where there is none."""
        return self._index.find(self._hash(rho, owner))

    def expand(self, nodes: Int64[np.ndarray, "m"]) -> None:
        """Gives the nodes their edges, adding the ends that are new."""
        ends, cost = self._edges(self.rho[nodes])
        if not self._ends.size:  # how many transitions there are is known only now
            self._ends = np.full((len(self._rho), cost.shape[1]), NO_NODE, np.int32)
            self._cost = np.full((len(self._rho), cost.shape[1]), np.inf, np.float32)
        real = np.isfinite(cost)
        rho, owner = ends[real], np.repeat(self.owner[nodes], real.sum(axis=1))
        found, new = self._index.intern(self._hash(rho, owner))
        self._append(rho[new], owner[new])
        target = np.full(cost.shape, NO_NODE, np.int32)
        target[real] = found
        self.ends[nodes] = target
        self.cost[nodes] = np.where(real, cost, np.inf)
        self.expanded[nodes] = True
        self._relax(nodes)

    def _relax(self, nodes: Int64[np.ndarray, "m"]) -> None:
        """Carries the reach of nodes along their edges, and on from every node that this brings nearer."""
        while len(nodes):
            real = self.ends[nodes] >= 0
            end = self.ends[nodes][real]
            cost = (self.reach[nodes][:, None] + self.cost[nodes])[real]
            nearer = cost < self.reach[end]
            np.minimum.at(self.reach, end[nearer], cost[nearer])
            nodes = np.unique(end[nearer & self.expanded[end]])

    def _append(self, rho: Nodes, owner: Int64[np.ndarray, "m"]) -> None:
        start = len(self) - len(rho)
        if len(self) > len(self._rho):
            room = 2 * len(self)
            self._rho, self._owner = _roomy(self._rho, room, 0), _roomy(self._owner, room, 0)
            self._expanded, self._reach = _roomy(self._expanded, room, False), _roomy(self._reach, room, np.inf)
            self._ends, self._cost = _roomy(self._ends, room, NO_NODE), _roomy(self._cost, room, np.inf)
        self.rho[start:] = rho
        self.owner[start:] = owner

    def _hash(self, rho: Nodes, owner: Int64[np.ndarray, "m"]) -> Int64[np.ndarray, "m"]:
        cells = np.rint(rho / self.grain).astype(np.int64)
        return hashed(np.column_stack([cells, owner]), self._mixers)


def _roomy(array: np.ndarray, rows: int, blank: float) -> np.ndarray:
    """The array with room for more rows."""
    larger = np.full((rows, *array.shape[1:]), blank, array.dtype)
    larger[: len(array)] = array
    return larger
