"""Training without any task: the boxes wired as in the paper's block diagram.

One update plays a rollout in all lanes, writes to the memory, teaches the edge detector (feasible: every change
that was seen; not: what execution failed at) and teaches both policies.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int32, PRNGKeyArray

from saplan.algebra import Product
from saplan.games import Game
from saplan.methods.encoders import AlgebraEncoder
from saplan.methods.policy import Policy, sample_actions
from saplan.methods.structured.edge_detector import EdgeDetector, Replay, edge_loss, empty_replay, push
from saplan.methods.structured.exploration import exploration_reward
from saplan.methods.structured.memory import Memory, count_attempts, count_visits, empty_memory, remember
from saplan.methods.structured.proposals import proposal_weights
from saplan.methods.targets import Targets, make_targets, policy_loss
from saplan.rl.finite import NONE, first_fault
from saplan.rl.optim import SEEDS, largest_of_all
from saplan.rl.returns import masked_mean
from saplan.rl.rollout import RolloutState, Trajectory, begin, by_first_change, fresh_maps, roll_out
from saplan.rl.settings import Settings


class Learner(eqx.Module):
    """Everything that training changes."""

    policy: Policy
    detector: EdgeDetector
    memory: Memory
    positives: Replay
    outcomes: Replay
    policy_moments: Any
    detector_moments: Any
    reward_scale: Float[Array, ""]
    """Running mean of the exploration reward, by which it is divided."""
    lanes: RolloutState
    key: PRNGKeyArray
    updates: Int32[Array, ""]


class Report(eqx.Module):
    """What one update has to say, by whichever method."""

    attempts: Int32[Array, ""]
    successes: Int32[Array, ""]
    success_steps: Float[Array, ""]
    """Mean steps of a success."""
    found: Int32[Array, ""]
    """Transitions that exploration made: positive examples."""
    failed: Int32[Array, ""]
    """Attempts that execution failed at: negative examples."""
    known: Int32[Array, ""]
    """Transitions in 𝓑; for other methods, what they have in its place."""
    overflow: Int32[Array, ""]
    """What found no room there."""
    largest_attribute: Float[Array, ""]
    largest_reward: Float[Array, ""]
    """In magnitude, and not finite if any was not."""
    policy_loss: Float[Array, ""]
    edge_loss: Float[Array, ""]
    fault: Int32[Array, ""]
    """Which of the numbers that must be finite was not: see `guard`."""


def report_on(
    flat: Trajectory, known: Array, overflow: Array, reward: Array, policy_losses: Array, edge_losses: Array
) -> Report:
    """The report on a flattened rollout."""
    tried = (flat.success | flat.failure) & ~flat.explores
    return Report(
        attempts=jnp.sum(tried, dtype=jnp.int32),
        successes=jnp.sum(flat.success, dtype=jnp.int32),
        success_steps=masked_mean(flat.clock.astype(jnp.float32), flat.success),
        found=jnp.sum(flat.changed & flat.explores, dtype=jnp.int32),
        failed=jnp.sum(tried & ~flat.success, dtype=jnp.int32),
        known=known,
        overflow=overflow,
        largest_attribute=jnp.maximum(jnp.max(jnp.abs(flat.rho)), jnp.max(jnp.abs(flat.after))),
        largest_reward=jnp.max(jnp.abs(reward)),
        policy_loss=jnp.mean(policy_losses),
        edge_loss=jnp.mean(edge_losses),
        fault=jnp.int32(NONE),
    )


ADAM = optax.scale_by_adam(eps=1e-5)


def begin_training(game: Game[Any], settings: Settings, key: PRNGKeyArray) -> Learner:
    """Nothing learnt yet, all lanes at the start of a game."""
    policy_key, detector_key, lanes_key, key = jax.random.split(key, 4)
    encoder = AlgebraEncoder(game.space)
    policy = Policy.init(policy_key, game, encoder, settings.hidden)
    detector = EdgeDetector.init(detector_key, game.space, settings.edge_hidden)
    return Learner(
        policy=policy,
        detector=detector,
        memory=empty_memory(game.space, settings.capacity, settings.cells),
        positives=empty_replay(game.space, settings.capacity, settings.positives),
        outcomes=empty_replay(game.space, settings.capacity, settings.outcomes),
        policy_moments=ADAM.init(policy),
        detector_moments=ADAM.init(detector),
        reward_scale=jnp.ones(()),
        lanes=begin(game, settings, lanes_key, encoder.subgoal_size),
        key=key,
        updates=jnp.zeros((), jnp.int32),
    )


def update(game: Game[Any], settings: Settings, total: int, learner: Learner) -> tuple[Learner, Report]:
    """One rollout and all that is learnt from it; `total` is the number of updates the whole training will have."""
    key, play_key, edge_key, policy_key = jax.random.split(learner.key, 4)
    lanes, steps = play(game, settings, play_key, learner)
    flat: Trajectory = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), steps)
    tried = (flat.success | flat.failure) & ~flat.explores
    memory = write_memory(learner.memory, game.space, flat, tried)
    positives, outcomes = write_replays(learner, memory, game.space, flat, tried)

    rate = learning_rate(settings, learner.updates, total)
    teach_edges = partial(edge_loss, space=game.space, transitions=memory.delta, positives=positives, outcomes=outcomes)
    detector, detector_moments, edge_losses = descend(
        lambda detector, key: teach_edges(detector, key=key, batch=settings.edge_batch),
        learner.detector, learner.detector_moments, settings.edge_rate, jax.random.split(edge_key, settings.edge_steps),
    )  # fmt: skip

    reward = exploration_reward(memory, detector, game.space, steps, settings)
    mean = masked_mean(reward, steps.changed)
    scale = jnp.where(learner.updates == 0, mean, 0.99 * learner.reward_scale + 0.01 * mean)
    taught = make_targets(game, settings, learner.policy, memory, steps, lanes, reward / jnp.maximum(scale, 1e-3))
    policy, policy_moments, policy_losses = descend(
        lambda policy, rows: policy_loss(policy, memory.delta, memory.size, select(taught, rows)),
        learner.policy, learner.policy_moments, rate, shuffle(settings, policy_key),
    )  # fmt: skip

    learner = Learner(
        policy, detector, memory, positives, outcomes, policy_moments, detector_moments, scale, lanes, key,
        learner.updates + 1,
    )  # fmt: skip
    return learner, report_on(flat, memory.size, memory.overflow, reward, policy_losses, edge_losses)


def play(game: Game[Any], settings: Settings, key: PRNGKeyArray, learner: Learner) -> tuple[RolloutState, Trajectory]:
    """A rollout by the policies as they are."""
    space, memory = game.space, learner.memory

    def propose(key: PRNGKeyArray, rho: Float[Array, "lanes K"]) -> Float[Array, "lanes K"]:
        weights = proposal_weights(memory, learner.detector, space, settings, rho)
        return memory.delta[jax.random.categorical(key, jnp.log(weights), axis=-1)]

    map_key, key = jax.random.split(key)
    fresh, act = fresh_maps(game, map_key, settings.lanes), partial(sample_actions, learner.policy, settings)
    return roll_out(game, settings, key, learner.lanes, fresh, act, propose, by_first_change(space))


def write_memory(memory: Memory, space: Product, flat: Trajectory, tried: Bool[Array, "n"]) -> Memory:
    """Takes in every change, every visit and every attempt of a rollout."""
    memory = remember(memory, space, flat.delta, flat.changed)
    memory = count_visits(memory, space, flat.after, flat.changed & flat.explores, flat.changed & ~flat.explores)
    return count_attempts(memory, space, flat.subgoal, tried, flat.success)


def write_replays(
    learner: Learner, memory: Memory, space: Product, flat: Trajectory, tried: Bool[Array, "n"]
) -> tuple[Replay, Replay]:
    """Feasible: every change, whoever made it. Outcomes: every execution attempt."""
    clock = flat.clock.astype(jnp.float32)
    positives = push(learner.positives, memory.index(space, flat.delta), flat.rho, flat.changed, clock, flat.changed)
    outcomes = push(learner.outcomes, memory.index(space, flat.subgoal), flat.rho, flat.success, clock, tried)
    return positives, outcomes


def learning_rate(settings: Settings, updates: Int32[Array, ""], total: int) -> Float[Array, ""]:
    """The step size of the policies' Adam, falling to a tenth over `total` updates."""
    return settings.learning_rate * (1 - 0.9 * jnp.minimum(updates / total, 1.0))


