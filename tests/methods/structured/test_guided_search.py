"""Deep goals of exchange: a plain search reaches its bound, the equation does not."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest

import saplan
from saplan.methods.agent import DEFAULT_PLANNER, one_goal
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.evidence import no_evidence
from saplan.planning import Outcome, Route

RHO = np.array([8, 8, 8, 0, 0, 0], np.float32)
"""Eight objects of each kind on the map, nothing held."""
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


def test_what_training_never_met_is_answered(state) -> None:
    """Sixteen green: by the rules 30 changes away. Training met 15 at most, so it depends on the evidence beyond."""
    goal = "red=1 green=16 blue=1"
    cautious = replace(agent(), evidence=no_evidence(agent().game.space))
    assert cautious.plan(state, goal).outcome is Outcome.UNREACHABLE
    (route,) = cautious.route_finder(SMALL)(RHO[None], one_goal(agent().game.space, goal), SMALL)
    assert isinstance(route, Route)
    assert route.why == "no known change leads beyond green=15"
    plan = agent().plan(state, goal)
    assert plan.outcome is Outcome.FOUND
    assert len(plan.path) == 30, "the optimum by the rules"
    assert any(line.startswith("green=16 was never met") for line in plan.beyond)


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
