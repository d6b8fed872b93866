"""Problems as PDDL: what is written, and that ENHSP reads it, solves it, and its plans hold in our model."""

import re

import numpy as np
import pytest

from saplan.algebra import Categorical, Cyclic, Exogenous, Integer, Natural, Product, Real
from saplan.errors import InputError
from saplan.planning.algebraic import find_plan
from saplan.planning.dot import write_dot
from saplan.planning.integer_program import Status
from saplan.planning.needs import Needs
from saplan.planning.pddl import follow, read_actions, write_domain, write_problem
from saplan.planning.problem import Problem
from tests.loading import load
from tests.planning.known_worlds import TechTree, exchange, lights_out, switches
from tests.planning.small_problems import SmallProblem

enhsp = load("benchmarks/enhsp.py")
needs_enhsp = pytest.mark.skipif(enhsp.missing() is not None, reason=str(enhsp.missing()))

PLACES = Categorical(("Home town", "road", "Home-town"))
MIXED = Product(
    ("coins", "Coins", "height", "dial", "clock", "place", "2nd-amount", "hour"),
    (Natural(), Natural(), Integer(), Cyclic(3), Cyclic(100), PLACES, Real(resolution=1.0), Exogenous(Cyclic(24))),
)


def mixed() -> Problem:
    """One change for every kind of attribute, and names that PDDL does not distinguish."""
    deltas = np.zeros((6, 8))
    deltas[0, [0, 1]] = -2, 1
    deltas[1, 2] = -1
    deltas[2, 3] = 2
    deltas[3, 4] = 70
    deltas[4, [5, 7]] = 1 + 3 * 0 + 2, 5
    deltas[5, [5, 6]] = 1 + 3 * 2 + 1, 0.75
    needs = Needs.none(6, 8)
    needs.low[1, 0], needs.high[1, 1] = 1, 4
    needs = Needs(needs.low, needs.high, {(0, 3): frozenset({0, 2}), (1, 5): frozenset({0, 2})})
    low, high = np.full(8, -np.inf), np.full(8, np.inf)
    low[:3], high[:3] = [1, 2, -2], [1, np.inf, -2]
    low[3:6] = high[3:6] = [1, 80, 1]
    low[6], high[6] = 0.5, 1.0
    start = np.array([5, 0, 0, 0, 10, 0, 0, 3], float)
    spread = np.zeros((6, 8))
    spread[5, 6] = 0.1
    return Problem(MIXED, start, low, high, deltas, np.array([1, 1.5, 0.25, 1, 1, 1]), needs, spread)


def balanced(text: str) -> bool:
    """Whether parentheses close, comments left aside."""
    depth = 0
    for sign in re.sub(r";.*", "", text):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth < 0:
            return False
    return depth == 0


def action(domain: str, name: str) -> str:
    """The text of one action."""
    return next(part for part in domain.split("(:action ") if part.startswith(name))


def test_every_kind_of_attribute_is_written() -> None:
    problem = mixed()
    domain, task = write_domain(problem, "My world!", ["first line"], [f"note {j}" for j in range(6)]), ""
    task = write_problem(problem, "My world!")
    assert balanced(domain)
    assert balanced(task)
    assert domain.startswith("; first line\n(define (domain my-world)")
    assert "(:functions (coins) (coins-2) (height) (dial) (clock) (x-2nd-amount) (total-cost))" in domain
    assert "(:predicates (place-home-town) (place-road) (place-home-town-2))" in domain
    trade, sink = action(domain, "c0-"), action(domain, "c1-")
    assert ":precondition (and (>= (coins) 2) (or (= (dial) 0) (= (dial) 2)))" in trade
    assert "(decrease (coins) 2) (increase (coins-2) 1) (increase (total-cost) 1)" in trade
    assert "note 0" in trade
    assert "(>= (coins) 1) (<= (coins-2) 4) (or (place-home-town) (place-home-town-2))" in sink
    assert "(when (= (dial) 0) (assign (dial) 2))" in action(domain, "c2-")
    assert "(when (>= (clock) 30) (decrease (clock) 30))" in action(domain, "c3-")
    assert "(not (place-home-town)) (place-home-town-2)" in action(domain, "c4-")
    assert "spread x-2nd-amount ±0.1" in action(domain, "c5-")
    assert "hour" not in re.sub(r";.*", "", domain), "what changes by itself restricts no plan"
    assert "(= (coins) 1) (>= (coins-2) 2) (= (height) -2) (= (dial) 1) (= (clock) 80) (place-road)" in task


