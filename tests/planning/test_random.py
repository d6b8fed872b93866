"""A thousand random worlds, a plain Dijkstra as the judge."""

from collections import Counter

import numpy as np
import pytest

from saplan.planning import Outcome, search

from .worlds import INFINITE, Lattice, cost_along, route, rows

CHUNK = 50
WORLDS = 1000


@pytest.mark.parametrize("first", range(0, WORLDS, CHUNK))
def test_plans_cost_what_brute_force_says(first: int) -> None:
    outcomes: Counter[Outcome] = Counter()
    for seed in range(first, first + CHUNK):
        world = Lattice(seed)
        start, low, high = world.task()
        best = world.cheapest(start, low, high)
        found = route(world.edges, start, low, high)
        plan = found.plan(np.array(start, np.float32))
        outcomes[plan.outcome] += 1
        assert found.outcome is plan.outcome is (Outcome.FOUND if best < INFINITE else Outcome.UNREACHABLE)
        assert plan.cost == pytest.approx(best, abs=1e-5), f"world {seed}"
        if plan.outcome is Outcome.FOUND:
            assert cost_along(world.edges, plan) == pytest.approx(best, abs=1e-5), f"world {seed}"
            assert np.all((low <= plan.rho[-1]) & (plan.rho[-1] <= high))
    assert min(outcomes[Outcome.FOUND], outcomes[Outcome.UNREACHABLE]) >= 5, "both kinds were tried"


@pytest.mark.parametrize("seed", range(100))
def test_the_way_on_is_the_same_from_every_node_of_a_path(seed: int) -> None:
    world = Lattice(seed)
    start, low, high = world.task()
    found = route(world.edges, start, low, high)
    whole = found.plan(np.array(start, np.float32))
    for passed, here in enumerate(whole.rho):
        rest = found.plan(np.array(here, np.float32))
        assert rest.outcome is Outcome.FOUND
        assert rest.rho == whole.rho[passed:]
        assert rest.transitions == whole.transitions[passed:]
        assert rest.cost == pytest.approx(cost_along(world.edges, rest), abs=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_several_owners_at_once(seed: int) -> None:
    world = Lattice(seed)
    tasks = [world.task() for _ in range(8)]
    starts, low, high = (rows(*column) for column in zip(*tasks, strict=True))
    routes = search(starts, low, high, np.ones(starts.shape[1], np.float32), world.edges)
    for found, task in zip(routes, tasks, strict=True):
        best = world.cheapest(*task)
        plan = found.plan(np.array(task[0], np.float32))
        assert plan.cost == pytest.approx(best, abs=1e-5)
        assert plan.outcome is (Outcome.FOUND if best < INFINITE else Outcome.UNREACHABLE)
        assert plan.cost == INFINITE or cost_along(world.edges, plan) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("seed", range(30))
def test_a_raised_price_is_an_edge_that_costs_more(seed: int) -> None:
    world = Lattice(seed)
    start, low, high = world.task()
    found = route(world.edges, start, low, high)
    plan = found.plan(np.array(start, np.float32))
    if not plan.transitions:
        return
    raised = [(np.array(start, np.float32), plan.transitions[0], 3.0)]
    dearer = route(world.edges, start, low, high, raised=[raised]).plan(np.array(start, np.float32))
    world.price[(*start, plan.transitions[0])] += 3.0
    assert dearer.cost == pytest.approx(world.cheapest(start, low, high), abs=1e-5)
    assert cost_along(world.edges, dearer) == pytest.approx(dearer.cost, abs=1e-5)