def select(taught: Targets, rows: Int32[Array, "size"]) -> Targets:
    """Some of the lessons."""
    return jax.tree.map(lambda x: x[rows], taught)


def descend(
    loss: Any, module: Any, moments: Any, rate: Float[Array, ""] | float, batches: Array
) -> tuple[Any, Any, Array]:
    """Adam steps on `loss(module, batch)`, one per batch."""

    def step(carry: tuple[Any, Any], batch: Array) -> tuple[tuple[Any, Any], Array]:
        module, moments = carry
        value, gradient = jax.value_and_grad(loss)(module, batch)
        direction, moments = ADAM.update(gradient, moments)
        return (jax.tree.map(lambda p, d: p - rate * d, module, direction), moments), value

    (module, moments), values = jax.lax.scan(step, (module, moments), batches)
    return module, moments, values


def shuffle(settings: Settings, key: PRNGKeyArray) -> Int32[Array, "batches size"]:
    """Which steps of a rollout each minibatch holds, over all epochs."""
    size = settings.lanes * settings.rollout
    orders = [jax.random.permutation(k, size) for k in jax.random.split(key, settings.epochs)]
    return jnp.concatenate(orders).reshape(settings.epochs * settings.minibatches, -1)


AnyLearner = TypeVar("AnyLearner")
Update = Callable[[Game[Any], Any, int, AnyLearner], tuple[AnyLearner, Report]]
"""One update of a method: (game, settings, updates of the whole training, learner) → learner and report."""


