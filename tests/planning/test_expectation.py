"""Plans in expectation against what can be worked out by hand, and against plain value iteration."""

import itertools
import time
from typing import Any

import numpy as np
import pytest

from saplan.planning import Landscape, Outcome, SpreadEdges, expected_routes

CELL = np.array([0.25], np.float32)


def line(changes: list[list[float]], costs: list[float], low: float, high: float) -> Any:
    """A stretch of ℝ where every transition has the same ends everywhere, as far as the stretch goes."""

    def edges(rho: np.ndarray) -> SpreadEdges:
        ends = rho[:, None, None, :] + np.array(changes, np.float32)[None, :, :, None]
        real: np.ndarray = np.all((ends >= low) & (ends <= high), axis=3)
        cost = np.broadcast_to(np.array(costs, np.float32), real.shape[:2]).copy()
        return SpreadEdges(ends, real, cost, np.exp(-cost), 10 * cost)

    return edges


def one_route(edges: Any, start: float, low: float, high: float, raised: Any = (), **bounds: Any) -> Any:
    landscape = Landscape(CELL, edges, **({"max_nodes": 10_000, "max_seconds": 60.0} | bounds))
    arguments: Any = [*(np.array([[x]], np.float32) for x in (start, low, high)), [raised]]
    return expected_routes(landscape, *arguments)[0]


def at(x: float) -> np.ndarray:
    return np.array([x], np.float32)


def test_certain_changes_are_the_shortest_path() -> None:
    route = one_route(line([[1.0, 1.0], [-0.25, -0.25]], [1.0, 0.1], 0, 10), 0.0, 4.75, 4.75)
    successors = route.successors(at(0.0))
    assert successors.total[0] == pytest.approx(5 * 1.0 + 0.1, abs=0.01), "five on, one quarter back"
    assert route.successors(at(5.0)).total[1] == pytest.approx(0.1, abs=0.01)


def test_a_throw_that_may_miss_is_tried_again() -> None:
    """From 1 a throw lands at 0 or at 2, the goal; from 0 a sure step leads back: V(1) = 1 + (V(0) + 0) / 2."""
    route = one_route(line([[-1.0, 1.0], [1.0, 1.0]], [1.0, 3.0], 0, 2), 1.0, 2.0, 2.0)
    successors = route.successors(at(1.0))
    # The sure step costs 3. The throw: V(0) = min(3 + V(1), 1 + V(1)) as only its upper end is real there.
    # V(1) = min(3, 1 + V(0) / 2) with V(0) = 1 + V(1), hence V(1) = 1 + (1 + V(1)) / 2 = 3.
    assert successors.total[0] == pytest.approx(3.0, abs=0.02)
    assert successors.total[1] == pytest.approx(3.0, abs=0.02)


def test_near_the_goal_the_mean_is_not_what_counts() -> None:
    """Means: one leap of 1 with a wide spread hits exactly. In expectation two sure halves are cheaper."""
    edges = line([[0.25, 1.0, 1.75], [0.5, 0.5, 0.5]], [1.0, 0.7], 0, 1.5)
    successors = one_route(edges, 0.0, 1.0, 1.0).successors(at(0.0))
    assert int(np.argmin(successors.total)) == 1
    assert successors.total[1] == pytest.approx(1.4, abs=0.01)


def test_the_very_place_counts_not_the_middle_of_its_cell() -> None:
    """0.1 lies in the cell of 0, from which one step leads into the goal; from 0.1 itself it does not."""
    route = one_route(line([[1.0, 1.0]], [1.0], 0, 3), 0.0, 0.95, 1.05)
    assert route.successors(at(0.0)).total[0] == pytest.approx(1.0)
    assert route.successors(at(0.1)).total[0] == pytest.approx(1.0), "its end is in the cell of the goal"
    wide = one_route(line([[1.0, 1.0]], [1.0], 0, 3), 0.0, 1.08, 1.12)
    assert wide.successors(at(0.1)).total[0] == pytest.approx(1.0), "the end itself is at the goal, its cell is not"


