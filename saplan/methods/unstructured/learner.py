"""The predecessor, an attribute planner without algebra (Zhang et al., Composable Planning with Attributes, 2018).

Attributes are a set: what is known of one ρ says nothing of another. A table counts how often each pair (ρ_i, ρ_j) was
seen and how often an attempt to get from one to the other succeeded; the policy is told the target ρ_j; plans are
shortest paths by -log of the table's ratio. Reals are rounded to integers. Network, rollout, learner and search are the
structured model's; as there, every step teaches about every known neighbour of its ρ.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32, PRNGKeyArray

from saplan.algebra import Product, Rho
from saplan.algebra.base import Features
from saplan.games import Game
from saplan.methods.base import ADAM, Report, descend, learning_rate, report_on, select, shuffle
from saplan.methods.encoders import Encoder
from saplan.methods.policy import Policy, sample_actions
from saplan.methods.targets import Targets, flat, for_each_used, own_subgoal_loss, review
from saplan.methods.unstructured.agent import UnstructuredAgent
from saplan.methods.unstructured.rounding import rounded
from saplan.methods.unstructured.settings import UnstructuredSettings
from saplan.methods.unstructured.table import Table, count_attempts, count_changes, empty_table
from saplan.rl.returns import masked_mean
from saplan.rl.rollout import Judge, RolloutState, StepOutcome, Trajectory, begin, fresh_maps, roll_out, usable


@dataclass(frozen=True)
class OneHotEncoder(Encoder):
    """One flag per value of every attribute, for ρ and for the target alike: no value is near any other."""

    space: Product

    @property
    def subgoal_size(self) -> int:  # type: ignore[override]
        return self.space.size

    @property
    def state_width(self) -> int:  # type: ignore[override]
        return sum(self.space.bins)

    @property
    def subgoal_width(self) -> int:  # type: ignore[override]
        return sum(self.space.bins)

    def state(self, rho: Rho) -> Features:
        cells = self.space.bin(rho)
        flags = [jax.nn.one_hot(cells[..., k], size) for k, size in enumerate(self.space.bins)]
        return jnp.concatenate(flags, axis=-1)

    def subgoal(self, subgoal: Rho) -> Features:
        return self.state(subgoal)


class UnstructuredLearner(eqx.Module):
    """Everything that training changes."""

    policy: Policy
    table: Table
    policy_moments: Any
    reward_scale: Float[Array, ""]
    lanes: RolloutState
    key: PRNGKeyArray
    updates: Int32[Array, ""]


def begin_unstructured(game: Game[Any], settings: UnstructuredSettings, key: PRNGKeyArray) -> UnstructuredLearner:
    """Nothing learnt yet."""
    policy_key, lanes_key, key = jax.random.split(key, 3)
    seen = rounded(game)
    encoder = OneHotEncoder(seen.space)
    policy = Policy.init(policy_key, seen, encoder, settings.hidden)
    return UnstructuredLearner(
        policy=policy,
        table=empty_table(settings.nodes, settings.degree, seen.space.size),
        policy_moments=ADAM.init(policy),
        reward_scale=jnp.ones(()),
        lanes=begin(seen, settings, lanes_key, encoder.subgoal_size),
        key=key,
        updates=jnp.zeros((), jnp.int32),
    )


def update_unstructured(
    game: Game[Any], settings: UnstructuredSettings, total: int, learner: UnstructuredLearner
) -> tuple[UnstructuredLearner, Report]:
    """One rollout and all that is learnt from it."""
    seen = rounded(game)
    key, play_key, map_key, policy_key = jax.random.split(learner.key, 4)
    lanes, steps = roll_out(
        seen, settings, play_key, learner.lanes, fresh_maps(seen, map_key, settings.lanes),
        partial(sample_actions, learner.policy, settings), partial(draw_neighbour, learner.table), by_arrival(),
    )  # fmt: skip
    every: Trajectory = jax.tree.map(flat, steps)
    tried = (every.success | every.failure) & ~every.explores
    table = count_changes(learner.table, every.rho, every.after, every.changed)
    decay = jnp.where(learner.updates % settings.epoch == settings.epoch - 1, settings.decay, 1.0)
    table = count_attempts(table, every.rho, every.subgoal, tried, every.success, decay)

    rare = rare_pairs(table, every.rho, every.after, settings.share_floor)
    reward = jnp.where(steps.changed, rare.reshape(steps.changed.shape), 0.0)
    mean = masked_mean(reward, steps.changed)
    scale = jnp.where(learner.updates == 0, mean, 0.99 * learner.reward_scale + 0.01 * mean)
    taught, columns = make_targets(
        seen, settings, learner.policy, table, steps, lanes, reward / jnp.maximum(scale, 1e-3)
    )
    policy, policy_moments, losses = descend(
        lambda policy, rows: own_subgoal_loss(policy, columns, select(taught, rows)),
        learner.policy, learner.policy_moments, learning_rate(settings, learner.updates, total),
        shuffle(settings, policy_key),
    )  # fmt: skip
    learner = UnstructuredLearner(policy, table, policy_moments, scale, lanes, key, learner.updates + 1)
    return learner, report_on(every, table.pairs, table.overflow, reward, losses, jnp.zeros(1))


def by_arrival() -> Judge:
    """Any change ends an attempt; to stand at the target is a hit."""

    def judge(before: Rho, after: Rho, subgoal: Rho) -> StepOutcome:
        changed = jnp.any(after != before, axis=-1)
        return StepOutcome(changed & jnp.all(after == subgoal, axis=-1), changed)

    return judge


def draw_neighbour(table: Table, key: PRNGKeyArray, rho: Float[Array, "lanes K"]) -> Float[Array, "lanes K"]:
    """A known neighbour of every ρ, drawn by how often it was seen; ρ itself, a wish in vain, where none is known."""
    node = table.find(rho)
    targets, there = table.targets(node)
    weights = jnp.where(there, jnp.log(table.explored[node].astype(jnp.float32)), -jnp.inf)
    column = jax.random.categorical(key, jnp.where(there.any(1, keepdims=True), weights, 0.0), axis=-1)
    drawn = jnp.take_along_axis(targets, column[:, None, None], axis=1)[:, 0]
    return jnp.where(there.any(1)[:, None], drawn, rho)


def rare_pairs(table: Table, before: Rho, after: Rho, floor: float) -> Float[Array, "n"]:
    """The exploration bonus (share + floor)^-0.5; a pair's share is its count by the mean count of all pairs."""
    node = table.find(before)
    column = table.column(node, table.find(after))
    mean = jnp.sum(table.explored.astype(jnp.float32)) / jnp.maximum(table.pairs, 1)
    share = table.explored[node, column] / jnp.maximum(mean, 1.0)
    # What found no room in the table must not look new for ever.
    return jnp.where(column >= 0, (share + floor) ** -0.5, 0.0)


