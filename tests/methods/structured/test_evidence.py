"""Evidence from training on small corridors: what carries over beyond the range, and what does not."""

import functools
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.algebra import Cyclic, Natural, Product
from saplan.goals import parse_goal
from saplan.methods.agent import DEFAULT_PLANNER, PlannerSettings
from saplan.methods.encoders import AlgebraEncoder, DropoutEncoder
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.evidence import Familiar, no_evidence
from saplan.methods.update import train_chunk
from saplan.planning import Outcome
from tests.methods.probe import METHOD, SMALL, UPDATES, Corridor, standing

FAR = 100
"""A count that no game of training comes to."""


@dataclass(frozen=True)
class Binned(Corridor):
    """A corridor whose counts fall into so many bins."""

    bins: int = 32

    @property
    def space(self) -> Product:
        return Product.of(count=Natural(bins=self.bins), lamp=Cyclic(2))


class StartsLow(Binned):
    """Games start with a count of 0..2, whatever the greatest count is."""

    def reset(self, key: Any) -> Any:
        state = super().reset(key)
        return replace(state, count=(state.count % 3).astype(jnp.int16))


@functools.cache
def trained(most: int, bins: int) -> StructuredAgent:
    game = StartsLow(most=most, length=3, bins=bins)
    settings = replace(SMALL, game_steps=20, outcomes=512)
    learner = METHOD.begin(game, settings, jax.random.key(0))
    for _ in range(UPDATES // 4):
        learner, _ = train_chunk(METHOD, game, settings, UPDATES, 4, jnp.int32(4), learner)
    return METHOD.agent_of(learner, game, settings)


def feasible_at(agent: StructuredAgent, count: float, planner: PlannerSettings = DEFAULT_PLANNER) -> np.ndarray:
    """Whether an edge leads on from this count with the lamp on, for every change of 𝓑."""
    cost = agent.edges(np.array([[count, 1.0]], np.float32), planner).cost[0]
    return np.asarray(np.isfinite(cost[: int(agent.memory.size)]))


@pytest.mark.parametrize("bins", [4, 32])
def test_bins_do_not_decide_what_carries_over(bins: int) -> None:
    agent = trained(1000, bins)
    greatest = float(agent.evidence.met[1, 0])
    assert greatest < FAR
    assert bool(agent.evidence.carries[1, 0])
    assert not bool(agent.evidence.carries[0, 0]), "nothing lies below zero"
    for count in (greatest + 1, FAR):
        assert feasible_at(agent, count).all(), count
    assert not feasible_at(agent, FAR, PlannerSettings(beyond=False)).any()


@pytest.mark.parametrize("bins", [3, 32])
def test_a_cap_inside_the_range_does_not_carry_over(bins: int) -> None:
    agent = trained(3, bins)
    assert float(agent.evidence.met[1, 0]) == 3.0
    assert not bool(agent.evidence.carries[1, 0])
    assert not feasible_at(agent, 5.0).any()
    found = agent.plan(standing(0, 1, 1), "count=5")
    assert found.outcome is not Outcome.FOUND


def test_plans_say_which_values_training_never_met() -> None:
    agent = trained(1000, 32)
    plan = agent.plan(standing(0, 1, 1), f"count={FAR}")
    assert plan.outcome is Outcome.FOUND
    (sentence,) = plan.beyond
    met = agent.evidence.met[:, 0].astype(int)
    assert sentence.startswith(
        f"count={FAR} was never met in training ({met[0]}..{met[1]}); the detector has been right"
    )
    assert agent.plan(standing(0, 1, 1), "count=2").beyond == ()
    refused = agent.plan(standing(0, 1, 1), f"count={FAR}", PlannerSettings(beyond=False))
    assert refused.outcome is not Outcome.FOUND


def test_networks_are_shown_the_last_value_of_the_range() -> None:
    agent = trained(1000, 32)
    last = float(agent.evidence.shown[1, 0])
    shown = np.asarray(Familiar(agent.evidence)(jnp.array([[FAR, 1.0], [1.0, 0.0]])))
    np.testing.assert_array_equal(shown, [[last, 1.0], [1.0, 0.0]])


def test_a_network_that_can_do_without_them_is_shown_no_open_ended_values_beyond_the_range() -> None:
    agent = trained(1000, 32)
    shown = np.asarray(Familiar(agent.evidence, hides=True)(jnp.array([[FAR, 1.0], [1.0, 0.0]])))
    np.testing.assert_array_equal(shown, [[np.nan, 1.0], [1.0, 0.0]])


def test_hidden_coordinates_have_no_features_but_a_flag() -> None:
    space = Product.of(count=Natural(), lamp=Cyclic(2), other=Natural())
    plain, encoder = AlgebraEncoder(space), DropoutEncoder(space, 0.5)
    rho = jnp.array([[3.0, 1.0, 2.0], [0.0, 1.0, 0.0]])
    seen = encoder.state(rho)
    assert seen.shape == (2, encoder.state_width)
    np.testing.assert_array_equal(seen[:, :-1], plain.state(rho))
    np.testing.assert_array_equal(seen[:, -1], 0)
    hidden = encoder.state(jnp.array([[np.nan, 1.0, np.nan], [np.nan, 1.0, np.nan]]))
    np.testing.assert_array_equal(hidden[0], hidden[1])
    lamp = np.asarray(plain.state(rho))[0] * np.repeat([0, 1, 0], [block.width for block in space.blocks])
    np.testing.assert_array_equal(hidden[0, :-1], lamp)
    assert float(hidden[0, -1]) == 1


def test_a_share_of_the_examples_hides_the_open_ended_values() -> None:
    space = Product.of(count=Natural(), lamp=Cyclic(2))
    rho = jnp.ones((8, 2))
    np.testing.assert_array_equal(AlgebraEncoder(space).drop(rho), rho)
    dropped = np.asarray(DropoutEncoder(space, 0.25).drop(rho))
    np.testing.assert_array_equal(np.isnan(dropped), np.array([[True, False]] * 2 + [[False, False]] * 6))


def test_without_evidence_nothing_is_shown_otherwise() -> None:
    space = Binned().space
    nothing = no_evidence(space)
    rho = jnp.array([[1e6, 1.0]])
    np.testing.assert_array_equal(Familiar(nothing)(rho), rho)
    assert not np.asarray(nothing.present).any()
    assert not np.asarray(nothing.beyond(rho)).any()
    assert nothing.sentences(space, np.asarray(rho)) == ()
    np.testing.assert_array_equal(space.open_sides, [[False, False], [True, False]])


def test_a_suspected_boundary_is_planned_around_but_never_the_end() -> None:
    agent = trained(1000, 32)
    goal = parse_goal(agent.game.space, f"count={FAR}")
    goals = type(goal)(np.asarray(goal.low)[None], np.asarray(goal.high)[None])
    planner = PlannerSettings()
    count_up = int(np.argmax(np.asarray(agent.memory.delta)[:, 0]))
    place = np.array([FAR - 2, 1.0], np.float32)
    failed = [(place, count_up, planner.penalty)] * 5
    finder = agent.route_finder(planner)
    (route,) = finder(place[None], goals, planner, [failed])
    assert route.outcome is Outcome.FOUND, "there is no way around, so the agent tries again"
