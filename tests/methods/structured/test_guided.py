"""Deep goals of exchange: a plain search reaches its bound, the equation does not."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest

import saplan
from saplan.methods.agent import DEFAULT_PLANNER
from saplan.methods.structured.agent import StructuredAgent
from saplan.planning import Outcome

SMALL = replace(DEFAULT_PLANNER, max_nodes=3_000)
"""A plain search ends here, long before it meets these goals."""


@cache
def agent() -> StructuredAgent:
    """The shipped agent on maps with eight objects of each kind."""
    shipped = saplan.load("exchange")
    assert isinstance(shipped, StructuredAgent)
    return replace(shipped, game=saplan.Exchange(fewest=8, most=8))


@pytest.fixture(scope="module")
def state():
    return jax.jit(agent().game.reset)(jax.random.key(0))


@pytest.mark.parametrize(("goal", "fewest"), [("red=5 green=12 blue=4", 27), ("red=12 green=4 blue=4", 26)])
def test_the_equation_finds_what_the_search_does_not(state, goal: str, fewest: int) -> None:
    assert agent().plan(state, goal, replace(SMALL, algebra=False)).outcome is Outcome.SPENT
    plan = agent().plan(state, goal, SMALL)
    assert plan.outcome is Outcome.FOUND
    assert len(plan.path) == fewest, "the optimum that a numeric planner with the rules proves"
    assert np.all(np.array(plan.rho) >= 0)
    changes = np.diff(np.array(plan.rho), axis=0)
    np.testing.assert_array_equal(changes, np.asarray(agent().memory.delta)[list(plan.transitions)])
    wanted = agent().goal(goal)
    end = np.array(plan.rho[-1])
    assert np.all((end >= np.asarray(wanted.low)) & (end <= np.asarray(wanted.high)))


def test_an_impossible_goal_is_unreachable_not_spent(state) -> None:
    assert agent().plan(state, "red=30 green=30 blue=30", SMALL).outcome is Outcome.UNREACHABLE
    assert agent().plan(state, "red=3 green=3 blue=14", SMALL).outcome is Outcome.UNREACHABLE


def test_alternatives_beside_the_path_are_known(state) -> None:
    states = jax.tree.map(lambda x: x[None], state)
    goal = agent().goal("red=5 green=12 blue=4")
    batch = saplan.Goal(np.asarray(goal.low)[None], np.asarray(goal.high)[None])
    executor = agent().executor(states, batch, SMALL)
    executor.settle()
    (decision,) = executor.decisions
    assert decision.outcome is Outcome.FOUND
    assert decision.alternatives is not None
    assert np.isfinite(decision.alternatives.cost).sum() >= 2, "changes that can be made in another order"
