"""Searches on small graphs made by hand, whose answers can be read off."""

import itertools
import time

import numpy as np
import pytest

from saplan.planning import Edges, Graph, Outcome, Plan, PlannedTransition, Route, search
from saplan.planning.graph import NO_NODE
from saplan.planning.search import search_in

from .worlds import INFINITE, cost_along, edges_of, route, rows

DIAMOND = edges_of({0: [(1, 1.0), (2, 4.0)], 1: [(3, 5.0)], 2: [(3, 1.0)]})
"""0 → 1 → 3 costs 6, 0 → 2 → 3 costs 5."""


def test_the_cheaper_of_two_ways() -> None:
    found = route(DIAMOND, 0, 3)
    assert found.outcome is Outcome.FOUND
    plan = found.plan(np.array([0.0]))
    assert plan.rho == ((0.0,), (2.0,), (3.0,))
    assert plan.transitions == (1, 0)
    assert plan.cost == pytest.approx(5.0)


def test_a_shorter_path_is_not_a_cheaper_one() -> None:
    edges = edges_of({0: [(9, 10.0), (1, 1.0)], 1: [(2, 1.0)], 2: [(3, 1.0)], 3: [(9, 1.0)]})
    plan = route(edges, 0, 9).plan(np.array([0.0]))
    assert [rho for (rho,) in plan.rho] == [0, 1, 2, 3, 9]
    assert plan.cost == pytest.approx(4.0)


def test_an_unreachable_goal_is_a_value() -> None:
    found = route(DIAMOND, 0, 7)
    assert found.outcome is Outcome.UNREACHABLE
    assert found.plan(np.array([0.0])) == Plan(Outcome.UNREACHABLE)
    assert found.plan(np.array([0.0])).cost == INFINITE


def test_edges_have_a_direction() -> None:
    assert route(DIAMOND, 3, 0).outcome is Outcome.UNREACHABLE


def test_infinite_costs_are_no_edges() -> None:
    edges = edges_of({0: [(3, INFINITE), (1, 1.0)], 1: [(2, 1.0), (3, INFINITE)], 2: [(3, 1.0)]})
    found = route(edges, 0, 3)
    assert [rho for (rho,) in found.plan(np.array([0.0])).rho] == [0, 1, 2, 3]
    totals = found.totals(found.node(np.array([0.0])))
    assert totals[0] == INFINITE
    assert totals[1] == pytest.approx(3.0)


@pytest.mark.parametrize("price", [INFINITE, float("nan")])
def test_where_every_edge_is_infinite_nothing_is_reachable(price: float) -> None:
    assert route(edges_of({0: [(1, price)]}), 0, 1).outcome is Outcome.UNREACHABLE


@pytest.mark.parametrize("prices", [(3.0, 1.0), (1.0, 3.0), (1.0, 1.0)])
def test_of_parallel_edges_the_cheapest_counts(prices: tuple[float, float]) -> None:
    found = route(edges_of({0: [(1, prices[0]), (1, prices[1])], 1: [(2, 2.0), (2, 5.0)]}), 0, 2)
    plan = found.plan(np.array([0.0]))
    assert plan.cost == pytest.approx(3.0)
    assert plan.transitions == (int(np.argmin(prices)), 0)


def test_free_edges_are_edges() -> None:
    edges = edges_of({0: [(1, 0.0)], 1: [(2, 0.0)], 2: [(3, 0.0)]})
    plan = route(edges, 0, 3).plan(np.array([0.0]))
    assert plan.outcome is Outcome.FOUND
    assert plan.transitions == (0, 0, 0)
    assert plan.cost == pytest.approx(0.0, abs=1e-6)


def test_a_plan_does_not_circle_on_free_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, totals = itertools.count(), Route.totals

    def counted(route: Route, node: int) -> np.ndarray:
        assert next(calls) < 100, "walking in circles"
        return totals(route, node)

    monkeypatch.setattr(Route, "totals", counted)
    # From 0 and 1 the goal is equally far, and going to and fro between them costs nothing.
    edges = edges_of({0: [(0, 0.0), (1, 0.0), (5, 5.0)], 1: [(1, 0.0), (0, 0.0), (5, 5.0)]})
    plan = route(edges, 0, 5).plan(np.array([0.0]))
    assert plan.transitions == (2,)
    assert plan.cost == pytest.approx(5.0)


