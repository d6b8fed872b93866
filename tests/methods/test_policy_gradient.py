"""Policy gradients, the paper's kind of learner: what they learn, from which steps, and how returns are counted."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.errors import InputError
from saplan.games import GAMES
from saplan.methods.agent import PAPER_PLANNER
from saplan.methods.policy_gradient import JudgedSteps, clipped_loss, judged_steps, standardised
from saplan.methods.registry import METHODS
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.targets import value_rollout
from saplan.methods.update import train_chunk
from saplan.rl.rollout import Trajectory
from saplan.rl.settings import paper_settings
from tests.methods.probe import COUNT_UP, GAME, LEFT, METHOD, PRESS, RIGHT, SMALL, TOGGLE, standing

PAPER = dataclasses.replace(
    SMALL, **paper_settings(credit_to_game=False), joint=False, doubt=0.0, calibrated=False, explored_positives=True
)
UPDATES = 200


@functools.cache
def learnt() -> StructuredAgent:
    learner = METHOD.begin(GAME, PAPER, jax.random.key(0))
    for _ in range(UPDATES // 4):
        learner, _ = train_chunk(METHOD, GAME, PAPER, UPDATES, 4, 4, learner)
    return METHOD.agent_of(learner, GAME, PAPER)


@pytest.mark.parametrize(("change", "lamp", "towards", "end"), [(COUNT_UP, 1, LEFT, 0), (TOGGLE, 0, RIGHT, 3)])
def test_the_right_policy_is_found(change: tuple[float, float], lamp: int, towards: int, end: int) -> None:
    agent = learnt()
    for place in range(GAME.length):
        state = jax.tree.map(lambda x: x[None], standing(place, 1, lamp))
        trunk = agent.policy.trunk(jax.vmap(GAME.observe)(state), jax.vmap(GAME.attributes)(state))
        best = int(jnp.argmax(agent.policy.execution(trunk, jnp.array([change]))))
        assert best == (PRESS if place == end else towards)


def test_the_critic_counts_the_steps_that_are_left() -> None:
    agent, states = learnt(), [standing(place, 1, 1) for place in range(GAME.length)]
    state = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    trunk = agent.policy.trunk(jax.vmap(GAME.observe)(state), jax.vmap(GAME.attributes)(state))
    value = agent.policy.execution_value(trunk, jnp.tile(jnp.array(COUNT_UP), (GAME.length, 1)))
    np.testing.assert_allclose(value, PAPER.discount ** np.arange(GAME.length), atol=0.1)


def test_plans_go_the_only_way() -> None:
    plan = learnt().plan(standing(3, 1, 0), "count=2", PAPER_PLANNER)
    assert [tuple(learnt().memory.delta[step.transition].tolist()) for step in plan.path] == [TOGGLE, COUNT_UP]


def test_exploration_has_a_network_of_its_own() -> None:
    policy = learnt().policy
    assert policy.explorer is not None
    changed = jax.tree.map(jnp.zeros_like, policy.explorer)
    without = dataclasses.replace(policy, explorer=changed)
    state = jax.tree.map(lambda x: x[None], standing(0, 1, 1))
    given = jax.vmap(GAME.observe)(state), jax.vmap(GAME.attributes)(state)
    one, other = policy.trunk(*given), without.trunk(*given)
    np.testing.assert_array_equal(
        policy.execution(one, jnp.array([COUNT_UP])), without.execution(other, jnp.array([COUNT_UP]))
    )
    assert not np.array_equal(policy.exploration(one), without.exploration(other))


@functools.cache
def _played() -> tuple[Any, Any]:
    """A policy that has learnt nothing, and a rollout by it."""
    learner = METHOD.begin(GAME, PAPER, jax.random.key(3))
    return learner.policy, eqx.filter_jit(lambda key: METHOD.play(GAME, PAPER, learner, key))(jax.random.key(4))


def _judged(**changes: Any) -> tuple[JudgedSteps, Trajectory]:
    policy, rollout = _played()
    settings = dataclasses.replace(PAPER, **changes)

    @eqx.filter_jit
    def judge(policy: Any, rollout: Any) -> JudgedSteps:
        values = value_rollout(GAME, settings, policy, rollout)
        return judged_steps(values, rollout, 2.0 * rollout.trajectory.changed)

    return judge(policy, rollout), rollout.trajectory


def test_outcomes_by_hand_without_bootstrapping() -> None:
    judged, steps = _judged(trace=1.0)
    outcome = np.asarray(judged.outcome).reshape(steps.action.shape)
    explores, changed, success = (np.asarray(x) for x in (steps.explores, steps.changed, steps.success))
    ended = success | np.asarray(steps.failure) | (explores & changed)
    checked = 0
    for lane in range(outcome.shape[1]):
        for time in range(outcome.shape[0]):
            ends = np.flatnonzero(ended[time:, lane])
            cut = np.asarray(steps.game_over)[time:, lane] & ~ended[time:, lane]
            if not len(ends) or cut[: ends[0] + 1].any():
                continue  # the rollout or the horizon ends first: the critic's guess stands in
            end = time + ends[0]
            gain = 2.0 * changed[end, lane] if explores[time, lane] else float(success[end, lane])
            discount = PAPER.explore_discount if explores[time, lane] else PAPER.discount
            assert outcome[time, lane] == pytest.approx(gain * discount ** ends[0], abs=1e-4)
            checked += 1
    assert checked > 100


def test_credit_to_the_game_counts_all_later_changes() -> None:
    judged, steps = _judged(trace=1.0, credit_to_game=True, explore_discount=1.0)
    outcome = np.asarray(judged.outcome).reshape(steps.action.shape)
    checked = 0
    for lane in np.flatnonzero(np.asarray(steps.explores).all(axis=0)):
        over = np.flatnonzero(np.asarray(steps.game_over)[:, lane])
        if not len(over) or not np.asarray(steps.failure)[over[0], lane]:
            continue
        later = np.cumsum(np.asarray(steps.changed)[: over[0] + 1, lane][::-1])[::-1]
        np.testing.assert_allclose(outcome[: over[0] + 1, lane], 2.0 * later, atol=1e-3)
        checked += 1
    assert checked


def test_advantages_of_each_policy_are_standardised_apart() -> None:
    judged, _ = _judged()
    for mask in (np.asarray(judged.explores), ~np.asarray(judged.explores)):
        own = np.asarray(judged.advantage)[mask]
        assert own.mean() == pytest.approx(0.0, abs=1e-4)
        assert own.std() == pytest.approx(1.0, abs=1e-2)
    assert np.all(np.asarray(standardised(jnp.ones(4), jnp.zeros(4, bool))) > 0)  # an empty mask divides by no zero


def test_the_gradient_stops_where_the_policy_has_moved_too_far() -> None:
    judged, _ = _judged()
    policy, _ = _played()
    still = dataclasses.replace(PAPER, entropy=0.0)
    towards = dataclasses.replace(judged, advantage=jnp.ones_like(judged.advantage))
    moved = dataclasses.replace(towards, log_probability=towards.log_probability - 1.0)

    def steepest(batch: JudgedSteps) -> float:
        def actor(policy: Any) -> Any:
            return clipped_loss(policy, still, dataclasses.replace(batch, outcome=batch.outcome * 0))

        gradient = eqx.filter_jit(jax.grad(actor))(policy).network.head.outputs.bias[
            :3
        ]  # the actor's logits, not the critic's value
        return float(jnp.max(jnp.abs(gradient)))

    assert steepest(towards) > 1e-4
    assert steepest(moved) < 1e-7


@pytest.mark.parametrize("name", sorted(GAMES))
@pytest.mark.parametrize("method", sorted(METHODS))
def test_the_paper_variant_of_every_method_is_a_policy_gradient(name: str, method: str) -> None:
    game = GAMES[name]()
    if method == "curriculum" and not game.farthest_goal:
        pytest.skip("its goals have no distances")
    settings = METHODS[method].settings_for(game, paper=True)
    assert settings.policy_gradient
    assert not settings.relabel


@pytest.mark.parametrize("changes", [{"relabel": True}, {"repeat_cost": 0.5}])
def test_what_policy_gradients_cannot_do_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="policy gradients"):
        dataclasses.replace(PAPER, **changes)
