"""The structured attribute model: the boxes wired as in the paper's block diagram."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int32, PRNGKeyArray

from saplan.games import Game
from saplan.learning.returns import agreement, lambda_returns, masked_mean
from saplan.model.attempt import Lanes, Steps, begin, exploring, identity_wish, roll_out
from saplan.model.edges import EdgeDetector, Replay, edge_loss, empty_replay, push
from saplan.model.exploration import exploration_reward
from saplan.model.memory import Memory, count_visits, empty_memory, remember
from saplan.model.policy import Policy, act_in_lanes
from saplan.model.proposals import proposal_weights, propose
from saplan.model.settings import Settings


class Learner(eqx.Module):
    """Everything that training changes."""

    policy: Policy
    detector: EdgeDetector
    memory: Memory
    positives: Replay
    outcomes: Replay
    policy_optimiser: Any
    detector_optimiser: Any
    reward_scale: Float[Array, ""]
    """Running mean of the exploration reward, by which it is divided."""
    lanes: Lanes
    key: PRNGKeyArray
    updates: Int32[Array, ""]


class Report(eqx.Module):
    """What one update has to say."""

    attempts: Float[Array, ""]
    successes: Float[Array, ""]
    success_steps: Float[Array, ""]
    explored: Float[Array, ""]
    execution_loss: Float[Array, ""]
    exploration_loss: Float[Array, ""]
    edge_loss: Float[Array, ""]


def optimisers(settings: Settings, updates: int):
    rate = optax.linear_schedule(
        settings.learning_rate, settings.learning_rate / 10, updates * settings.epochs * settings.minibatches
    )
    return (
        optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate, eps=1e-5)),
        optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3)),
    )


def begin_training(game, settings, key, updates):
    space = game.space
    policy_key, detector_key, lanes_key, key = jax.random.split(key, 4)
    policy = Policy.init(policy_key, game, settings.hidden)
    detector = EdgeDetector.init(detector_key, space, 64)
    memory = empty_memory(space, settings.capacity)
    p_opt, d_opt = optimisers(settings, updates)
    return Learner(
        policy=policy, detector=detector, memory=memory,
        positives=empty_replay(space, settings.capacity, settings.positives), outcomes=empty_replay(space, settings.capacity, settings.outcomes),
        policy_optimiser=p_opt.init(policy), detector_optimiser=d_opt.init(detector),
        reward_scale=jnp.ones(()),
        lanes=begin(game, lanes_key, settings.lanes, lambda k, rho: identity_wish(space, settings.lanes)),
        key=key, updates=jnp.zeros((), jnp.int32),
    )


def policy_targets(game, settings, policy, memory, steps, last_words, last_rho, reward):
    """Targets of all heads for every step of a rollout."""
    space = game.space
    T, N = steps.action.shape
    words = jnp.concatenate([steps.words, last_words[None]])
    rho = jnp.concatenate([steps.rho, last_rho[None]])
    trunk = policy.trunk(space, words.reshape((T + 1) * N, -1), rho.reshape((T + 1) * N, -1))
    action_next = jnp.concatenate([steps.action[1:], jnp.zeros((1, N), steps.action.dtype)])
    cut = jnp.concatenate([jnp.ones(T - 1), jnp.zeros(1)])[:, None]  # the last step has no successor in the rollout

    def goal_targets(delta):
        logits = policy.execution(space, trunk, delta).reshape(T + 1, N, -1)
        value = jax.nn.sigmoid(jnp.max(logits, axis=-1))
        hit = steps.changed & space.same_change(steps.delta, delta)
        agree = agreement(logits[1:], action_next, settings.temperature)
        follow_ok = jnp.concatenate([usable(steps)[1:], jnp.zeros((1, N), bool)])
        return lambda_returns(
            hit.astype(jnp.float32), settings.discount * ~steps.changed, value[1:], settings.trace * agree * cut * follow_ok
        )

    execution = jax.lax.map(goal_targets, memory.delta)
    q = policy.exploration(space, trunk).reshape(T + 1, N, -1)
    value = jnp.max(q, axis=-1)
    goes_on = ~steps.game_over & (settings.credit_to_game | ~steps.changed)
    agree = agreement(q[1:], action_next, settings.explore_temperature)
    exploration = lambda_returns(reward, settings.explore_discount * goes_on, value[1:], settings.trace * agree * cut)
    return execution, exploration


def usable(steps):
    """Steps whose outcome is known: a game cut off without a change says nothing of what would have come."""
    return steps.changed | ~steps.game_over


def update(game, settings, optimiser, detector_optimiser, learner: Learner):
    space = game.space
    N = settings.lanes
    key, roll_key, edge_key, shuffle_key = jax.random.split(learner.key, 4)
    policy, memory, detector = learner.policy, learner.memory, learner.detector
    explores = exploring(N)

    def wish(key, rho):
        half = N // 2
        chosen = propose(key, proposal_weights(memory, detector, space, settings, rho[half:]))
        return jnp.concatenate([identity_wish(space, half), memory.delta[chosen]])

    lanes, steps = roll_out(
        game, settings, roll_key, learner.lanes, partial(act_in_lanes, policy, space, settings), wish
    )
    # --- memory
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), steps)
    by_explorer = jnp.tile(explores, settings.rollout)
    memory = remember(memory, space, flat.delta, flat.changed)
    memory = eqx.tree_at(lambda m: (m.explored, m.executed), memory, (
        count_visits(memory.explored, space, flat.after, flat.changed & by_explorer),
        count_visits(memory.executed, space, flat.after, flat.changed & ~by_explorer)))
    ended = (flat.success | flat.failure) & ~by_explorer & (learner.updates > 0)
    entry = memory.index(space, flat.wish)
    member = (entry[:, None] == jnp.arange(settings.capacity)) & ended[:, None]
    memory = eqx.tree_at(lambda m: (m.tried, m.succeeded), memory, (
        memory.tried + jnp.sum(member, axis=0, dtype=jnp.int32),
        memory.succeeded + jnp.sum(member & flat.success[:, None], axis=0, dtype=jnp.int32)))
    one = jnp.ones(flat.changed.shape)
    positives = push(learner.positives, memory.index(space, flat.delta), flat.rho, flat.changed, one, flat.changed)
    outcomes = push(learner.outcomes, entry, flat.rho, flat.success, flat.clock.astype(jnp.float32), ended)
    # --- edge detector
    def edge_step(carry, key):
        detector, opt = carry
        loss, grads = jax.value_and_grad(edge_loss)(detector, space, key, memory.delta, positives, outcomes, settings.edge_batch)
        updates, opt = detector_optimiser.update(grads, opt)
        return (eqx.apply_updates(detector, updates), opt), loss
    (detector, d_opt), e_loss = jax.lax.scan(edge_step, (detector, learner.detector_optimiser), jax.random.split(edge_key, settings.edge_steps))
    # --- policies
    reward = exploration_reward(memory, detector, space, steps.rho, steps.delta, steps.after, steps.changed, (settings.alpha_surprise, settings.alpha_rare))
    mean_reward = masked_mean(reward, steps.changed)
    scale = jnp.where(learner.updates == 0, mean_reward, 0.99 * learner.reward_scale + 0.01 * mean_reward)
    last_words = jax.vmap(game.observe)(lanes.state)
    execution, exploration = policy_targets(game, settings, policy, memory, steps, last_words, lanes.rho, reward / jnp.maximum(scale, 1e-3))
    inside = space.contains(space.compose(flat.rho[None], memory.delta[:, None]))
    weight = inside & memory.used[:, None] & usable(flat)[None]
    if not settings.relabel:
        weight = weight & space.same_change(flat.wish[None], memory.delta[:, None]) & ~by_explorer[None]
    explore_weight = usable(flat) if settings.relabel else usable(flat) & by_explorer
    batch = (flat.words, flat.rho, flat.action, execution.reshape(settings.capacity, -1).T, weight.T, exploration.reshape(-1), explore_weight)

    def loss_fn(policy, words, rho, action, target, weight, explore_target, explore_weight):
        trunk = policy.trunk(space, words, rho)
        def one_goal(delta):
            logits = policy.execution(space, trunk, delta)
            return jnp.take_along_axis(logits, action[:, None], axis=1)[:, 0]
        logits = jax.lax.map(jax.checkpoint(one_goal), memory.delta)
        exec_loss = jnp.sum(optax.sigmoid_binary_cross_entropy(logits.T, target) * weight) / jnp.maximum(weight.shape[0], 1)
        q = jnp.take_along_axis(policy.exploration(space, trunk), action[:, None], axis=1)[:, 0]
        expl_loss = masked_mean(optax.huber_loss(q, explore_target), explore_weight)
        return exec_loss + 0.5 * expl_loss, (exec_loss, expl_loss)

    def minibatch(carry, index):
        policy, opt = carry
        (_, losses), grads = jax.value_and_grad(loss_fn, has_aux=True)(policy, *(x[index] for x in batch))
        updates, opt = optimiser.update(grads, opt)
        return (eqx.apply_updates(policy, updates), opt), losses

    size = settings.lanes * settings.rollout
    order = jnp.concatenate([jax.random.permutation(k, size).reshape(settings.minibatches, -1) for k in jax.random.split(shuffle_key, settings.epochs)])
    (policy, p_opt), losses = jax.lax.scan(minibatch, (policy, learner.policy_optimiser), order)
    f = lambda x: jnp.sum(x.astype(jnp.float32))
    report = Report(f(ended), f(ended & flat.success), masked_mean(flat.clock.astype(jnp.float32), ended & flat.success), f(flat.changed & by_explorer), losses[0].mean(), losses[1].mean(), e_loss.mean())
    return Learner(policy, detector, memory, positives, outcomes, p_opt, d_opt, scale, lanes, key, learner.updates + 1), report