def test_a_start_at_the_goal_needs_no_transition() -> None:
    found = route(DIAMOND, 3, 3)
    assert found.outcome is Outcome.FOUND
    assert found.plan(np.array([3.0])) == Plan(Outcome.FOUND, 0.0, (3.0,), ())
    assert found.node(np.array([3.0])) == NO_NODE, "nobody looked beyond it"


def test_a_partial_goal_takes_the_nearest_node_that_satisfies_it() -> None:
    def edges(nodes: np.ndarray) -> Edges:
        ends = nodes[:, None] + np.array([[1, 0], [0, 1], [0, -1]], np.float32)
        cost = np.broadcast_to(np.array([1.0, 0.25, 3.0], np.float32), (len(nodes), 3)).copy()
        # Beyond the first column the wall is open at height 2 only.
        cost[(nodes[:, 0] == 1) & (nodes[:, 1] != 2), 0] = np.inf
        return Edges(ends, cost)

    plan = route(edges, (0, 0), (2, -np.inf), (np.inf, np.inf)).plan(np.zeros(2))
    assert plan.rho[-1] == (2.0, 2.0)
    assert plan.cost == pytest.approx(2.5)


def test_a_goal_with_a_tolerance() -> None:
    edges = edges_of({n: [(n + 1, 1.0), (n - 1, 1.0)] for n in range(-9, 9)})
    plan = route(edges, 0, 2.6, 4.4).plan(np.array([0.0]))
    assert plan.rho[-1] == (3.0,)
    assert route(edges, 0, 2.6, 2.9, max_nodes=50).outcome is not Outcome.FOUND


def test_no_time_at_all_is_reported_as_such() -> None:
    found = route(DIAMOND, 0, 3, max_seconds=0)
    assert found.outcome is Outcome.LATE
    assert found.plan(np.array([0.0])) == Plan(Outcome.LATE)
    assert found.node(np.array([0.0])) == NO_NODE
    assert route(DIAMOND, 3, 3, max_seconds=0).outcome is Outcome.FOUND, "where one is, one needs no time to get"


def test_too_few_nodes_spend_the_budget() -> None:
    edges = edges_of({n: [(n + 1, 1.0)] for n in range(100)})
    assert route(edges, 0, 50, max_nodes=20).outcome is Outcome.SPENT
    assert route(edges, 0, 50, max_nodes=60).outcome is Outcome.FOUND
    assert len(route(edges, 0, 50, max_nodes=20).graph) == 20


def endless(nodes: np.ndarray) -> Edges:
    """ℕ² without bound: everything can be counted up for ever."""
    ends = nodes[:, None] + np.eye(2, dtype=np.float32)
    return Edges(ends, np.ones(ends.shape[:2], np.float32))


def test_an_endless_graph_stops_at_its_bound_of_nodes() -> None:
    began = time.monotonic()
    found = route(endless, (0, 0), (-5, -5), max_nodes=3000)
    assert found.outcome is Outcome.SPENT
    assert 3000 <= len(found.graph) < 3300
    assert time.monotonic() - began < 5


def test_an_endless_graph_stops_at_its_bound_of_time() -> None:
    def slowly(nodes: np.ndarray) -> Edges:
        time.sleep(0.01)
        return endless(nodes)

    began = time.monotonic()
    assert route(slowly, (0, 0), (-5, -5), max_nodes=10**9, max_seconds=0.3).outcome is Outcome.LATE
    assert 0.3 <= time.monotonic() - began < 5


def test_an_owner_that_is_spent_does_not_stop_the_others() -> None:
    low = rows((-5, -5), (3, 4), (0, 0))
    grain = np.ones(2, np.float32)
    routes = search(rows((0, 0), (0, 0), (0, 0)), low, low, grain, endless, max_nodes=500)
    assert [found.outcome for found in routes] == [Outcome.SPENT, Outcome.FOUND, Outcome.FOUND]
    assert routes[1].plan(np.zeros(2)).cost == pytest.approx(7.0)
    assert routes[2].plan(np.zeros(2)).cost == 0.0


