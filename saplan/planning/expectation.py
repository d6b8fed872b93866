"""Plans where changes are uncertain: the least cost in expectation, by value iteration over all ρ that can be come to.

On ℝ an entry of 𝓑 is a mean with a spread. A path of means takes every change for certain, and does not see that near
a goal one change may well miss where another would not. Here a transition has several ends, all equally likely.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Float32, Int64

from saplan.algebra.hashing import hashed, mixers
from saplan.planning.graph import NO_NODE, Nodes, Raised, raised_at
from saplan.planning.node_index import Index
from saplan.planning.search import Outcome, Plan, Ways

FAR = 60.0
"""The cost of what leads nowhere, in nats: far above that of any sensible plan."""
SWEEPS = 200
LONGEST = 100
"""Transitions of a path that is shown."""
ENOUGH = 1e-3
"""Nats that values may still change by when iteration ends."""

SAME = np.float32(1e-3)
"""Share of a cell within which two ρ are the very same."""

SpreadEdges = Callable[
    [Nodes], tuple[Float32[np.ndarray, "n C Q K"], Bool[np.ndarray, "n C Q"], Float32[np.ndarray, "n C"]]
]
"""ρ of a batch of nodes → the ends of all transitions from them, which of these can be, and costs (infinite: none)."""


class Landscape:
    """All ρ that can be come to, on a grid, with what every transition costs and where it may lead. It has no goal."""

    def __init__(
        self, cells: Float32[np.ndarray, "K"], edges: SpreadEdges, max_nodes: int, max_seconds: float = np.inf
    ) -> None:
        """`cells` is the spacing of the grid; `max_nodes` bounds it, `max_seconds` every call where a person waits."""
        self.cells, self.edges, self.max_nodes, self.max_seconds = cells, edges, max_nodes, max_seconds
        self._index, self._mixers = Index(), mixers(len(cells))
        self._rho: list[np.ndarray] = []
        self._ends: list[np.ndarray] = []
        self._cost: list[np.ndarray] = []
        self._solved: dict[bytes, np.ndarray] = {}
        self.complete = True
        """Whether every reachable ρ has been expanded."""
        self.late = False
        """Whether time, not the number of nodes, has cut it short."""

    @property
    def full(self) -> bool:
        """Whether there is no room for further nodes."""
        return self._index.size >= self.max_nodes

    def find(self, rho: Nodes) -> Int64[np.ndarray, "m"]:
        """The nodes of given ρ, NO_NODE where there is none."""
        return self._index.find(self._keys(rho))

    def cover(self, starts: Nodes, deadline: float) -> None:
        """Expands every ρ reachable from these, until a bound is reached; the next call continues from there."""
        met, looked = self._index.size, sum(map(len, self._cost))
        self._meet(starts)
        waiting = np.concatenate(self._rho)[looked:]
        while len(waiting) and (not self._ends or (not self.full and time.monotonic() < deadline)):
            ends, real, cost = self.edges(waiting)
            real &= np.isfinite(cost)[:, :, None]
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
        """Arrays of all nodes; those not looked beyond yet, the last ones, lead nowhere."""
        self._rho, self._ends, self._cost = ([np.concatenate(x)] for x in (self._rho, self._ends, self._cost))
        blank = (waiting, *self._ends[0].shape[1:])
        self.rho = self._rho[0]
        self.ends = np.concatenate([self._ends[0], np.full(blank, NO_NODE, np.int64)])
        self.cost = np.concatenate([self._cost[0], np.full(blank[:2], np.inf)])
        self._transitions = self._matrices()

    def _meet(self, rho: Nodes) -> Float32[np.ndarray, "new K"]:
        """Enters those that are new, on the grid, and returns them."""
        _, new = self._index.intern(self._keys(rho))
        fresh = (np.rint(rho[new] / self.cells) * self.cells).astype(np.float32)
        self._rho.append(fresh)
        return fresh

    def _keys(self, rho: Nodes) -> Int64[np.ndarray, "m"]:
        return hashed(np.rint(rho / self.cells).astype(np.int64), self._mixers)

    def _matrices(self) -> list[tuple[scipy.sparse.csr_array, Float32[np.ndarray, "nodes 1"]]]:
        """For every transition that is one somewhere: the chances of its ends from every node, and its cost."""
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
        """The expected cost from every node to each goal, `FAR` where there is no way."""
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
        """The values, and whether they have settled."""
        at_goal = np.all((self.rho[:, None] >= low) & (self.rho[:, None] <= high), axis=2)
        value = np.where(at_goal, 0, FAR).astype(np.float32)
        for _ in range(SWEEPS):
            new = np.full_like(value, FAR)
            for chances, cost in self._transitions:
                then = chances @ value
                then += cost
                np.minimum(new, then, out=new)
            new[at_goal] = 0
            change, value = np.max(np.abs(new - value)), new
            if change < ENOUGH:
                break
            if time.monotonic() > deadline:
                return value, False
        return value, True

    def routes(self, rho: Nodes, low: Nodes, high: Nodes, raised: Raised = ()) -> list["ExpectedRoute"]:
        """The ways from several ρ, each to a goal of its own."""
        deadline = time.monotonic() + self.max_seconds
        if not self.complete or np.any(self.find(rho) == NO_NODE):
            self.cover(rho, deadline)
        values = self.values(low, high, deadline)
        return [ExpectedRoute(self, rho[k], values[:, k], low[k], high[k], raised) for k in range(len(rho))]


@dataclass(frozen=True)
class ExpectedRoute:
    """What is known about one goal from anywhere in a landscape."""

    landscape: Landscape
    start: Float[np.ndarray, "K"]
    values: Float[np.ndarray, "nodes"]
    low: Float32[np.ndarray, "K"]
    high: Float32[np.ndarray, "K"]
    raised: Raised

    @property
    def outcome(self) -> Outcome:
        """How the search from the start ended."""
        ways = self.ways(self.start)
        at_goal = np.all((self.start >= self.low) & (self.start <= self.high))
        if at_goal or (ways is not None and np.isfinite(ways.total).any()):
            return Outcome.FOUND
        return self._nowhere

    @property
    def _nowhere(self) -> Outcome:
        if self.landscape.complete:
            return Outcome.UNREACHABLE
        return Outcome.LATE if self.landscape.late else Outcome.SPENT

    def stale(self, rho: Float[np.ndarray, "K"]) -> bool:
        """Whether a new search from ρ may find a path although this one found none: it was cut short elsewhere."""
        if self.landscape.complete or np.array_equal(rho, self.start):
            return False
        ways = self.ways(rho)
        return ways is None or not np.isfinite(ways.total).any()

    def knows(self, rho: Float[np.ndarray, "K"]) -> bool:
        """Whether ρ had been met when this was found out."""
        return bool(self._find(rho[None])[0] != NO_NODE)

    def _find(self, rho: Float[np.ndarray, "m K"]) -> Int64[np.ndarray, "m"]:
        found = self.landscape.find(rho.astype(np.float32))
        return np.where(found < len(self.values), found, NO_NODE)

    def ways(self, rho: Float[np.ndarray, "K"]) -> Ways | None:
        """Every transition from this very ρ, not from the middle of its cell; None if ρ was not met."""
        node = self._find(rho[None])[0]
        if node == NO_NODE:
            return None
        ends, real, cost = (np.array(x[0]) for x in self.landscape.edges(np.asarray(rho, np.float32)[None]))
        places = self._find(ends.reshape(-1, len(rho))).reshape(real.shape)
        real &= places != NO_NODE
        there = np.all((ends >= self.low) & (ends <= self.high), axis=-1)
        value = np.where(there, 0.0, np.where(real, self.values[np.maximum(places, 0)], FAR))
        then = np.sum(value * real, axis=1) / np.maximum(real.sum(axis=1), 1)
        raised = raised_at(np.asarray(rho, np.float32), self.raised, self.landscape.cells * SAME, len(cost))
        cost = np.where(real.any(axis=1), cost, np.inf) + raised
        total = np.where(then < FAR, cost + then, np.inf)
        return Ways(cost, raised, total, np.isfinite(total))

    def plan(self, rho: Float[np.ndarray, "K"]) -> Plan:
        """The path that is taken if every change turns out as its mean. It may end before the goal: where means would
        lead round in a circle, only chance leads on.
        """
        path, transitions = [np.asarray(rho, np.float32)], list[int]()
        cost, met = 0.0, set[int]()
        while not np.all((path[-1] >= self.low) & (path[-1] <= self.high)) and len(transitions) < LONGEST:
            ways, node = self.ways(path[-1]), int(self._find(path[-1][None])[0])
            if ways is None or not np.isfinite(ways.total.min()) or node in met:
                break
            met.add(node)
            best = int(np.argmin(ways.total))
            cost = cost or float(ways.total[best])
            transitions.append(best)
            path.append(self.end(path[-1], best))
        if len(path) == 1 and np.any((path[0] < self.low) | (path[0] > self.high)):
            return Plan(self._nowhere)
        return Plan(Outcome.FOUND, cost, tuple(tuple(map(float, place)) for place in path), tuple(transitions))

    def end(self, rho: Float[np.ndarray, "K"], transition: int) -> Float32[np.ndarray, "K"]:
        """Where a transition leads in the mean."""
        ends, real, _ = self.landscape.edges(np.asarray(rho, np.float32)[None])
        return ends[0, transition][real[0, transition]].mean(axis=0).astype(np.float32)

    @property
    def met(self) -> Nodes:
        """Every ρ that can be come to, in the middle of its cell."""
        return self.landscape.rho
