"""Plans where changes are uncertain: the least expected cost, by value iteration over all reachable ρ.

On ℝ an entry of 𝓑 is a mean with a spread. A path of means treats every change as certain, and misses that near a goal
one change may overshoot where another would not. Here a transition has several ends, all equally likely.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Float32, Float64, Int64

from saplan.algebra.hashing import hashed, mixers
from saplan.goals import meets
from saplan.planning.graph import NO_NODE, Nodes, Raised
from saplan.planning.node_index import Index
from saplan.planning.route import Outcome, Plan, PlannedTransition, Successors, known, to_tuple

FAR = 60.0
"""Cost of a ρ without a path, in nats: far above that of any sensible plan."""
SWEEPS = 200
LONGEST = 100
"""Transitions of a plan, at most."""
GOALS = 64
"""Goals that are solved together: few enough for their values to stay in the cache."""
ENOUGH = 1e-3
"""Nats that values may still change by when iteration ends."""

KEPT = 64
"""Batches of edges that are kept: a plan asks about the ρ along it more than once."""
PLACES = 3
"""Places at which a change must have failed before failures count for their surroundings."""
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
        self,
        cells: Float32[np.ndarray, "K"],
        edges: SpreadEdgeFunction,
        max_nodes: int,
        max_seconds: float = np.inf,
        reach: Float32[np.ndarray, "K"] | None = None,
    ) -> None:
        """`cells` is the spacing of the grid, `max_nodes` bounds its size, `max_seconds` every call of `routes`.

        `reach` is how far from its ρ a failure still counts for about half; 0, the default, for that ρ alone.
        """
        self.cells, self.edges, self.max_nodes, self.max_seconds = cells, edges, max_nodes, max_seconds
        self.reach = np.zeros_like(cells) if reach is None else reach
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

    def routes(self, rho: Nodes, low: Nodes, high: Nodes, raised: Sequence[Raised] = ()) -> list["ExpectedRoute"]:
        """Routes from several ρ, each to its own goal; `raised` names, for each, edges with an added cost."""
        deadline = time.monotonic() + self.max_seconds
        if not self.complete or np.any(self.find(rho) == NO_NODE):
            self.cover(rho, deadline)
        values = self.values(low, high, deadline)
        raised = raised or [()] * len(rho)
        return [ExpectedRoute(self, rho[k], values[:, k], low[k], high[k], raised[k]) for k in range(len(rho))]


@dataclass(frozen=True)
class ExpectedRoute:
    """Everything known about one goal, from any ρ of a landscape."""

    landscape: Landscape
    start: Float[np.ndarray, "K"]
    values: Float[np.ndarray, "nodes"]
    low: Float32[np.ndarray, "K"]
    high: Float32[np.ndarray, "K"]
    raised: Raised

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
        return expected_successors([self], np.asarray(rho)[None])[0]

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
        return SpreadEdges(*(part[0] for part in self.landscape.edges_at(np.asarray(rho, np.float32)[None])))

    def _find(self, rho: Float[np.ndarray, "m K"]) -> Int64[np.ndarray, "m"]:
        found = self.landscape.find(rho.astype(np.float32))
        return np.where(found < len(self.values), found, NO_NODE)


def raised_near(
    rho: Float32[np.ndarray, "K"], raised: Raised, landscape: Landscape, transitions: int
) -> Float64[np.ndarray, "C"]:
    """Added cost of every transition at one ρ: failures in several places count, the less the farther away they were.

    One failure elsewhere may be bad luck, such as the yield of one hammer; failures in `PLACES` places are a boundary.
    """
    total, near = np.zeros(transitions), landscape.reach > 0
    reach = np.where(near, landscape.reach, 1.0)
    places = Counter(transition for _, transition in {(place.tobytes(), transition) for place, transition, _ in raised})
    for place, transition, added in raised:
        away = np.abs(place - rho)
        if np.all(away <= landscape.cells * SAME):
            total[transition] += added
        elif places[transition] >= PLACES and np.all(near | (away <= landscape.cells * SAME)):
            total[transition] += added * np.exp2(-np.sum(np.where(near, away / reach, 0.0) ** 2))
    return total


def expected_successors(routes: Sequence[ExpectedRoute], rho: Float[np.ndarray, "n K"]) -> list[Successors | None]:
    """Every transition from one ρ per route, all in the same landscape; None where ρ is outside of it."""
    rho = np.asarray(rho, np.float32)
    landscape = routes[0].landscape
    ends, real, cost, *estimates = landscape.edges_at(rho)
    places = landscape.find(ends.reshape(-1, rho.shape[1])).reshape(real.shape)
    here = landscape.find(rho)
    found: list[Successors | None] = []
    for k, route in enumerate(routes):
        size = len(route.values)
        if not 0 <= here[k] < size:
            found.append(None)
            continue
        can = real[k] & (places[k] >= 0) & (places[k] < size)
        there = np.all(meets(route.low, route.high, ends[k]), axis=-1)
        value = np.where(there, 0.0, np.where(can, route.values[np.where(can, places[k], 0)], FAR))
        count = can.sum(axis=1)
        then = np.sum(value * can, axis=1) / np.maximum(count, 1)
        raised = raised_near(rho[k], route.raised, landscape, len(count))
        price = np.where(count > 0, cost[k], np.inf) + raised
        total = np.where(then < FAR, price + then, np.inf)
        found.append(Successors(price, raised, total, np.isfinite(total), *(part[k] for part in estimates)))
    return found
