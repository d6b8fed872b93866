"""What a rollout teaches: targets worked out by hand, for a policy that thinks the same of everything."""

import functools
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from saplan.methods.encoders import AlgebraEncoder
from saplan.methods.policy import Policy
from saplan.methods.structured.learner import transition_targets
from saplan.methods.structured.settings import StructuredSettings
from saplan.methods.targets import Rollout, Subgoals, Targets, policy_loss, unharmed, value_rollout
from saplan.rl.repeated_actions import empty_history
from saplan.rl.rollout import RolloutState, Trajectory

from .probe import COUNT_UP, GAME, SMALL, TOGGLE, Corridor, CorridorState, stacked, standing
from .structured.opinions import memory_of, steps_of

DOWN, STAY = (-1.0, 0.0), (0.0, 0.0)
UP_ENTRY, TOGGLE_ENTRY, DOWN_ENTRY, EMPTY_ENTRY = range(4)
MEMORY = memory_of(GAME.space, [COUNT_UP, TOGGLE, DOWN], capacity=4)
RULES = replace(SMALL, lanes=2, discount=0.9, trace=0.5, explore_discount=0.8, credit_to_game=False, relabel=True)
LOGIT, VALUE = -4.0, 1 / (1 + np.exp(4.0))
THOUGHT = 0.25
"""What the policy thinks of every action for exploring."""


class Mortal(Corridor):
    """The corridor of somebody who lives by the count."""

    vital = ("count",)


def indifferent() -> Policy:
    """A policy whose outputs are their bias."""
    network = Policy.init(jax.random.key(0), GAME, AlgebraEncoder(GAME.space), StructuredSettings(hidden=4)).network
    bias = jnp.concatenate([jnp.full(3, LOGIT), jnp.full(3, THOUGHT)])
    where = lambda n: (n.head.outputs.weight, n.head.outputs.bias)  # noqa: E731
    network = eqx.tree_at(where, network, (jnp.zeros_like(network.head.outputs.weight), bias))
    return Policy(network, AlgebraEncoder(GAME.space))


# Three steps of two lanes. The first explores and counts up at its third step. The second executes TOGGLE: its game is
# cut off at the second step, and the third opens a new game at count 1.
STEPS = steps_of(
    GAME.space,
    delta=[[STAY, STAY], [STAY, STAY], [COUNT_UP, STAY]],
    rho=[[(0, 1), (0, 0)], [(0, 1), (0, 0)], [(0, 1), (1, 0)]],
    subgoal=[[COUNT_UP, TOGGLE]] * 3,
    choice=[[UP_ENTRY, TOGGLE_ENTRY]] * 3,
    explores=[[True, False]] * 3,
    game_over=[[False, False], [False, True], [False, False]],
)
REWARD = jnp.array([[0.0, 0.0], [0.0, 0.0], [2.0, 0.0]])


def lanes_after() -> RolloutState[CorridorState]:
    states = stacked(standing(0, 1, 1), standing(2, 1, 0))
    zero = jnp.zeros(2, jnp.int32)
    rho = jax.vmap(GAME.attributes)(states)
    return RolloutState(states, rho, jnp.ones(2, bool), jnp.zeros((2, 2)), zero, zero, zero, zero, empty_history(2, 4))


@functools.partial(jax.jit, static_argnums=0)
def teach(settings: StructuredSettings, steps: Trajectory, reward: Array) -> Targets:
    rollout = Rollout.of(steps, lanes_after())
    entry = MEMORY.index(GAME.space, rollout.flat.delta)
    values = value_rollout(GAME, settings, indifferent(), rollout)
    return transition_targets(GAME.space, settings, MEMORY, entry, rollout, values, reward)[0]


def taught(steps: Trajectory = STEPS, reward: Array = REWARD, **numbers: bool) -> Any:
    """With the leading axis split into time and lanes again."""
    return jax.tree.map(
        lambda x: np.asarray(x).reshape(3, 2, *x.shape[1:]), teach(replace(RULES, **numbers), steps, reward)
    )


