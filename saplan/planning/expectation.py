"""Plans where changes are uncertain: routes of the least expected cost over a landscape of all reachable ρ.

On ℝ an entry of 𝓑 is a mean with a spread. A path of means treats every change as certain, and misses that near a goal
one change may overshoot where another would not. Here a transition has several ends, all equally likely.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Float32, Float64, Int64

from saplan.goals import meets
from saplan.planning.graph import NO_NODE, Nodes, Raised
from saplan.planning.landscape import FAR, Landscape, SpreadEdges
from saplan.planning.route import Outcome, Plan, PlannedTransition, Successors, known, to_tuple

LONGEST = 100
"""Transitions of a plan, at most."""
PLACES = 3
"""Places at which a change must have failed before failures count for their surroundings."""
SAME = np.float32(1e-3)
"""Share of a cell within which two ρ count as equal."""


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
        """The outcome for a ρ without a path."""
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


def expected_routes(
    landscape: Landscape, rho: Nodes, low: Nodes, high: Nodes, raised: Sequence[Raised] = ()
) -> list[ExpectedRoute]:
    """Routes from several ρ, each to its own goal; `raised` names, for each, edges with an added cost."""
    deadline = time.monotonic() + landscape.max_seconds
    if not landscape.complete or np.any(landscape.find(rho) == NO_NODE):
        landscape.cover(rho, deadline)
    values = landscape.values(low, high, deadline)
    raised = raised or [()] * len(rho)
    return [ExpectedRoute(landscape, rho[k], values[:, k], low[k], high[k], raised[k]) for k in range(len(rho))]
