"""Plans where changes are uncertain: the least expected cost, by value iteration over all reachable ρ.

On ℝ an entry of 𝓑 is a mean with a spread. A path of means treats every change as certain, and misses that near a goal
one change may overshoot where another would not. Here a transition has several ends, all equally likely.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Float32, Int64

from saplan.algebra.hashing import hashed, mixers
from saplan.goals import meets
from saplan.planning.graph import NO_NODE, Nodes, Raised, raised_at
from saplan.planning.node_index import Index
from saplan.planning.search import Outcome, Plan, PlannedTransition, Successors, known, to_tuple

FAR = 60.0
"""Cost of a ρ without a path, in nats: far above that of any sensible plan."""
SWEEPS = 200
LONGEST = 100
"""Transitions of a plan, at most."""
ENOUGH = 1e-3
"""Nats that values may still change by when iteration ends."""

SAME = np.float32(1e-3)
"""Share of a cell within which two ρ count as equal."""


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
        self, cells: Float32[np.ndarray, "K"], edges: SpreadEdgeFunction, max_nodes: int, max_seconds: float = np.inf
    ) -> None:
        """`cells` is the spacing of the grid, `max_nodes` bounds its size, `max_seconds` every call of `routes`."""
        self.cells, self.edges, self.max_nodes, self.max_seconds = cells, edges, max_nodes, max_seconds
        self._index, self._mixers = Index(), mixers(len(cells))
        self._rho: list[np.ndarray] = []
        self._ends: list[np.ndarray] = []
        self._cost: list[np.ndarray] = []
        self._solved: dict[bytes, np.ndarray] = {}
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

    def cover(self, starts: Nodes, deadline: float) -> None:
        """Expand every ρ reachable from `starts`, up to the bounds; the next call continues from there."""
        met, looked = self._index.size, sum(map(len, self._cost))
        self._meet(starts)
        waiting = np.concatenate(self._rho)[looked:]
        while len(waiting) and (not self._ends or (not self.full and time.monotonic() < deadline)):
            edges = self.edges(waiting)
            ends, cost = edges.ends, edges.cost
            real = edges.real & np.isfinite(cost)[:, :, None]
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
        at_goal = np.all(meets(low, high, self.rho[:, None]), axis=2)
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
        """Routes from several ρ, each to its own goal."""
        deadline = time.monotonic() + self.max_seconds
        if not self.complete or np.any(self.find(rho) == NO_NODE):
            self.cover(rho, deadline)
        values = self.values(low, high, deadline)
        return [ExpectedRoute(self, rho[k], values[:, k], low[k], high[k], raised) for k in range(len(rho))]


@dataclass(frozen=True)
class ExpectedRoute:
    """Everything known about one goal, from any ρ of a landscape."""

    landscape: Landscape
    start: Float[np.ndarray, "K"]
    values: Float[np.ndarray, "nodes"]
    low: Float32[np.ndarray, "K"]
    high: Float32[np.ndarray, "K"]
    raised: Raised
    _priced: dict[bytes, SpreadEdges] = field(default_factory=dict, repr=False, compare=False)
    """Edges of every ρ that was asked about: the detector is asked about each once."""

    @cached_property
    def outcome(self) -> Outcome:
        """How the search from the start ended."""
        return Outcome.FOUND if self._at_goal(self.start) or self._leads(self.start) else self.failure

    @property
    def failure(self) -> Outcome:
        """Why there is no path from a ρ that has none."""
        if self.landscape.complete:
            return Outcome.UNREACHABLE
        return Outcome.LATE if self.landscape.late else Outcome.SPENT

    def stale(self, rho: Float[np.ndarray, "K"]) -> bool:
        """Whether a new search from ρ may find a path that this one, cut short elsewhere, did not."""
        return not self.landscape.complete and not np.array_equal(rho, self.start) and not self._leads(rho)

    def knows(self, rho: Float[np.ndarray, "K"]) -> bool:
        """Whether the landscape included ρ when this route was made."""
        return bool(self._find(rho[None])[0] != NO_NODE)

    def successors(self, rho: Float[np.ndarray, "K"]) -> Successors | None:
        """Every transition from this very ρ, not from the middle of its cell; None if ρ is outside the landscape."""
        if not self.knows(rho):
            return None
        ends, real, cost, *estimates = self._edges(rho)
        places = self._find(ends.reshape(-1, len(rho))).reshape(real.shape)
        real = real & (places != NO_NODE)
        there = np.all(meets(self.low, self.high, ends), axis=-1)
        value = np.where(there, 0.0, np.where(real, self.values[np.maximum(places, 0)], FAR))
        then = np.sum(value * real, axis=1) / np.maximum(real.sum(axis=1), 1)
        raised = raised_at(np.asarray(rho, np.float32), self.raised, self.landscape.cells * SAME, len(cost))
        cost = np.where(real.any(axis=1), cost, np.inf) + raised
        total = np.where(then < FAR, cost + then, np.inf)
        return Successors(cost, raised, total, np.isfinite(total), *estimates)

    def plan(self, rho: Float[np.ndarray, "K"], first: int | None = None) -> Plan:
        """Path along which every change turns out as its mean, cheapest first or beginning with `first`.

        It may end before the goal: where means lead in a circle, only chance leads out of it.
        """
        place, cost = np.asarray(rho, np.float32), 0.0
        path, passed = list[PlannedTransition](), set[int]()
        while not self._at_goal(place) and len(path) < LONGEST:
            node, successors = int(self._find(place[None])[0]), self.successors(place)
            if successors is None or node in passed or not np.isfinite(successors.total.min()):
                break
            passed.add(node)
            chosen = int(np.argmin(successors.total)) if path or first is None else first
            cost = cost or float(successors.total[chosen])
            edges = self._edges(place)
            place = edges.ends[chosen][edges.real[chosen]].mean(axis=0).astype(np.float32)
            estimates = known(successors.probability[chosen]), known(successors.steps[chosen])
            path.append(PlannedTransition(chosen, to_tuple(place), *estimates))
        if not path and not self._at_goal(place):
            return Plan(self.failure)
        return Plan(Outcome.FOUND, cost, to_tuple(np.asarray(rho, np.float32)), tuple(path))

    @property
    def met(self) -> Nodes:
        """Every reachable ρ, in the middle of its cell."""
        return self.landscape.rho

    def _at_goal(self, rho: Float[np.ndarray, "K"]) -> bool:
        return bool(np.all(meets(self.low, self.high, rho)))

    def _leads(self, rho: Float[np.ndarray, "K"]) -> bool:
        """Whether some transition from ρ can lead to the goal."""
        successors = self.successors(rho)
        return successors is not None and bool(np.isfinite(successors.total).any())

    def _edges(self, rho: Float[np.ndarray, "K"]) -> SpreadEdges:
        """Edges of one ρ, without the axis of nodes."""
        place = np.asarray(rho, np.float32)
        if place.tobytes() not in self._priced:
            priced = (np.array(part[0]) for part in self.landscape.edges(place[None]))
            self._priced[place.tobytes()] = SpreadEdges(*priced)
        return self._priced[place.tobytes()]

    def _find(self, rho: Float[np.ndarray, "m K"]) -> Int64[np.ndarray, "m"]:
        found = self.landscape.find(rho.astype(np.float32))
        return np.where(found < len(self.values), found, NO_NODE)