def test_the_transition_that_was_made_is_worth_one_and_the_others_nothing() -> None:
    assert taught().execution[2, 0].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_value_flows_back_along_the_rollout() -> None:
    target = taught().execution[:, 0]
    for entry, end in ((UP_ENTRY, 1.0), (TOGGLE_ENTRY, 0.0), (DOWN_ENTRY, 0.0)):
        second = 0.9 * (0.5 * VALUE + 0.5 * end)
        first = 0.9 * (0.5 * VALUE + 0.5 * second)
        np.testing.assert_allclose(target[:2, entry], [first, second], rtol=1e-5)


def test_the_last_step_is_worth_what_the_next_state_promises() -> None:
    np.testing.assert_allclose(taught().execution[2, 1, :3], 0.9 * VALUE, rtol=1e-5)


def test_nothing_is_known_beyond_a_game_cut_off() -> None:
    lesson = taught()
    np.testing.assert_allclose(lesson.execution[0, 1, :3], 0.9 * VALUE, rtol=1e-5)
    assert not lesson.execution_weight[1, 1].any()
    assert not lesson.exploration_weight[1, 1]
    assert lesson.execution_weight[0, 1].any()


def test_rare_changes_are_not_learnt_about() -> None:
    seldom = eqx.tree_at(lambda m: m.seen, MEMORY, jnp.array([100.0, 1.0, 100.0, 0.0], MEMORY.seen.dtype))
    settings, rollout = replace(RULES, rare=0.02), Rollout.of(STEPS, lanes_after())
    values = value_rollout(GAME, settings, indifferent(), rollout)
    entry = MEMORY.index(GAME.space, rollout.flat.delta)
    targets, subgoals = transition_targets(GAME.space, settings, seldom, entry, rollout, values, REWARD)
    assert int(subgoals.used) == 2
    assert np.asarray(subgoals.shared)[:2].tolist() == [list(COUNT_UP), list(DOWN)]
    whole = taught()
    np.testing.assert_allclose(targets.execution[:, :2], whole.execution.reshape(6, -1)[:, [UP_ENTRY, DOWN_ENTRY]])
    assert not targets.execution_weight[:, 2:].any()


def test_after_death_nothing_is_worth_anything() -> None:
    """The second lane's game does not run out of time at its second step: the world ends."""
    dead = eqx.tree_at(lambda s: s.lost, STEPS, STEPS.game_over)
    lesson = taught(dead)
    assert lesson.execution_weight[1, 1, TOGGLE_ENTRY]
    assert lesson.exploration_weight[1, 1]
    np.testing.assert_allclose(lesson.execution[1, 1, TOGGLE_ENTRY], 0.0, atol=1e-7)
    np.testing.assert_allclose(lesson.execution[0, 1, TOGGLE_ENTRY], 0.9 * 0.5 * VALUE, rtol=1e-5)
    np.testing.assert_allclose(lesson.exploration[1, 1], 0.0, atol=1e-7)


def test_what_costs_something_vital_is_worth_less() -> None:
    """The first lane's second step takes one of three; what is gained later makes up for nothing."""
    rho = [[(3, 1), (0, 0)], [(3, 1), (0, 0)], [(2, 1), (1, 0)]]
    steps = steps_of(GAME.space, delta=[[STAY, STAY], [DOWN, STAY], [COUNT_UP, STAY]], rho=rho)
    share = unharmed(Mortal(), replace(RULES, harm=2.0), steps)
    np.testing.assert_allclose(share[:, 0], [1.0, (2 / 3) ** 2, 1.0], rtol=1e-6)
    assert share[:, 1].tolist() == [1.0, 1.0, 1.0], "who has nothing loses nothing"
    rollout = Rollout.of(steps, lanes_after())
    harmed, whole = (value_rollout(game, RULES, indifferent(), rollout) for game in (Mortal(), GAME))
    made = steps.changed & (jnp.arange(3)[:, None] == 1)
    for part in (lambda r: r.execution(jnp.array(DOWN), made, steps.changed), lambda r: r.exploration(made * 2.0)):
        np.testing.assert_allclose(part(harmed)[1, 0], (2 / 3) ** RULES.harm * part(whole)[1, 0], rtol=1e-5)
    assert unharmed(GAME, RULES, steps).tolist() == np.ones((3, 2)).tolist(), "nothing is vital in the corridor"