@eqx.filter_jit
def train_chunk(
    game: Game[Any],
    settings: Settings,
    total: int,
    size: int,
    count: Int32[Array, ""] | int,
    learner: AnyLearner,
    step: Update[Any] = update,
) -> tuple[AnyLearner, Report]:
    """At most `size` updates in one compiled program, `count` of them: the last chunk needs no program of its own.

    Reports come stacked, the first `count` of them meaning something. `step` is the method's update. After a number
    that is not finite nothing is learnt any more, and the reports from there on name it.
    """
    shapes = jax.eval_shape(lambda x: step(game, settings, total, x)[1], learner)
    blank = eqx.tree_at(lambda r: r.fault, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes), jnp.int32(NONE))

    def one(carry: tuple[AnyLearner, Array], k: Array) -> tuple[tuple[AnyLearner, Array], Report]:
        learner, fault = carry
        goes_on = (k < count) & (largest_of_all(fault) == NONE)
        learner, report = jax.lax.cond(goes_on, lambda x: step(game, settings, total, x), lambda x: (x, blank), learner)
        fault = jnp.where(goes_on, first_fault(report, learner), fault)
        return (learner, fault), eqx.tree_at(lambda r: r.fault, report, fault)

    (learner, _), reports = jax.lax.scan(one, (learner, first_fault(blank, learner)), jnp.arange(size))
    return learner, reports


@eqx.filter_jit
def train_chunk_of_each(
    game: Game[Any],
    settings: Settings,
    total: int,
    size: int,
    count: Int32[Array, ""] | int,
    learners: AnyLearner,
    step: Update[Any] = update,
) -> tuple[AnyLearner, Report]:
    """The same for several learners, stacked: on a GPU a few of them cost little more than one."""
    one = lambda learner: train_chunk(game, settings, total, size, count, learner, step)  # noqa: E731
    return jax.vmap(one, axis_name=SEEDS)(learners)