def test_a_raised_edge_costs_more_from_that_place_alone() -> None:
    edges = line([[1.0, 1.0]], [1.0], 0, 5)
    route = one_route(edges, 0.0, 3.0, 3.0, raised=[(at(1.0), 0, 2.0)])
    assert route.successors(at(1.0)).total[0] == pytest.approx(4.0)
    assert route.successors(at(2.0)).total[0] == pytest.approx(1.0)


def test_what_leads_nowhere_and_what_was_never_met() -> None:
    route = one_route(line([[1.0, 1.0]], [1.0], 0, 5), 2.0, 0.0, 0.0)
    assert not np.isfinite(route.successors(at(2.0)).total).any()
    assert route.knows(at(3.0))
    assert not route.knows(at(1.0))
    assert route.successors(at(1.0)) is None


def test_the_bounds_hold() -> None:
    edges = line([[0.25, 0.25]], [1.0], 0, 1e6)
    route = one_route(edges, 0.0, 9e5, 9e5, max_nodes=500)
    assert len(route.landscape.rho) <= 502
    began = time.monotonic()
    one_route(edges, 0.0, 9e5, 9e5, max_seconds=0.2, max_nodes=10**9)
    assert time.monotonic() - began < 20


def test_a_landscape_stays_in_its_box() -> None:
    edges = line([[0.25, 0.25]], [1.0], 0, 1e6)
    box = np.array([[0.0], [5.0]])
    route = one_route(edges, 0.0, 4.9, 5.1, box=box)
    assert route.outcome is Outcome.FOUND
    assert route.landscape.complete
    assert route.landscape.rho.max() == 5.0
    assert one_route(edges, 0.0, 5.9, 6.1, box=box).outcome is Outcome.UNREACHABLE


def test_a_landscape_grows_and_old_routes_stay_right() -> None:
    landscape = Landscape(CELL, line([[1.0, 1.0]], [1.0], 0, 20), 1000, 60.0)

    def ask(*box: float) -> Any:
        arrays: Any = [np.array([[x]], np.float32) for x in box]
        return expected_routes(landscape, *arrays)[0]

    first = ask(5.0, 8.0, 8.0)
    second = ask(0.0, 8.0, 8.0)
    assert first.successors(at(5.0)).total[0] == pytest.approx(3.0)
    assert second.successors(at(0.0)).total[0] == pytest.approx(8.0)
    assert not first.knows(at(0.0)), "it was found out before that place was met"


def test_what_a_bound_cut_off_is_gone_on_with() -> None:
    landscape = Landscape(CELL, line([[0.25, 0.25]], [1.0], 0, 50), 10_000, max_seconds=0.0)
    box: Any = [np.array([[x]], np.float32) for x in (0.0, 5.0, 5.0)]
    assert expected_routes(landscape, *box)[0].successors(at(0.0)) is not None
    assert not landscape.complete
    landscape.max_seconds = 60.0
    successors = expected_routes(landscape, *box)[0].successors(at(0.0))
    assert successors is not None
    assert successors.total[0] == pytest.approx(20.0)
    assert landscape.complete


def test_a_route_says_how_its_search_ended_and_when_another_may_find_more() -> None:
    edges = line([[0.25, 0.25]], [1.0], 0, 50)
    cut = one_route(edges, 0.0, 40.0, 40.0, max_nodes=20)
    assert cut.outcome is Outcome.SPENT
    assert not cut.stale(at(0.0))
    assert cut.stale(at(2.0)), "from there the goal may be within the bound"
    found = one_route(edges, 0.0, 2.0, 2.0)
    assert found.outcome is Outcome.FOUND
    assert not found.stale(at(1.0))
    assert one_route(edges, 5.0, 2.0, 2.0).outcome is Outcome.UNREACHABLE
    assert one_route(edges, 0.0, 9e5, 9e5, max_seconds=0.0).outcome is Outcome.LATE


