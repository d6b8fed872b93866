"""A* against Dijkstra: the same costs, and far fewer nodes where the prices of the equation lead it."""

import numpy as np
import pytest

from saplan.planning.counts import solve
from saplan.planning.graph import EdgeFunction, Edges, Graph
from saplan.planning.heuristic import potential
from saplan.planning.needs import Feasible
from saplan.planning.problem import Problem
from saplan.planning.route import Outcome, Route
from saplan.planning.search import search_in
from saplan.planning.side_by_side import LowerBound
from tests.planning.known_worlds import exchange, lights_out, switch_rules, switches
from tests.planning.small_problems import SmallProblem
from tests.planning.worlds import cost_along


def edges_of(problem: Problem, feasible: Feasible) -> EdgeFunction:
    """The edge function of a problem: changes at their costs wherever they are feasible."""

    def edges(rho: np.ndarray) -> Edges:
        count = len(problem.costs)
        ends = problem.repeat(np.repeat(rho.astype(float), count, axis=0), np.tile(np.arange(count), len(rho)))
        can = problem.inside(ends).reshape(len(rho), count) & feasible(rho) & problem.usable
        cost = np.where(can, problem.costs, np.inf).astype(np.float32)
        unknown = np.full_like(cost, np.nan)
        return Edges(ends.reshape(len(rho), count, -1).astype(np.float32), cost, unknown, unknown)

    return edges


def searched(problem: Problem, feasible: Feasible, remaining: LowerBound, max_nodes: int = 100_000) -> Route:
    """The route of A* led by a lower bound on the cost that remains."""
    start, low, high = (np.asarray(x, np.float32)[None] for x in (problem.start, problem.low, problem.high))
    graph = Graph(np.asarray(problem.space.grain, np.float32), edges_of(problem, feasible))
    return search_in(graph, start, low, high, max_nodes, bounds=[remaining])[0]


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_the_same_costs_as_dijkstra(first: int) -> None:
    for seed in range(first, first + 100):
        world = SmallProblem(seed)
        if not world.capped:
            continue
        route = searched(world.problem, world.feasible, potential(world.problem))
        plan, best = route.plan(world.problem.start), world.cheapest()
        np.testing.assert_allclose(plan.cost, best, atol=1e-5, err_msg=str(seed))
        assert route.outcome is (Outcome.FOUND if np.isfinite(best) else Outcome.UNREACHABLE)
        if plan.transitions:
            edges = edges_of(world.problem, world.feasible)
            np.testing.assert_allclose(cost_along(edges, plan), plan.cost, rtol=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_potentials_are_consistent(seed: int) -> None:
    """No change lowers h by more than it costs, and h is zero at goals."""
    world = SmallProblem(seed)
    bound = potential(world.problem)
    met, waiting = {tuple(map(float, world.problem.start))}, [tuple(map(float, world.problem.start))]
    while waiting and len(met) < 200:
        rho = waiting.pop()
        here = bound(np.array([rho]))[0]
        for change, cost in enumerate(world.problem.costs):
            end = world.end(rho, change)
            if end is not None:
                assert here <= cost + bound(np.array([end]))[0] + 1e-9
                if end not in met:
                    met.add(end)
                    waiting.append(end)
    at = np.array(sorted(met))
    goals = np.all((at >= world.problem.low) & (at <= world.problem.high), axis=1)
    np.testing.assert_allclose(bound(at)[goals], 0.0, atol=1e-9)


def test_prices_save_most_of_the_search() -> None:
    """Dijkstra meets over 126,000 nodes before it comes to this goal."""
    problem = exchange(8, (5, 12, 4))
    feasible = lambda rho: np.ones((len(rho), 9), bool)  # noqa: E731
    led = searched(problem, feasible, potential(problem))
    assert led.plan(problem.start).cost == solve(problem).cost == 27
    assert potential(problem)(problem.start[None])[0] >= 24
    assert len(led.met) < 25_000


def test_dials_count_in_the_potential() -> None:
    problem = switches((3, 3, 3), (1, 1, 1), 0)
    assert potential(problem)(problem.start[None])[0] == 3
    assert searched(problem, switch_rules, potential(problem)).plan(problem.start).cost == 5
    lights = lights_out(3, 3, 1)
    assert 0 < potential(lights)(lights.start[None])[0] <= solve(lights).cost + 1e-9


def test_a_bound_of_nodes_is_an_outcome() -> None:
    problem = exchange(8, (5, 12, 4))
    feasible = lambda rho: np.ones((len(rho), 9), bool)  # noqa: E731
    assert searched(problem, feasible, lambda rho: np.zeros(len(rho)), 500).outcome is Outcome.SPENT
