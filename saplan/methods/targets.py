"""What the policies learn from a rollout: targets for every head, and the loss towards them.

Every step teaches the execution policy about every transition in 𝓑 at once. If the step changed ρ, the value of the
transition it made is one and that of all others is zero; if not, the value is what the next state promises. So nothing
an explorer stumbles upon is lost on the executor, and failing at one wish is practice for another. `relabel=False` is
the paper's way: a step teaches about the wish it was taken for.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Int32, Shaped

from saplan.games import Game
from saplan.methods.encoders import Encoder
from saplan.methods.policy import Policy, execution_logits
from saplan.methods.structured.memory import Memory
from saplan.rl.networks import Head
from saplan.rl.optim import accumulate_loss, in_buckets
from saplan.rl.returns import agreement, lambda_returns, masked_mean
from saplan.rl.rollout import RolloutState, Trajectory, usable
from saplan.rl.settings import Settings

TimeLanes = Float[Array, "time lanes"]


class Targets(eqx.Module):
    """A rollout, flattened, with what each head should have said of it about each of C wishes."""

    sight: Shaped[Array, "n slots"]
    rho: Float[Array, "n K"]
    action: Int[Array, "n"]
    subgoal: Float[Array, "n C W"] | None
    """The wishes of every step; None where all steps share the transitions of 𝓑."""
    execution: Float[Array, "n C"]
    execution_weight: Bool[Array, "n C"]
    exploration: Float[Array, "n"]
    exploration_weight: Bool[Array, "n"]


class Rollout(eqx.Module):
    """A rollout with what a policy thinks of the states it came to: all that targets are made of."""

    steps: Trajectory
    following: Float[Array, "time lanes features"]
    """The trunk at the state after every step."""
    unharmed: TimeLanes
    """What every step's consequences are worth: one, or less where it cost something vital."""
    policy: Policy
    settings: Settings = eqx.field(static=True)

    def execution(
        self, subgoal: Float[Array, "*step W"], hit: Bool[Array, "time lanes"], stops: Bool[Array, "time lanes"]
    ) -> TimeLanes:
        """Targets of Q(s, a, wish), where a hit is worth one and nothing follows a stop or a death."""
        logits = self.policy.execution(self.following, subgoal)
        value = jax.nn.sigmoid(jnp.max(logits, axis=-1))
        trace = self._trace(logits, self.settings.temperature)
        goes_on = ~(stops | self.steps.lost) * self.unharmed
        return lambda_returns(hit * self.unharmed, self.settings.discount * goes_on, value, trace)

    def exploration(self, reward: TimeLanes) -> TimeLanes:
        """Targets of the value of exploring."""
        steps, settings = self.steps, self.settings
        values = self.policy.exploration(self.following)
        goes_on = ~steps.game_over & (settings.credit_to_game | ~steps.changed)
        trace = self._trace(values, settings.explore_temperature)
        discount = settings.explore_discount * goes_on * self.unharmed
        return lambda_returns(reward * self.unharmed, discount, jnp.max(values, axis=-1), trace)

    def _trace(self, logits: Float[Array, "time lanes actions"], temperature: float) -> TimeLanes:
        """λ where the next step is known and took the action that these logits, of the next state, would take."""
        next_action = jnp.roll(self.steps.action, -1, axis=0)
        next_known = jnp.roll(usable(self.steps), -1, axis=0).at[-1].set(False)
        return self.settings.trace * next_known * agreement(logits, next_action, temperature)


def review(game: Game[Any], settings: Settings, policy: Policy, steps: Trajectory, lanes: RolloutState) -> Rollout:
    """Looks back at a rollout that ended with `lanes`."""
    sight = jnp.concatenate([steps.sight[1:], jax.vmap(game.observe)(lanes.state)[None]])
    rho = jnp.concatenate([steps.rho[1:], lanes.rho[None]])
    following = policy.trunk(flat(sight), flat(rho))
    following = following.reshape(*steps.action.shape, -1)
    return Rollout(steps, following, unharmed(game, settings, steps), policy, settings)


def unharmed(game: Game[Any], settings: Settings, steps: Trajectory) -> TimeLanes:
    """The share that every step leaves of what the agent lives by, sharpened; what it gains makes up for nothing."""
    if not game.vital or not settings.harm:
        return jnp.ones(steps.action.shape)
    vital = jnp.array([game.space.names.index(name) for name in game.vital])
    before, after = steps.rho[..., vital], steps.after[..., vital]
    left = jnp.where(before > 0, after / jnp.maximum(before, 1e-6), 1.0)
    return jnp.prod(jnp.clip(left, 0.0, 1.0), axis=-1) ** settings.harm