def test_changes_that_cannot_be_used_are_left_out() -> None:
    problem = exchange(3, (1, 0, 0))
    costs = np.where(np.arange(9) == 4, np.inf, 1.0)
    domain = write_domain(Problem(problem.space, problem.start, problem.low, problem.high, problem.deltas, costs), "x")
    assert "(:action c3-" in domain
    assert "(:action c4-" not in domain


def test_names_of_actions_are_read_back() -> None:
    np.testing.assert_array_equal(read_actions(["c0-red-plus-1", "(c12)", "C3-switch-plus-1"]), [0, 12, 3])
    with pytest.raises(InputError, match="is not an action of an exported domain"):
        read_actions(["walk"])


def test_the_graph_shows_what_is_used_made_and_needed() -> None:
    text = write_dot(mixed(), "mixed")
    assert text.startswith('digraph "mixed" {')
    for arrow in (
        'a0 -> c0 [label="uses 2"]',
        'c0 -> a1 [label="makes 1"]',
        'a3 -> c0 [style=dashed, label="needs in {0, 2}"]',
        'a0 -> c1 [style=dashed, label="needs >=1"]',
        'a5 -> c4 [label="uses Home town"]',
        'c4 -> a5 [label="makes Home-town"]',
    ):
        assert arrow in text
    assert "a7" not in text
    assert text.count("{") - text.count("}") == 0


@needs_enhsp
def test_enhsp_solves_every_kind_of_attribute() -> None:
    solved = enhsp.solve_with_enhsp(mixed())
    needs = mixed().needs
    assert needs is not None
    best = find_plan(mixed(), needs.hold)
    assert solved.transitions is not None
    assert sorted(set(solved.transitions)) == [0, 1, 2, 3, 4, 5]
    assert best.found
    assert solved.cost >= best.bound - 1e-6


@needs_enhsp
@pytest.mark.parametrize(
    "problem",
    [exchange(8, (5, 12, 4)), switches((3, 3, 3), (2, 1, 3), 1), lights_out(3, 3, 1), TechTree().problem(20)],
    ids=["exchange", "switches", "lights", "tech"],
)
def test_enhsp_finds_plans_that_hold_in_the_model(problem: Problem) -> None:
    solved = enhsp.solve_with_enhsp(problem)
    assert solved.transitions is not None
    plan = find_plan(problem, lambda rho: np.ones((len(rho), len(problem.costs)), bool) if problem.needs is None
                     else problem.needs.hold(rho))  # fmt: skip
    assert plan.status is Status.OPTIMAL
    assert solved.cost >= plan.cost - 1e-6


@needs_enhsp
@pytest.mark.parametrize("seed", range(12))
def test_enhsp_agrees_with_the_planner_on_random_problems(seed: int) -> None:
    world = SmallProblem(seed)
    world.capped = False  # the cap is a rule that the written needs do not hold
    plan = find_plan(world.problem, world.feasible, nodes=20_000)
    if plan.status is Status.BOUND or not len(plan.transitions):
        pytest.skip("nothing to compare")
    solved = enhsp.solve_with_enhsp(world.problem, enhsp.OPTIMAL, limit=20)
    assert plan.found == (solved.cost is not None)
    assert solved.cost == pytest.approx(plan.cost, abs=1e-5)
    path = follow(world.problem, solved.transitions)
    assert world.feasible(path[:-1])[np.arange(len(path) - 1), solved.transitions].all()
