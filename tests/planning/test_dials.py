"""Plans over dials, solved by the equation at every ρ; a breadth-first search over all states is the judge."""

import itertools
import time
from collections import deque

import numpy as np
import pytest

from saplan.algebra import Cyclic, Natural, Product
from saplan.planning.dials import DialRoute
from saplan.planning.graph import Edges
from saplan.planning.problem import Problem
from saplan.planning.route import Outcome


def presses(rows: int, columns: int) -> np.ndarray:
    """The changes of Lights Out."""
    places = np.array(list(itertools.product(range(rows), range(columns))))
    near: np.ndarray = np.abs(places[:, None] - places[None]).sum(axis=-1) <= 1
    return near.astype(float)


def problem(changes: np.ndarray, start: np.ndarray, goal: np.ndarray, q: int = 2) -> Problem:
    space = Product.of(**{f"d{k}": Cyclic(q) for k in range(changes.shape[1])})
    return Problem(space, start.astype(float), goal.astype(float), goal.astype(float), changes, np.ones(len(changes)))


def edges_of(changes: np.ndarray, q: int = 2, denied: tuple[int, ...] = ()) -> object:
    """Every change costs one everywhere, except that some are denied wherever the first dial shows 0."""

    def edges(nodes: np.ndarray) -> Edges:
        cost = np.ones((len(nodes), len(changes)), np.float32)
        for k in denied:
            cost[nodes[:, 0] == 0, k] = np.inf
        ends = (nodes[:, None] + changes[None]) % q
        return Edges(ends.astype(np.float32), cost, np.exp(-cost), np.full_like(cost, 3.0))

    return edges


def find(changes: np.ndarray, start: np.ndarray, goal: np.ndarray, q: int = 2, denied: tuple[int, ...] = ()) -> object:
    grain = np.ones(changes.shape[1], np.float32)
    return DialRoute.find(problem(changes, start, goal, q), edges_of(changes, q, denied), grain)  # type: ignore[arg-type]


def distances(changes: np.ndarray, start: np.ndarray, q: int) -> dict[tuple[int, ...], int]:
    """Fewest changes to every reachable state."""
    first = tuple(int(x) for x in start)
    found, queue = {first: 0}, deque([first])
    while queue:
        here = queue.popleft()
        for change in changes.astype(int).tolist():
            there = tuple((a + b) % q for a, b in zip(here, change, strict=True))
            if there not in found:
                found[there] = found[here] + 1
                queue.append(there)
    return found


@pytest.mark.parametrize(("rows", "columns", "q"), [(2, 2, 2), (3, 3, 2), (2, 2, 3), (1, 4, 2)])
def test_plans_are_shortest_and_unreachable_goals_are_named(rows: int, columns: int, q: int) -> None:
    changes, rng = presses(rows, columns), np.random.default_rng(0)
    start = rng.integers(0, q, rows * columns)
    reach = distances(changes, start, q)
    for goal in rng.integers(0, q, (40, rows * columns)):
        route = find(changes, start, goal, q)
        assert isinstance(route, DialRoute)
        plan = route.plan(start.astype(np.float32))
        key = tuple(int(x) for x in goal)
        if key not in reach:
            assert route.outcome is plan.outcome is Outcome.UNREACHABLE
            continue
        assert len(plan.path) == reach[key]
        here = start.astype(float)
        for step in plan.path:
            here = (here + changes[step.transition]) % q
            assert step.rho == tuple(here)
        assert np.array_equal(here, goal)


def test_every_change_that_is_counted_may_come_first() -> None:
    changes = presses(3, 3)
    goal = changes[[0, 4, 8]].sum(axis=0) % 2
    route = find(changes, np.zeros(9), goal)
    assert isinstance(route, DialRoute)
    successors = route.successors(np.zeros(9, np.float32))
    assert successors is not None
    assert np.flatnonzero(np.isfinite(successors.total)).tolist() == [0, 4, 8]
    assert np.flatnonzero(successors.nearer).tolist() == [0, 4, 8]
    # A change by mistake is only another start.
    slipped = changes[5].astype(np.float32)
    again = route.successors(slipped)
    assert again is not None
    assert np.flatnonzero(again.nearer).tolist() == [0, 4, 5, 8]
    assert route.successors(goal.astype(np.float32)) is None, "the goal holds"


def test_changes_that_the_edges_deny_wait_for_their_turn() -> None:
    changes = np.eye(3)
    route = find(changes, np.zeros(3), np.ones(3), denied=(2,))
    assert isinstance(route, DialRoute)
    transitions = [step.transition for step in route.plan(np.zeros(3, np.float32)).path]
    assert transitions.index(2) > transitions.index(0)
    assert find(changes, np.zeros(3), np.array([0, 0, 1]), denied=(2,)) is None, "a search has to find the detour"


def test_24_dials_take_milliseconds() -> None:
    changes, rng = presses(4, 6), np.random.default_rng(0)
    seconds = []
    for goal in rng.integers(0, 2, (20, 24)):
        began = time.monotonic()
        route = find(changes, np.zeros(24), goal)
        assert isinstance(route, DialRoute)
        assert route.plan(np.zeros(24, np.float32)).outcome is Outcome.FOUND
        seconds.append(time.monotonic() - began)
    assert np.median(seconds) < 0.1


def test_one_state_in_sixteen_of_4x4_is_reachable() -> None:
    changes, rng = presses(4, 4), np.random.default_rng(0)
    routes = [find(changes, np.zeros(16), goal) for goal in rng.integers(0, 2, (200, 16))]
    found = np.mean([isinstance(route, DialRoute) and route.outcome is Outcome.FOUND for route in routes])
    assert 0.01 < found < 0.14


def test_other_spaces_are_left_to_the_search() -> None:
    space = Product.of(dial=Cyclic(2), count=Natural())
    changes = np.array([[1.0, 0.0], [0.0, 1.0]])
    task = Problem(space, np.zeros(2), np.ones(2), np.ones(2), changes, np.ones(2))
    assert DialRoute.find(task, edges_of(changes), np.ones(2, np.float32)) is None  # type: ignore[arg-type]