def flat(x: Shaped[Array, "time lanes ..."]) -> Shaped[Array, "n ..."]:
    """Steps of all lanes in one row."""
    return x.reshape(-1, *x.shape[2:])


def make_targets(
    game: Game[Any],
    settings: Settings,
    policy: Policy,
    memory: Memory,
    steps: Trajectory,
    lanes: RolloutState,
    reward: TimeLanes,
) -> Targets:
    """Targets for a rollout that ended with `lanes`; `reward` is that of exploration."""
    space, rollout = game.space, review(game, settings, policy, steps, lanes)

    def targets(delta: Float[Array, "K"]) -> TimeLanes:
        return rollout.execution(delta, steps.changed & space.same_change(steps.delta, delta), steps.changed)

    execution = for_each_used(memory.used, memory.delta, targets, jnp.zeros(steps.action.shape))
    inside = space.contains(space.compose(steps.rho[None], memory.delta[:, None, None])) & usable(steps)
    weight = inside & memory.used[:, None, None]
    explored = usable(steps)
    if not settings.relabel:
        weight &= space.same_change(steps.subgoal[None], memory.delta[:, None, None]) & ~steps.explores
        explored &= steps.explores
    by_step = lambda x: x.reshape(x.shape[0], -1).T  # noqa: E731
    return Targets(
        flat(steps.sight), flat(steps.rho), flat(steps.action), None, by_step(execution), by_step(weight),
        flat(rollout.exploration(reward)), flat(explored),
    )  # fmt: skip


def for_each_used(
    used: Bool[Array, "C"], subgoals: Float[Array, "C ..."], ask: Callable[[Array], Array], unused: Array
) -> Float[Array, "C ..."]:
    """`ask` about every wish, sparing the work for those not in use, which come last."""

    def in_turn(used: Bool[Array, "C"], subgoals: Float[Array, "C ..."]) -> Array:
        return jax.lax.map(lambda entry: jax.lax.cond(entry[0], ask, lambda _: unused, entry[1]), (used, subgoals))

    def at_once(used: Bool[Array, "C"], subgoals: Float[Array, "C ..."]) -> Array:
        # On a GPU every branch waits for the host: there is one, not one per entry.
        def first(subgoals: Array, _: Array) -> Array:
            asked = jax.vmap(ask)(subgoals)
            return jnp.concatenate([asked, jnp.broadcast_to(unused, (len(used) - len(subgoals), *unused.shape))])

        return in_buckets(first, subgoals, jnp.sum(used))

    return jax.lax.platform_dependent(used, subgoals, cpu=in_turn, default=at_once)


def policy_loss(
    policy: Policy, subgoals: Float[Array, "C *n W"], count: Int32[Array, ""] | int, batch: Targets
) -> Float[Array, ""]:
    """Cross-entropy of the execution logits summed over the first `count` wishes, and half exploration's Huber loss."""
    trunk = policy.trunk(batch.sight, batch.rho)
    explored = taken(policy.exploration(trunk), batch.action)
    explore = masked_mean(optax.huber_loss(explored, batch.exploration), batch.exploration_weight)
    items = (subgoals, batch.execution.T, batch.execution_weight.T)
    learnt, given = (policy.network.head, trunk), batch.action
    execute = accumulate_loss(partial(subgoal_loss, policy.encoder), learnt, given, items, jnp.asarray(count))
    return execute + 0.5 * explore


def own_subgoal_loss(policy: Policy, count: Int32[Array, ""] | int, batch: Targets) -> Float[Array, ""]:
    """The loss of lessons in which every step has wishes of its own."""
    assert batch.subgoal is not None
    return policy_loss(policy, jnp.swapaxes(batch.subgoal, 0, 1), count, batch)


def subgoal_loss(
    encoder: Encoder,
    learnt: tuple[Head, Float[Array, "n features"]],
    action: Int[Array, "n"],
    item: tuple[Float[Array, "*n W"], Float[Array, "n"], Bool[Array, "n"]],
) -> Float[Array, ""]:
    """Cross-entropy of the logits of one wish."""
    (head, trunk), (subgoal, target, weight) = learnt, item
    logits = taken(execution_logits(head, encoder, trunk, subgoal), action)
    return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, target) * weight)


def taken(values: Float[Array, "n actions"], action: Int[Array, "n"]) -> Float[Array, "n"]:
    """Of every row, the value of the action taken."""
    return jnp.take_along_axis(values, action[:, None], axis=1)[:, 0]
