"""The implicit attribute graph: nodes are ρ, edges are the transitions of 𝓑, made only as far as they are needed.

Several searches can share one graph without seeing each other: every node belongs to an owner, and edges stay with
their owner. That is how a thousand tasks are planned with a handful of large batches.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

Nodes = Float32[np.ndarray, "n K"]
EdgeFunction = Callable[[Nodes], tuple[Float32[np.ndarray, "n C K"], Float32[np.ndarray, "n C"]]]
"""ρ of a batch of nodes → the ends of all transitions from them, and their costs (infinite: no edge)."""

NO_NODE = -1
UNEXPANDED = -2


class Graph:
    """Nodes in the order they were met, and for every expanded node its edges."""

    def __init__(self, starts: Nodes, grain: Float32[np.ndarray, "K"], edges: EdgeFunction) -> None:
        """One start per owner; `grain` is the spacing below which two values of an attribute are the same node."""
        self.parallel = False
        """Whether two transitions somewhere lead to the same end."""
        self._edges = edges
        self._grain = grain
        generator = np.random.default_rng(0)
        self._mixers = generator.integers(1, 2**62, size=starts.shape[1] + 1, dtype=np.int64) | 1
        self.rho: Nodes = starts.astype(np.float32)
        self.owner: Int64[np.ndarray, "n"] = np.arange(len(starts))
        self.ends: Int64[np.ndarray, "n C"] = np.empty((0, 0), np.int64)
        self.cost: Float32[np.ndarray, "n C"] = np.empty((0, 0), np.float32)
        self.reach: Float64[np.ndarray, "n"] = np.zeros(len(starts))
        """The least cost found so far from the owner's start to every node."""
        self._sorted: Int64[np.ndarray, "n"] = np.empty(0, np.int64)
        self._order: Int64[np.ndarray, "n"] = np.empty(0, np.int64)
        keys = self._hash(self.rho, self.owner)
        self._index(np.sort(keys), np.argsort(keys))

    def __len__(self) -> int:
        return len(self.rho)

    @property
    def expanded(self) -> Bool[np.ndarray, "n"]:
        """Which nodes have their edges."""
        if not self.ends.size:
            return np.zeros(len(self), bool)
        return self.ends[:, 0] != UNEXPANDED

    def find(self, rho: Nodes, owner: Int64[np.ndarray, "m"]) -> Int64[np.ndarray, "m"]:
        """The nodes of given ρ, NO_NODE where there is none."""
        return self._lookup(self._hash(rho, owner))

    def expand(self, nodes: Int64[np.ndarray, "m"]) -> None:
        """Gives the nodes their edges, adding the ends that are new."""
        ends, cost = self._edges(self.rho[nodes])
        owner = np.repeat(self.owner[nodes], ends.shape[1])
        real = np.isfinite(cost).reshape(-1)
        keys = self._hash(ends.reshape(-1, ends.shape[2]), owner)
        target = np.full(keys.shape, NO_NODE)
        target[real] = self._lookup(keys[real])
        new = np.flatnonzero(real & (target == NO_NODE))
        _, first, inverse = np.unique(keys[new], return_index=True, return_inverse=True)
        target[new] = len(self) + inverse
        self._index(keys[new[first]], len(self) + np.arange(len(first)))
        self._append(ends.reshape(-1, ends.shape[2])[new[first]], owner[new[first]], ends.shape[1])
        self.ends[nodes] = target = target.reshape(ends.shape[:2])
        ordered = np.sort(target, axis=1)
        self.parallel |= bool(np.any((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)))
        self.cost[nodes] = np.where(real.reshape(cost.shape), cost, np.inf)
        self._relax(nodes)

    def _relax(self, nodes: Int64[np.ndarray, "m"]) -> None:
        """Carries the reach of nodes along their edges, and on from every node that this brings nearer."""
        while len(nodes):
            real = self.ends[nodes] >= 0
            end = self.ends[nodes][real]
            cost = (self.reach[nodes][:, None] + self.cost[nodes])[real]
            before = self.reach[end]
            np.minimum.at(self.reach, end, cost)
            nearer = np.unique(end[self.reach[end] < before])
            nodes = nearer[self.ends[nearer, 0] != UNEXPANDED]

    def _append(self, rho: Nodes, owner: Int64[np.ndarray, "m"], width: int) -> None:
        self.rho = np.concatenate([self.rho, rho])
        self.owner = np.concatenate([self.owner, owner])
        self.reach = np.concatenate([self.reach, np.full(len(rho), np.inf)])
        missing = len(self.rho) - len(self.ends)
        blank = np.full((missing, width), UNEXPANDED)
        self.ends = np.concatenate([self.ends.reshape(-1, width), blank])
        self.cost = np.concatenate([self.cost.reshape(-1, width), np.full((missing, width), np.inf, np.float32)])

    def _index(self, keys: Int64[np.ndarray, "m"], nodes: Int64[np.ndarray, "m"]) -> None:
        """Takes in sorted keys. A stable sort of two sorted runs is a merge, and costs no more than one."""
        keys, nodes = np.concatenate([self._sorted, keys]), np.concatenate([self._order, nodes])
        order = np.argsort(keys, kind="stable")
        self._sorted, self._order = keys[order], nodes[order]

    def _hash(self, rho: Nodes, owner: Int64[np.ndarray, "m"]) -> Int64[np.ndarray, "m"]:
        # 64 well-mixed bits: two of a million nodes collide with a probability below 1e-7.
        cells = np.rint(rho / self._grain).astype(np.int64)
        with np.errstate(over="ignore"):
            key = cells @ self._mixers[:-1] + owner * self._mixers[-1]
            key ^= key >> 29
            key *= np.int64(0x1B873593CC9E2D51)
            return key ^ (key >> 32)

    def _lookup(self, keys: Int64[np.ndarray, "m"]) -> Int64[np.ndarray, "m"]:
        place = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        return np.where(self._sorted[place] == keys, self._order[place], NO_NODE)
