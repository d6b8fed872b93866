"""All reachable ρ on a grid, where changes are uncertain, and the least expected cost of goals by value iteration."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Float32, Int64

from saplan.algebra.hashing import hashed, mixers
from saplan.goals import meets
from saplan.planning.graph import NO_NODE, Nodes
from saplan.planning.node_index import Index

FAR = 60.0
"""Cost of a ρ without a path, in nats: far above that of any sensible plan."""
SWEEPS = 200
"""Passes of value iteration, at most."""
GOALS = 64
"""Goals that are solved together: few enough for their values to stay in the cache."""
ENOUGH = 1e-3
"""Nats that values may still change by when iteration ends."""
KEPT = 64
"""Batches of edges that are kept: a plan asks about the ρ along it more than once."""


class SpreadEdges(NamedTuple):
    """All transitions from a batch of nodes, each with several equally likely ends."""

    ends: Float32[np.ndarray, "... C Q K"]
    real: Bool[np.ndarray, "... C Q"]
    """Whether each end is possible."""
    cost: Float32[np.ndarray, "... C"]
    """Infinite where there is no edge."""
    probability: Float32[np.ndarray, "... C"]
    steps: Float32[np.ndarray, "... C"]
    """Probability of success and expected environment steps; NaN where the method has no estimate."""


SpreadEdgeFunction = Callable[[Nodes], SpreadEdges]


class Landscape:
    """All reachable ρ on a grid, with the cost and the ends of every transition. It has no goal."""

    def __init__(
        self,
        cells: Float32[np.ndarray, "K"],
        edges: SpreadEdgeFunction,
        max_nodes: int,
        max_seconds: float = np.inf,
        reach: Float32[np.ndarray, "K"] | None = None,
        box: Float[np.ndarray, "2 K"] | None = None,
    ) -> None:
        """`cells` is the spacing of the grid, `max_nodes` bounds its size, `max_seconds` every search.

        `reach` is how far from its ρ a failure still counts for about half; 0, the default, for that ρ alone. `box` has
        the least and greatest values of every ρ; by default there are none.
        """
        self.cells, self.edges, self.max_nodes, self.max_seconds = cells, edges, max_nodes, max_seconds
        self.reach = np.zeros_like(cells) if reach is None else reach
        self.box = np.array([[-np.inf], [np.inf]]) if box is None else box
        self._index, self._mixers = Index(), mixers(len(cells))
        self._rho: list[np.ndarray] = []
        self._ends: list[np.ndarray] = []
        self._cost: list[np.ndarray] = []
        self._solved: dict[bytes, np.ndarray] = {}
        self._looked_at: dict[bytes, SpreadEdges] = {}
        self.complete = True
        """Whether every reachable ρ has been expanded."""
        self.late = False
        """Whether the bound on time, not on nodes, cut the expansion short."""

    @property
    def full(self) -> bool:
        """Whether there is no room for further nodes."""
        return self._index.size >= self.max_nodes

    def find(self, rho: Nodes) -> Int64[np.ndarray, "m"]:
        """Nodes of the given ρ; NO_NODE where there is none."""
        return self._index.find(self._keys(rho))

    def edges_at(self, rho: Nodes) -> SpreadEdges:
        """Edges of given ρ, not of the middle of their cells; those of the last few batches are kept."""
        name = rho.tobytes()
        if name not in self._looked_at:
            if len(self._looked_at) >= KEPT:
                self._looked_at.clear()
            self._looked_at[name] = self.edges(rho)
        return self._looked_at[name]

    def cover(self, starts: Nodes, deadline: float) -> None:
        """Expand every ρ reachable from `starts`, up to the bounds; the next call continues from there."""
        met, looked = self._index.size, sum(map(len, self._cost))
        self._meet(starts)
        waiting = np.concatenate(self._rho)[looked:]
        while len(waiting) and (not self._ends or (not self.full and time.monotonic() < deadline)):
            edges = self.edges(waiting)
            ends, cost = edges.ends, edges.cost
            inside = np.all((ends >= self.box[0]) & (ends <= self.box[1]), axis=-1)
            real = edges.real & inside & np.isfinite(cost)[:, :, None]
            target = np.full(real.shape, NO_NODE, np.int64)
            following = self._meet(ends[real])
            target[real] = self.find(ends[real])
            self._ends.append(target)
            self._cost.append(np.where(real.any(axis=2), cost, np.inf))
            waiting = following
        self.complete = not len(waiting)
        self.late = not self.complete and not self.full
        if self._index.size > met or sum(map(len, self._cost)) > looked:
            self._solved.clear()
            self._lay_out(len(waiting))

    def _lay_out(self, waiting: int) -> None:
        """Join the arrays of all nodes; the last ones, `waiting` to be expanded, have no edges."""
        self._rho, self._ends, self._cost = ([np.concatenate(x)] for x in (self._rho, self._ends, self._cost))
        blank = (waiting, *self._ends[0].shape[1:])
        self.rho = self._rho[0]
        self.ends = np.concatenate([self._ends[0], np.full(blank, NO_NODE, np.int64)])
        self.cost = np.concatenate([self._cost[0], np.full(blank[:2], np.inf)])
        self._transitions = self._matrices()

    def _meet(self, rho: Nodes) -> Float32[np.ndarray, "new K"]:
        """Enter the ρ that are new, rounded to the grid, and return them."""
        _, new = self._index.intern(self._keys(rho))
        fresh: Float32[np.ndarray, "new K"] = (np.rint(rho[new] / self.cells) * self.cells).astype(np.float32)
        self._rho.append(fresh)
        return fresh

    def _keys(self, rho: Nodes) -> Int64[np.ndarray, "m"]:
        return hashed(np.rint(rho / self.cells).astype(np.int64), self._mixers)

    def _matrices(self) -> list[tuple[scipy.sparse.csr_array, Float32[np.ndarray, "nodes 1"]]]:
        """Per transition with any edge: the probabilities of its ends from every node, and its cost."""
        nodes, transitions, _ = self.ends.shape
        found = []
        for one in range(transitions):
            real = self.ends[:, one] >= 0
            share = (real / np.maximum(real.sum(axis=1, keepdims=True), 1)).astype(np.float32)
            rows = np.broadcast_to(np.arange(nodes)[:, None], real.shape)[real]
            chances = scipy.sparse.csr_array((share[real], (rows, self.ends[:, one][real])), shape=(nodes, nodes))
            if real.any():
                found.append((chances, np.minimum(self.cost[:, one, None], FAR).astype(np.float32)))
        return found

    def values(self, low: Nodes, high: Nodes, deadline: float) -> Float[np.ndarray, "nodes goals"]:
        """Expected cost from every node to each goal; `FAR` without a path."""
        names = [one.tobytes() + other.tobytes() for one, other in zip(low, high, strict=True)]
        todo = [k for k, name in enumerate(names) if name not in self._solved]
        solved = dict(self._solved)
        if todo:
            found, settled = self._iterate(low[todo], high[todo], deadline)
            solved.update({names[k]: found[:, j] for j, k in enumerate(todo)})
            if settled:
                self._solved = solved
        return np.stack([solved[name] for name in names], axis=1)

    def _iterate(self, low: Nodes, high: Nodes, deadline: float) -> tuple[Float32[np.ndarray, "nodes goals"], bool]:
        """The values, and whether they have converged."""
        parts, settled = [], True
        for first in range(0, len(low), GOALS):
            goals = slice(first, first + GOALS)
            at_goal = np.all(meets(low[goals], high[goals], self.rho[:, None]), axis=2)
            value = np.where(at_goal, 0, FAR).astype(np.float32)
            for _ in range(SWEEPS):
                before = value.copy()
                # In place: a transition sees what those before it in this sweep have lowered. Values only fall.
                for chances, cost in self._transitions:
                    then = chances @ value
                    then += cost
                    np.minimum(value, then, out=value)
                if np.max(before - value) < ENOUGH:
                    break
                if time.monotonic() > deadline:
                    settled = False
                    break
            parts.append(value)
        return np.concatenate(parts, axis=1), settled