def make_targets(
    game: Game[Any],
    settings: UnstructuredSettings,
    policy: Policy,
    table: Table,
    steps: Trajectory,
    lanes: RolloutState,
    reward: Float[Array, "time lanes"],
) -> tuple[Targets, Int32[Array, ""]]:
    """Targets about all known neighbours of every step's ρ, and how many of their columns are in use."""
    rollout, shape = review(game, settings, policy, steps, lanes), steps.action.shape
    targets, there = table.targets(table.find(flat(steps.rho)))
    subgoals = jnp.moveaxis(targets.reshape(*shape, *targets.shape[1:]), 2, 0)
    there = jnp.moveaxis(there.reshape(*shape, -1), 2, 0)

    def about(subgoal: Float[Array, "time lanes K"]) -> Float[Array, "time lanes"]:
        return rollout.execution(subgoal, steps.changed & jnp.all(steps.after == subgoal, axis=-1), steps.changed)

    columns = jnp.max(jnp.sum(there, axis=0))
    execution = for_each_used(jnp.arange(len(subgoals)) < columns, subgoals, about, jnp.zeros(shape))
    weight, explored = there & usable(steps), usable(steps)
    if not settings.relabel:
        weight &= jnp.all(steps.subgoal[None] == subgoals, axis=-1) & ~steps.explores
        explored &= steps.explores
    by_step = lambda x: jnp.moveaxis(x.reshape(x.shape[0], -1, *x.shape[3:]), 0, 1)  # noqa: E731
    taught = Targets(
        flat(steps.sight), flat(steps.rho), flat(steps.action), by_step(subgoals), by_step(execution), by_step(weight),
        flat(rollout.exploration(reward)), flat(explored),
    )  # fmt: skip
    return taught, columns


def agent_of(learner: UnstructuredLearner, game: Game[Any], settings: UnstructuredSettings) -> UnstructuredAgent:
    """What of a learner is used after training."""
    return UnstructuredAgent(learner.policy, learner.table, game, settings)


def untrained(game: Game[Any], settings: UnstructuredSettings) -> UnstructuredAgent:
    """An agent of the right shape, to be filled."""
    return agent_of(begin_unstructured(game, replace(settings, lanes=2), jax.random.key(0)), game, settings)