def test_a_change_that_ends_a_game_is_known() -> None:
    over = eqx.tree_at(lambda s: s.game_over, STEPS, STEPS.game_over.at[2, 0].set(True))
    lesson = taught(over)
    assert lesson.execution_weight[2, 0, UP_ENTRY]
    assert lesson.execution[2, 0, UP_ENTRY] == 1.0


def test_every_step_teaches_about_every_transition_that_ends_in_the_space() -> None:
    weight = taught().execution_weight
    assert weight[0, 0].tolist() == [True, True, False, False], "no count below zero, no empty entry"
    assert weight[2, 1].tolist() == [True, True, True, False]


def test_the_papers_way_teaches_about_the_wish_alone() -> None:
    lesson = taught(relabel=False)
    assert not lesson.execution_weight[:, 0].any(), "exploring, a wish is none"
    assert lesson.execution_weight[:, 1, TOGGLE_ENTRY].tolist() == [True, False, True]
    assert not np.delete(lesson.execution_weight[:, 1], TOGGLE_ENTRY, axis=1).any()
    assert lesson.exploration_weight.tolist() == [[True, False]] * 3
    assert taught().exploration_weight.tolist() == [[True, True], [True, False], [True, True]]


def test_exploration_is_credited_to_the_end_of_the_attempt_or_of_the_game() -> None:
    early = eqx.tree_at(lambda s: (s.delta, s.changed), STEPS, (STEPS.delta, STEPS.changed.at[0, 0].set(True)))
    reward = REWARD.at[0, 0].set(1.0)
    last = 2.0
    second = 0.8 * (0.5 * THOUGHT + 0.5 * last)
    by_attempt = taught(early, reward).exploration[:, 0]
    np.testing.assert_allclose(by_attempt, [1.0, second, last], rtol=1e-5)
    after = 0.8 * THOUGHT
    longer = 2.0 + after
    middle = 0.8 * (0.5 * THOUGHT + 0.5 * longer)
    first = 1.0 + 0.8 * (0.5 * THOUGHT + 0.5 * middle)
    by_game = taught(early, reward, credit_to_game=True).exploration[:, 0]
    np.testing.assert_allclose(by_game, [first, middle, longer], rtol=1e-5)


def test_no_credit_flows_through_the_end_of_a_game() -> None:
    over = eqx.tree_at(lambda s: s.game_over, STEPS, STEPS.game_over.at[2, 0].set(True))
    assert taught(over, credit_to_game=True).exploration[2, 0] == 2.0


def test_the_loss_by_hand() -> None:
    target = jnp.array([[1.0, 0.0, 0.5, 0.0], [0.0, 0.25, 0.0, 0.0]])
    weight = jnp.array([[True, False, True, False], [False, True, False, False]])
    batch = Targets(
        observation=jnp.ones((2, 2), jnp.int16),
        rho=jnp.array([(0.0, 1.0), (1.0, 0.0)]),
        action=jnp.array([0, 2]),
        subgoal=None,
        execution=target,
        execution_weight=weight,
        exploration=jnp.array([0.75, 100.0]),
        exploration_weight=jnp.array([True, False]),
    )
    entropy = lambda y: -(y * np.log(VALUE) + (1 - y) * np.log1p(-VALUE))  # noqa: E731
    expected = (entropy(1.0) + entropy(0.5) + entropy(0.25)) / 2 + 0.5 * 0.5 * (0.75 - THOUGHT) ** 2
    loss = jax.jit(lambda batch: policy_loss(indifferent(), Subgoals(MEMORY.delta, MEMORY.size), batch))
    assert float(loss(batch)) == pytest.approx(expected, rel=1e-5)
