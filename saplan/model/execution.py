"""What the policies learn from a rollout: targets for every head, and the loss towards them.

Every step teaches the execution policy about every transition in 𝓑 at once. If the step changed ρ, the value of the
transition it made is one and that of all others is zero; if not, the value is what the next state promises. So nothing
an explorer stumbles upon is lost on the executor, and failing at one wish is practice for another. `relabel=False` is
the paper's way: a step teaches about the wish it was taken for.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Int16

from saplan.algebra import Product
from saplan.games import Game
from saplan.learning.returns import agreement, lambda_returns, masked_mean
from saplan.model.attempt import Lanes, Steps, usable
from saplan.model.memory import Memory
from saplan.model.policy import Policy
from saplan.model.settings import Settings


class Lessons(eqx.Module):
    """A rollout, flattened, with what each head should have said of it."""

    words: Int16[Array, "n slots"]
    rho: Float[Array, "n K"]
    action: Int[Array, "n"]
    execution: Float[Array, "n C"]
    execution_weight: Bool[Array, "n C"]
    exploration: Float[Array, "n"]
    exploration_weight: Bool[Array, "n"]


def lessons(
    game: Game[Any],
    settings: Settings,
    policy: Policy,
    memory: Memory,
    steps: Steps,
    lanes: Lanes,
    reward: Float[Array, "time lanes"],
) -> Lessons:
    """Targets for a rollout that ended with `lanes`; `reward` is that of exploration."""
    space = game.space
    time, count = steps.action.shape
    words = jnp.concatenate([steps.words, jax.vmap(game.observe)(lanes.state)[None]])
    rho = jnp.concatenate([steps.rho, lanes.rho[None]])
    flat = lambda x: x.reshape(-1, *x.shape[2:])  # noqa: E731
    trunk = policy.trunk(space, flat(words), flat(rho))
    follows = Following(steps, usable(steps), settings)

    def execution_targets(delta: Float[Array, "K"]) -> Float[Array, "time lanes"]:
        logits = policy.execution(space, trunk, delta).reshape(time + 1, count, -1)
        hit = steps.changed & space.same_change(steps.delta, delta)
        value = jax.nn.sigmoid(jnp.max(logits[1:], axis=-1))
        trace = follows.trace(logits[1:], settings.temperature)
        return lambda_returns(hit.astype(jnp.float32), settings.discount * ~steps.changed, value, trace)

    execution = for_each_used(memory, execution_targets, jnp.zeros((time, count)))
    values = policy.exploration(space, trunk).reshape(time + 1, count, -1)[1:]
    goes_on = ~steps.game_over & (settings.credit_to_game | ~steps.changed)
    trace = follows.trace(values, settings.explore_temperature)
    exploration = lambda_returns(reward, settings.explore_discount * goes_on, jnp.max(values, axis=-1), trace)

    inside = space.contains(space.compose(steps.rho[None], memory.delta[:, None, None])) & usable(steps)
    weight = inside & memory.used[:, None, None]
    explored = usable(steps)
    if not settings.relabel:
        weight &= space.same_change(steps.wish[None], memory.delta[:, None, None]) & ~steps.explores
        explored &= steps.explores
    by_step = lambda x: x.reshape(x.shape[0], -1).T  # noqa: E731
    return Lessons(
        flat(steps.words), flat(steps.rho), flat(steps.action), by_step(execution), by_step(weight),
        flat(exploration), flat(explored),
    )  # fmt: skip


class Following(eqx.Module):
    """How far a return may follow the rollout beyond the next state."""

    steps: Steps
    known: Bool[Array, "time lanes"]
    settings: Settings = eqx.field(static=True)

    def trace(self, logits: Float[Array, "time lanes actions"], temperature: float) -> Float[Array, "time lanes"]:
        """λ where the next step is known and took the action that these logits, of the next state, would take."""
        next_action = jnp.roll(self.steps.action, -1, axis=0)
        next_known = jnp.roll(self.known, -1, axis=0).at[-1].set(False)
        return self.settings.trace * next_known * agreement(logits, next_action, temperature)


def for_each_used(memory: Memory, ask: Callable[[Float[Array, "K"]], Array], unused: Array) -> Float[Array, "C ..."]:
    """`ask` about every transition, sparing the work for empty entries of 𝓑 where a branch is cheap."""

    def in_turn(used: Bool[Array, "C"], delta: Float[Array, "C K"]) -> Array:
        return jax.lax.map(lambda entry: jax.lax.cond(entry[0], ask, lambda _: unused, entry[1]), (used, delta))

    def at_once(used: Bool[Array, "C"], delta: Float[Array, "C K"]) -> Array:
        # On a GPU every branch waits for the host; all entries together are one launch.
        return jax.vmap(ask)(delta)

    return jax.lax.platform_dependent(memory.used, memory.delta, cpu=in_turn, default=at_once)


def policy_loss(policy: Policy, space: Product, memory: Memory, batch: Lessons) -> Float[Array, ""]:
    """Cross-entropy of the execution logits summed over transitions, and half the Huber loss of exploration."""
    trunk = policy.trunk(space, batch.words, batch.rho)
    taken = lambda x: jnp.take_along_axis(x, batch.action[:, None], axis=1)[:, 0]  # noqa: E731
    # Transition by transition, recomputed for the gradient: on a CPU this stays in cache and is three times faster.
    ask = jax.checkpoint(lambda delta: taken(policy.execution(space, trunk, delta)))
    logits = for_each_used(memory, ask, jnp.zeros(batch.action.shape))
    entropy = optax.sigmoid_binary_cross_entropy(logits.T, batch.execution) * batch.execution_weight
    explore = optax.huber_loss(taken(policy.exploration(space, trunk)), batch.exploration)
    return jnp.mean(jnp.sum(entropy, axis=1)) + 0.5 * masked_mean(explore, batch.exploration_weight)
