"""The implicit attribute graph: nodes are ρ, edges are transitions of 𝓑, and nodes are expanded only when needed.

Edges depend on ρ alone, not on a task or a goal. So one graph serves all searches of an agent, and every ρ is scored
once, however many of a thousand tasks come to it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int, Int32, Int64

from saplan.algebra.hashing import hashed, mixers
from saplan.planning.node_index import NO_NODE, Index

Nodes = Float32[np.ndarray, "n K"]
LARGEST = 256 * 2**20
"""Bytes of a graph from which on it takes no further searches: the next ones begin a new graph."""


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

__all__ = ["NO_NODE", "EdgeFunction", "Edges", "Graph", "Nodes", "Raised", "raised_at"]


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
    """Nodes in the order of discovery, and the edges of every expanded node. It has neither start nor goal."""

    def __init__(self, grain: Float32[np.ndarray, "K"], edges: EdgeFunction) -> None:
        """Start empty. Values of an attribute that round to the same multiple of `grain` are one node."""
        self._edges = edges
        self.grain = grain
        self._mixers = mixers(len(grain))
        self._index = Index()
        # Arrays grow by doubling; the first `len(self)` rows are in use.
        self._rho = np.empty((0, len(grain)), np.float32)
        self._expanded = np.empty(0, bool)
        self._ends = np.empty((0, 0), np.int32)
        self._cost = np.empty((0, 0), np.float32)
        self._probability = np.empty((0, 0), np.float32)
        self._steps = np.empty((0, 0), np.float32)

    def __len__(self) -> int:
        return self._index.size

    @property
    def rho(self) -> Nodes:
        """ρ of every node."""
        return self._rho[: len(self)]

    @property
    def expanded(self) -> Bool[np.ndarray, "n"]:
        """Whether every node has its edges."""
        return self._expanded[: len(self)]

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

    @property
    def full(self) -> bool:
        """Whether the arrays are as large as they should get."""
        arrays = self._rho, self._expanded, self._ends, self._cost, self._probability, self._steps
        return sum(array.nbytes for array in arrays) >= LARGEST

    def find(self, rho: Nodes) -> Int64[np.ndarray, "m"]:
        """Nodes of the given ρ; NO_NODE where there is none."""
        return self._index.find(self._hash(rho))

    def add(self, rho: Nodes) -> Int64[np.ndarray, "m"]:
        """Nodes of given ρ; those that are new join the graph without edges."""
        found, new = self._index.intern(self._hash(rho))
        self._append(rho[new])
        return found

    def expand(self, nodes: Int[np.ndarray, "m"]) -> None:
        """Add the edges of those of these nodes that have none yet, and their ends as new nodes."""
        nodes = np.unique(nodes[~self.expanded[nodes]])
        if not len(nodes):
            return
        edges = self._edges(self.rho[nodes])
        cost = edges.cost
        if not self._ends.size:  # the number of transitions is known only now
            shape = (len(self._rho), cost.shape[1])
            self._ends, self._cost = np.full(shape, NO_NODE, np.int32), np.full(shape, np.inf, np.float32)
            self._probability, self._steps = np.full((2, *shape), np.nan, np.float32)
        real = np.isfinite(cost)
        target = np.full(cost.shape, NO_NODE, np.int32)
        target[real] = self.add(edges.ends[real])
        self.ends[nodes] = target
        self.cost[nodes] = np.where(real, cost, np.inf)
        if edges.probability is not None:
            self.probability[nodes] = edges.probability
        if edges.steps is not None:
            self.steps[nodes] = edges.steps
        self.expanded[nodes] = True

    def _append(self, rho: Nodes) -> None:
        start = len(self) - len(rho)
        if len(self) > len(self._rho):
            room = 2 * len(self)
            self._rho, self._expanded = _roomy(self._rho, room, 0), _roomy(self._expanded, room, False)
            self._ends, self._cost = _roomy(self._ends, room, NO_NODE), _roomy(self._cost, room, np.inf)
            self._probability, self._steps = _roomy(self._probability, room, np.nan), _roomy(self._steps, room, np.nan)
        self.rho[start:] = rho

    def _hash(self, rho: Nodes) -> Int64[np.ndarray, "m"]:
        return hashed(np.rint(rho / self.grain).astype(np.int64), self._mixers)


def _roomy(array: np.ndarray, rows: int, blank: float) -> np.ndarray:
    """Copy of an array with more rows, the added ones blank."""
    larger = np.full((rows, *array.shape[1:]), blank, array.dtype)
    larger[: len(array)] = array
    return larger