def test_searches_share_nodes_and_scores_but_not_what_they_found() -> None:
    scored: list[float] = []

    def counted(nodes: np.ndarray) -> Edges:
        scored.extend(nodes[:, 0].tolist())
        return DIAMOND(nodes)

    graph = Graph(np.ones(1, np.float32), counted)
    first, second = search_in(graph, rows(0, 2), rows(3, 3), rows(3, 3))
    again = search_in(graph, rows(0), rows(1), rows(1))[0]
    assert sorted(scored) == [0.0, 1.0, 2.0], "each node is scored once"
    assert first.plan(np.array([0.0])).cost == pytest.approx(5.0)
    assert second.plan(np.array([2.0])).cost == pytest.approx(1.0)
    assert second.node(np.array([0.0])) == NO_NODE, "another search expanded it"
    assert second.met.tolist() == [[2.0], [3.0]]
    assert again.plan(np.array([0.0])).cost == pytest.approx(1.0)
    assert again.plan(np.array([2.0])).outcome is Outcome.UNREACHABLE


def test_values_within_a_grain_are_one_node() -> None:
    graph = Graph(np.array([0.5], np.float32), DIAMOND)
    graph.add(rows(0))
    assert graph.find(rows(0.2)).tolist() == [0]
    assert graph.find(rows(0.3)).tolist() == [NO_NODE]


def test_the_way_on_is_a_look_up() -> None:
    found = route(DIAMOND, 0, 3)
    assert found.plan(np.array([2.0])).rho == ((2.0,), (3.0,))
    assert found.plan(np.array([2.0])).cost == pytest.approx(1.0)
    assert found.plan(np.array([8.0])).outcome is Outcome.UNREACHABLE
    assert found.node(np.array([8.0])) == NO_NODE


def dearer(*prices: tuple[float, int, float]) -> Route:
    """The way from 0 to 3 with some edges of the diamond made to cost more."""
    raised = [(np.array([at], np.float32), k, price) for at, k, price in prices]
    return route(DIAMOND, 0, 3, raised=[raised])


def test_a_raised_price_leads_around() -> None:
    assert dearer((0, 1, 0.5)).plan(np.array([0.0])).transitions == (1, 0), "still cheaper"
    found = dearer((0, 1, 0.5), (0, 1, 2.0))
    plan = found.plan(np.array([0.0]))
    assert plan.transitions == (0, 0), "prices add up"
    assert plan.cost == pytest.approx(cost_along(DIAMOND, plan)) == pytest.approx(6.0)
    assert found.plan(np.array([2.0])).cost == pytest.approx(1.0), "elsewhere nothing has changed"


def test_a_price_raised_elsewhere_changes_nothing() -> None:
    assert dearer((77, 0, 10.0)).plan(np.array([0.0])).cost == pytest.approx(5.0)


def test_raised_prices_are_those_of_one_search() -> None:
    raised = [[(np.zeros(1, np.float32), 1, 9.0)], []]
    graph = Graph(np.ones(1, np.float32), DIAMOND)
    dear, plain = search_in(graph, rows(0, 0), rows(3, 3), rows(3, 3), raised=raised)
    assert dear.plan(np.array([0.0])).cost == pytest.approx(6.0)
    assert plain.plan(np.array([0.0])).cost == pytest.approx(5.0)
    successors = dear.successors(np.array([0.0], np.float32))
    assert successors is not None
    np.testing.assert_allclose(successors.cost, [1.0, 13.0])
    np.testing.assert_allclose(successors.raised, [0.0, 9.0])


def test_a_plan_can_begin_with_another_transition_than_the_cheapest() -> None:
    plan = route(DIAMOND, 0, 3).plan(np.array([0.0]), first=0)
    assert plan.transitions == (0, 0)
    assert plan.rho == ((0.0,), (1.0,), (3.0,))
    assert plan.cost == pytest.approx(6.0)


def test_a_plan_carries_the_estimates_that_its_edges_were_priced_with() -> None:
    def edges(nodes: np.ndarray) -> Edges:
        priced = DIAMOND(nodes)
        steps = np.where(nodes == 0, np.nan, nodes + 10).astype(np.float32)
        return priced._replace(probability=np.exp(-priced.cost), steps=np.broadcast_to(steps, priced.cost.shape))

    found = route(edges, 0, 3)
    first, second = found.plan(np.array([0.0])).path
    assert first == PlannedTransition(1, (2.0,), float(np.exp(np.float32(-4))), None)
    assert second == PlannedTransition(0, (3.0,), float(np.exp(np.float32(-1))), 12.0)
    successors = found.successors(np.array([0.0], np.float32))
    assert successors is not None
    np.testing.assert_allclose(successors.probability, np.exp([-1.0, -4.0]), rtol=1e-6)
    np.testing.assert_allclose(successors.with_first(np.array([0.5, 3.0])), [5.5, 4.0])
