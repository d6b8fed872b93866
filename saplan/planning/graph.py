"""The implicit attribute graph: nodes are ρ, edges are transitions of 𝓑, and nodes are expanded only when needed.

Several searches share one graph without interfering: every node belongs to one owner, and edges connect nodes of the
same owner. A thousand tasks are planned with a few large batches this way.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32, Int64

from saplan.algebra.hashing import hashed, mixers
from saplan.planning.node_index import NO_NODE, Index

Nodes = Float32[np.ndarray, "n K"]


class Edges(NamedTuple):
    """All transitions from a batch of nodes, as a method prices them."""

    ends: Float32[np.ndarray, "n C K"]
    cost: Float32[np.ndarray, "n C"]
    """Infinite where there is no edge."""
    probability: Float32[np.ndarray, "n C"] | None = None
    """Probability of success, also where it is too low for an edge; NaN where the method has no estimate."""
    steps: Float32[np.ndarray, "n C"] | None = None
    """Expected environment steps; NaN where the method has no estimate."""


EdgeFunction = Callable[[Nodes], Edges]
Raised = Sequence[tuple[Float32[np.ndarray, "K"], int, float]]
"""Edges with an added cost: (ρ, transition, added cost)."""

__all__ = ["NO_NODE", "EdgeFunction", "Edges", "Graph", "Nodes", "Raised", "raised_at", "with_raised"]


def with_raised(edges: EdgeFunction, raised: Raised, grain: Float32[np.ndarray, "K"]) -> EdgeFunction:
    """The same edge function with the added costs of `raised`."""

    def costlier(nodes: Nodes) -> Edges:
        priced = edges(nodes)
        cost, cells = np.array(priced.cost), np.rint(nodes / grain)
        for rho, transition, added in raised:
            cost[np.all(cells == np.rint(rho / grain), axis=1), transition] += added
        return priced._replace(cost=cost)

    return costlier if raised else edges


def raised_at(
    rho: Float32[np.ndarray, "K"], raised: Raised, grain: Float32[np.ndarray, "K"], transitions: int
) -> Float64[np.ndarray, "C"]:
    """Added cost of every transition at one ρ."""
    total = np.zeros(transitions)
    for place, transition, added in raised:
        if np.all(np.rint(place / grain) == np.rint(rho / grain)):
            total[transition] += added
    return total


class Graph:
    """Nodes in the order of discovery, and the edges of every expanded node."""

    def __init__(self, starts: Nodes, grain: Float32[np.ndarray, "K"], edges: EdgeFunction) -> None:
        """Enter one start per owner. Values of an attribute that round to the same multiple of `grain` are one node."""
        self._edges = edges
        self.grain = grain
        self._mixers = mixers(starts.shape[1] + 1)
        self._index = Index()
        # Arrays grow by doubling; the first `len(self)` rows are in use.
        self._rho = np.empty((0, starts.shape[1]), np.float32)
        self._owner = np.empty(0, np.int64)
        self._expanded = np.empty(0, bool)
        self._reach = np.empty(0, np.float64)
        self._ends = np.empty((0, 0), np.int32)
        self._cost = np.empty((0, 0), np.float32)
        self._probability = np.empty((0, 0), np.float32)
        self._steps = np.empty((0, 0), np.float32)
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
        """Number of the search that every node belongs to."""
        return self._owner[: len(self)]

    @property
    def expanded(self) -> Bool[np.ndarray, "n"]:
        """Whether every node has its edges."""
        return self._expanded[: len(self)]

    @property
    def reach(self) -> Float64[np.ndarray, "n"]:
        """Least cost found so far from the owner's start to every node."""
        return self._reach[: len(self)]

    @property
    def ends(self) -> Int32[np.ndarray, "n C"]:
        """End node of every transition; NO_NODE without an edge, or before expansion."""
        return self._ends[: len(self)]

    @property
    def cost(self) -> Float32[np.ndarray, "n C"]:
        """Cost of every transition; infinite without an edge, or before expansion."""
        return self._cost[: len(self)]

    @property
    def probability(self) -> Float32[np.ndarray, "n C"]:
        """Probability of success that every transition was priced with; NaN where it is unknown."""
        return self._probability[: len(self)]

    @property
    def steps(self) -> Float32[np.ndarray, "n C"]:
        """Expected environment steps that every transition was priced with; NaN where they are unknown."""
        return self._steps[: len(self)]

    def find(self, rho: Nodes, owner: Int64[np.ndarray, "m"]) -> Int64[np.ndarray, "m"]:
        """Nodes of the given ρ; NO_NODE where there is none."""
        return self._index.find(self._hash(rho, owner))

    def add(self, rho: Nodes, owner: Int64[np.ndarray, "m"]) -> Int64[np.ndarray, "m"]:
        """Nodes of given ρ; those that are new join the graph without edges."""
        found, new = self._index.intern(self._hash(rho, owner))
        self._append(rho[new], owner[new])
        return found

    def expand(self, nodes: Int64[np.ndarray, "m"]) -> None:
        """Add the edges of these nodes, and their ends as new nodes."""
        edges = self._edges(self.rho[nodes])
        cost = edges.cost
        if not self._ends.size:  # the number of transitions is known only now
            shape = (len(self._rho), cost.shape[1])
            self._ends, self._cost = np.full(shape, NO_NODE, np.int32), np.full(shape, np.inf, np.float32)
            self._probability, self._steps = np.full((2, *shape), np.nan, np.float32)
        real = np.isfinite(cost)
        rho, owner = edges.ends[real], np.repeat(self.owner[nodes], real.sum(axis=1))
        found, new = self._index.intern(self._hash(rho, owner))
        self._append(rho[new], owner[new])
        target = np.full(cost.shape, NO_NODE, np.int32)
        target[real] = found
        self.ends[nodes] = target
        self.cost[nodes] = np.where(real, cost, np.inf)
        if edges.probability is not None:
            self.probability[nodes] = edges.probability
        if edges.steps is not None:
            self.steps[nodes] = edges.steps
        self.expanded[nodes] = True
        self._relax(nodes)

    def _relax(self, nodes: Int64[np.ndarray, "m"]) -> None:
        """Propagate the reach of nodes along their edges, and onwards from every expanded node that it lowers."""
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
            self._probability, self._steps = _roomy(self._probability, room, np.nan), _roomy(self._steps, room, np.nan)
        self.rho[start:] = rho
        self.owner[start:] = owner

    def _hash(self, rho: Nodes, owner: Int64[np.ndarray, "m"]) -> Int64[np.ndarray, "m"]:
        cells = np.rint(rho / self.grain).astype(np.int64)
        return hashed(np.column_stack([cells, owner]), self._mixers)


def _roomy(array: np.ndarray, rows: int, blank: float) -> np.ndarray:
    """Copy of an array with more rows, the added ones blank."""
    larger = np.full((rows, *array.shape[1:]), blank, array.dtype)
    larger[: len(array)] = array
    return larger