@pytest.mark.parametrize("seed", range(20))
def test_random_worlds_against_plain_value_iteration(seed: int) -> None:
    random = np.random.default_rng(seed)
    size, transitions, outcomes = 12, 3, 3
    ends = random.integers(size, size=(size, transitions, outcomes))
    cost = random.uniform(0.1, 2.0, (size, transitions)).astype(np.float32)
    cost[random.random(cost.shape) < 0.2] = np.inf
    cost[:, 0] = np.where(np.isfinite(cost[:, 0]), cost[:, 0], 1.0)
    goal = int(random.integers(size))

    def edges(rho: np.ndarray) -> SpreadEdges:
        node = np.rint(rho[:, 0]).astype(int)
        real = np.broadcast_to(np.isfinite(cost[node])[:, :, None], (len(node), transitions, outcomes)).copy()
        return SpreadEdges(ends[node][..., None].astype(np.float32), real, cost[node], np.exp(-cost[node]), cost[node])

    value = np.where(np.arange(size) == goal, 0.0, 60.0)
    for _ in itertools.repeat(None, 500):
        value = np.minimum(60.0, np.min(cost + value[ends].mean(axis=2), axis=1))
        value[goal] = 0.0
    landscape = Landscape(np.ones(1, np.float32), edges, 1000, 60.0)
    starts = np.arange(size, dtype=np.float32)[:, None]
    goals = np.full((size, 1), goal, np.float32)
    routes = expected_routes(landscape, starts, goals, goals)
    for k, route in enumerate(routes):
        node = int(landscape.find(starts[k : k + 1])[0])
        assert route.values[node] == pytest.approx(value[k], abs=0.05)


def test_a_path_of_means_ends_at_the_goal() -> None:
    edges = line([[0.75, 1.0, 1.25], [-0.25, -0.25, -0.25]], [1.0, 0.4], 0, 10)
    route = one_route(edges, 0.0, 2.75, 3.25)
    plan = route.plan(at(0.0))
    assert plan.outcome is Outcome.FOUND
    assert plan.transitions == (0, 0, 0)
    assert [place[0] for place in plan.rho] == [0.0, 1.0, 2.0, 3.0]
    assert plan.cost == pytest.approx(route.successors(at(0.0)).total.min())
    assert [(step.probability, step.steps) for step in plan.path] == [(pytest.approx(np.exp(-1)), 10.0)] * 3
    assert route.plan(at(3.0)).transitions == ()


def test_the_detector_is_asked_about_every_place_once() -> None:
    edges = line([[0.75, 1.0, 1.25]], [1.0], 0, 10)
    asked: list[np.ndarray] = []

    def asking(rho: np.ndarray) -> Any:
        asked.append(rho.copy())
        return edges(rho)

    route = one_route(asking, 0.0, 2.75, 3.25)
    asked.clear()
    for _ in range(3):
        assert route.successors(at(0.0)) is not None
        assert route.outcome is Outcome.FOUND
        assert route.plan(at(0.0)).transitions == (0, 0, 0)
    assert [float(rho[0, 0]) for rho in asked] == [0.0, 1.0, 2.0]


def test_a_path_that_only_chance_can_end_is_not_walked_for_ever() -> None:
    """A throw that is never the goal in the mean: the path shows it once, and stops where it would circle."""
    route = one_route(line([[-1.0, 1.0]], [1.0], 0, 4), 2.0, 3.0, 3.0)
    assert len(route.plan(at(2.0)).transitions) == 1


def test_there_is_no_path_to_where_nothing_leads() -> None:
    assert one_route(line([[1.0, 1.0]], [1.0], 0, 5), 1.0, 0.0, 0.0).plan(at(1.0)).outcome is Outcome.UNREACHABLE
