"""Counts of changes that add up to a goal: random problems against brute force, and worlds with known answers."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

from saplan.algebra import Categorical, Circle, Cyclic, Dihedral, Exogenous, Integer, Natural, Product, Real
from saplan.errors import InputError
from saplan.games import Exchange
from saplan.goals import meets
from saplan.planning.algebraic import AlgebraicPlan, find_plan
from saplan.planning.counts import solve
from saplan.planning.integer_program import Limits, Status
from saplan.planning.problem import Problem
from saplan.planning.proof import find_certificate
from saplan.planning.proof_checker import check
from tests.planning.known_worlds import (
    TechTree,
    always,
    exchange,
    lights_out,
    posed,
    switch_rules,
    switches,
    wide_world,
)
from tests.planning.small_problems import SmallProblem

BATCH = 200
FIRST = range(0, 600, BATCH)
MORE = [pytest.param(first, marks=pytest.mark.slow) for first in range(600, 2000, BATCH)]


@pytest.mark.parametrize("first", [*FIRST, *MORE])
def test_random_problems_against_brute_force(first: int) -> None:
    for seed in range(first, first + BATCH):
        world = SmallProblem(seed)
        plan, best = find_plan(world.problem, world.feasible, nodes=20_000), world.cheapest()
        if plan.found:
            follow(world, plan)
        assert plan.bound <= best + 1e-6, seed
        if plan.status is Status.INFEASIBLE:
            assert best == np.inf, seed
        if plan.status is Status.OPTIMAL:
            # Without a cap the judge looks at a part of the world, and may miss a path.
            assert plan.cost <= best + 1e-6, seed
            assert plan.cost >= best - 1e-6 or not world.capped, seed
        certificate = find_certificate(world.problem)
        if certificate is not None:
            assert check(world.problem, certificate), seed
            assert best == np.inf, seed
        assert plan.status in (Status.OPTIMAL, Status.INFEASIBLE), f"problem {seed} was left open"


def follow(world: SmallProblem, plan: AlgebraicPlan) -> None:
    """Every change must be possible by the rules, and the last must reach the goal."""
    rho = tuple(map(float, world.problem.start))
    for change, after in zip(plan.transitions, plan.rho[1:], strict=True):
        end = world.end(rho, int(change))
        assert end is not None
        assert end == tuple(after)
        rho = end
    assert np.all(meets(world.problem.low, world.problem.high, np.array(rho)))
    np.testing.assert_allclose(plan.cost, world.problem.costs[plan.transitions].sum())


@pytest.mark.parametrize("length", [26, 27, 28, 29])
def test_exchange_has_the_lengths_of_exhaustive_search(length: int) -> None:
    distance = np.asarray(Exchange().goal_distances(np.array([8, 8, 8])))
    goals = np.argwhere(distance == length)
    for goal in goals[:: max(1, len(goals) // 4)][:4]:
        red, green, blue = map(int, goal)
        problem = exchange(8, (red, green, blue))
        plan = find_plan(problem, always(problem))
        assert (plan.status, plan.cost) == (Status.OPTIMAL, length)


def test_exchange_of_the_design() -> None:
    problem = exchange(8, (5, 12, 4))
    plan = find_plan(problem, always(problem))
    assert (plan.status, plan.cost, plan.bound) == (Status.OPTIMAL, 27, 27)
    np.testing.assert_array_equal(plan.rho[-1][3:], [5, 12, 4])


def test_an_impossible_exchange_is_proven_impossible() -> None:
    problem = exchange(8, (30, 30, 30))
    assert find_plan(problem, always(problem)).status is Status.INFEASIBLE
    certificate = find_certificate(problem)
    assert certificate is not None
    assert check(problem, certificate)


@pytest.mark.parametrize(("objects", "held", "cost"), [(40, (70, 10, 10), 130), (4000, (8000, 500, 500), 14668)])
def test_exchange_with_many_objects(objects: int, held: tuple[int, int, int], cost: int) -> None:
    problem = exchange(objects, held)
    plan = find_plan(problem, always(problem))
    assert (plan.status, plan.cost) == (Status.OPTIMAL, cost)
    assert len(plan.transitions) == cost
    assert plan.rho.min() >= 0
    np.testing.assert_array_equal(np.diff(plan.rho, axis=0), problem.deltas[plan.transitions])


@pytest.mark.parametrize(
    ("held", "switch", "cost"),
    [((1, 1, 1), 0, 5), ((0, 0, 2), 1, 3), ((2, 1, 0), 2, 5), ((2, 1, 3), 1, 8), ((0, 3, 0), 1, 3), ((1, 0, 1), 2, 3)],
)
def test_switches_count_the_turns(held: tuple[int, int, int], switch: int, cost: int) -> None:
    problem = switches((3, 3, 3), held, switch)
    solution = solve(problem)
    assert (solution.status, solution.cost) == (Status.OPTIMAL, cost), "the equation alone counts the turns"
    plan = find_plan(problem, switch_rules)
    assert (plan.status, plan.cost, plan.cuts) == (Status.OPTIMAL, cost, ())


def test_without_needs_the_turns_are_not_counted() -> None:
    problem = switches((3, 3, 3), (1, 1, 1), 0)
    blind = Problem(problem.space, problem.start, problem.low, problem.high, problem.deltas, problem.costs)
    assert solve(blind).cost == 3
    plan = find_plan(blind, switch_rules)
    assert (plan.status, plan.cost) == (Status.OPTIMAL, 5), "cuts find out what the rows do not say"
    assert plan.cuts


def test_tech_trees() -> None:
    tree = TechTree()
    assert tree.level.max() == 6
    for item in range(60):
        plan = find_plan(tree.problem(item), tree.feasible)
        assert plan.found
        assert plan.cost <= 1.05 * plan.bound + 2
        rho = np.zeros((1, 60))
        for change in plan.transitions:
            assert tree.feasible(rho)[0, change]
            rho = rho + tree.deltas[change]
        assert rho[0, item] >= 1


@pytest.mark.parametrize("shape", [(4, 4), (4, 6), (6, 8)])
def test_lights_out_by_fewest_presses(shape: tuple[int, int]) -> None:
    problem = lights_out(*shape, seed=3)
    plan = find_plan(problem, always(problem))
    assert plan.status is Status.OPTIMAL
    pressed = np.bincount(plan.transitions, minlength=len(problem.costs))
    np.testing.assert_array_equal((problem.start + pressed @ problem.deltas) % 2, 0)
    if shape == (4, 4):
        every = np.array(np.meshgrid(*[[0, 1]] * 16)).reshape(16, -1).T
        works = np.all((problem.start + every @ problem.deltas) % 2 == 0, axis=1)
        assert plan.cost == every[works].sum(axis=1).min()


def test_unreachable_lights_have_a_modular_certificate() -> None:
    problem = lights_out(4, 4, seed=3)
    start = problem.start.copy()
    start[0] = 1 - start[0]  # four by four has quiet patterns: not every light can be turned alone
    problem = Problem(problem.space, start, problem.low, problem.high, problem.deltas, problem.costs)
    assert solve(problem).status is Status.INFEASIBLE
    certificate = find_certificate(problem)
    assert certificate is not None
    assert check(problem, certificate)


@pytest.mark.parametrize("seed", range(3))
def test_two_hundred_changes_of_sixty_attributes(seed: int) -> None:
    problem, made = wide_world(seed)
    plan = find_plan(problem, always(problem), Limits(nodes=2000, gap=0.01))
    assert plan.found
    assert plan.cost <= made
    assert plan.cost <= 1.01 * plan.bound + 1


def one(
    space: Product,
    start: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    deltas: ArrayLike,
    spread: np.ndarray | None = None,
) -> AlgebraicPlan:
    """The plan of a small problem with unit costs."""
    problem = posed(space, start, low, high, deltas, spread=spread)
    return find_plan(problem, always(problem))


def test_amounts_end_within_their_tolerance() -> None:
    space = Product.of(m=Real(resolution=1.0, low=0.0, high=20.0))
    assert one(space, [0], [4.5], [5.5], [[0.8], [-0.5]]).cost == 6
    assert one(space, [0], [4.5], [4.6], [[0.8]]).status is Status.INFEASIBLE
    assert one(space, [0], [4.5], [4.6], [[0.8]], spread=np.array([[0.1]])).status is not Status.INFEASIBLE


def test_labels_are_a_flow() -> None:
    place = Categorical(("home", "road", "town"))
    space = Product.of(place=place, coins=Natural())
    code = lambda a, b: 1 + 3 * a + b  # noqa: E731
    walk = [[code(0, 1), 0], [code(1, 2), 0], [code(2, 1), 0], [code(1, 0), 0], [code(2, 2), 1]]
    plan = one(space, [0, 0], [0, 2], [0, 2], walk)
    assert list(plan.transitions) == [0, 1, 4, 4, 2, 3], "there, twice a coin, and back"
    assert one(space, [0, 0], [-np.inf, 1], [np.inf, 1], walk[1:]).status is Status.INFEASIBLE


def test_exogenous_attributes_are_left_alone() -> None:
    space = Product.of(hour=Exogenous(Cyclic(24)), n=Integer())
    plan = one(space, [5, 0], [-np.inf, -3], [np.inf, -3], [[0, -2], [0, 1]])
    assert (plan.status, plan.cost) == (Status.OPTIMAL, 3)


def test_a_goal_that_holds_needs_nothing() -> None:
    plan = one(Product.of(n=Natural()), [2], [1], [np.inf], [[1]])
    assert (plan.status, plan.cost, len(plan.transitions)) == (Status.OPTIMAL, 0, 0)


def test_a_bound_of_nodes_is_a_status() -> None:
    problem, _ = wide_world(0)
    solution = solve(problem, limits=Limits(nodes=1))
    assert solution.status in (Status.OPTIMAL, Status.FEASIBLE, Status.BOUND)
    assert solution.bound <= solution.cost


def test_costs_must_not_be_negative() -> None:
    with pytest.raises(InputError, match="must not be negative"):
        Problem(Product.of(n=Natural()), np.zeros(1), np.zeros(1), np.zeros(1), np.ones((2, 1)), np.array([1.0, -1.0]))


def test_the_equation_goes_the_shorter_way_round_a_circle() -> None:
    space = Product.of(angle=Circle(360.0, 30.0))
    deltas, free = np.array([[22.5], [-22.5]]), np.ones(2)
    for start, goal, counts in (
        (350.0, 10.0, (1, 0)),
        (10.0, 350.0, (0, 1)),
        (5.0, 185.0, (8, 0)),
        (0.0, 275.0, (0, 4)),
    ):
        low, high = (np.array([(goal + side) % 360]) for side in (-10.0, 10.0))
        problem = Problem(space, np.array([start]), low, high, deltas, free)
        plan = find_plan(problem, always(problem))
        assert plan.status is Status.OPTIMAL
        assert plan.cost == sum(counts)
        assert problem.reached(plan.rho[-1:])[0]
    # 340 steps of 22.5 degrees never come nearer than 5 degrees to 95.
    problem = Problem(space, np.zeros(1), np.array([94.0]), np.array([96.0]), deltas, free)
    assert find_plan(problem, always(problem)).status is not Status.OPTIMAL


@pytest.mark.parametrize(("start", "goal", "cost"), [(0, 3, 3), (0, 4, 1), (1, 4, 2), (0, 7, 2), (5, 5, 0)])
def test_the_equation_orders_turns_and_mirrorings(start: int, goal: int, cost: int) -> None:
    space, end = Product.of(piece=Dihedral(4)), np.array([float(goal)])
    problem = Problem(space, np.array([float(start)]), end, end, np.array([[1.0], [4.0]]), np.ones(2))
    plan = find_plan(problem, always(problem))
    assert (plan.status, plan.cost) == (Status.OPTIMAL, cost)
    assert plan.rho[-1] == goal
