"""Orders of counted changes, and the cuts that take their place."""

import time

import numpy as np

from saplan.algebra import Natural, Product
from saplan.planning.counts import solve
from saplan.planning.ordering import order
from saplan.planning.problem import Problem
from tests.planning.known_worlds import always, exchange, switch_rules, switches


def test_twelve_thousand_changes_take_well_under_a_second() -> None:
    problem = exchange(4000, (8000, 500, 500))
    solution = solve(problem)
    begin = time.perf_counter()
    found = order(problem, solution.counts, always(problem))
    assert time.perf_counter() - begin < 1
    assert found.found
    np.testing.assert_array_equal(np.bincount(found.transitions, minlength=9), solution.counts)


def test_what_is_needed_comes_first() -> None:
    problem = switches((3, 3, 3), (2, 2, 2), 1)
    found = order(problem, np.array([2, 2, 2, 2]), switch_rules)
    assert list(found.transitions) == [1, 1, 3, 2, 2, 3, 0, 0]


def stuck() -> Problem:
    """Making b of a needs a c, which only another change makes."""
    space = Product.of(a=Natural(), b=Natural(), c=Natural())
    deltas = np.array([[-1, 1, 0], [0, 0, 1], [0, -1, 0]], float)
    low, high = np.array([0.0, 2, -np.inf]), np.array([0.0, 2, np.inf])
    return Problem(space, np.array([2.0, 0, 0]), low, high, deltas, np.ones(3))


def test_no_order_gives_a_cut_of_what_is_missing() -> None:
    problem = stuck()
    rules = lambda rho: np.column_stack([rho[:, 2] >= 1, np.ones(len(rho)), np.ones(len(rho))]) > 0  # noqa: E731
    found = order(problem, np.array([2, 0, 0]), rules)
    assert not found.found
    assert found.proven
    assert found.cut is not None
    assert found.cut.changes == (1,), "only the change that makes c is possible beyond the counts"
    again = solve(problem, [found.cut])
    np.testing.assert_array_equal(again.counts, [2, 1, 0])
    np.testing.assert_array_equal(order(problem, again.counts, rules).transitions, [1, 0, 0])


def test_a_spent_budget_proves_nothing() -> None:
    problem = exchange(8, (5, 5, 5))
    never = lambda rho: (rho[:, 3:].sum(axis=1) < 9)[:, None] & np.ones((1, 9), bool)  # noqa: E731
    found = order(problem, solve(problem).counts, never, budget=50)
    assert not found.found
    assert not found.proven


def test_greedy_alone_gets_stuck_here() -> None:
    """C can be made only while exactly two a are left, and the greedy order makes all b in one run."""
    space = Product.of(a=Natural(), b=Natural(), c=Natural())
    deltas = np.array([[-1, 1, 0], [0, 0, 1]], float)
    goal = np.array([0.0, 3, 1])
    problem = Problem(space, np.array([3.0, 0, 0]), goal, goal, deltas, np.ones(2))
    rules = lambda rho: np.column_stack([np.ones(len(rho)), rho[:, 0] == 2]) > 0  # noqa: E731
    found = order(problem, np.array([3, 1]), rules)
    assert list(found.transitions) == [0, 1, 0, 0]
