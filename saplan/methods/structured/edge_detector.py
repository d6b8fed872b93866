"""The edge detector ED(ρ, δρ): the probability that the change δρ is feasible at ρ.

Two heads on one trunk answer two questions. *Proposing* needs a balanced answer, trained on half feasible examples and
half failures, so that a hard transition is not given up for being rare. *Planning* needs a calibrated one, trained on
execution outcomes at their natural frequency. A third output is the logarithm of the steps that a success takes.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Int32, PRNGKeyArray

from saplan.algebra import Delta, Product, Rho
from saplan.rl.networks import GoalNetwork
from saplan.rl.returns import masked_mean


class EdgeScores(NamedTuple):
    """Scores of an edge, as logits and logarithms."""

    feasible: Float[Array, "..."]
    """Balanced logit: worth proposing?"""
    success: Float[Array, "..."]
    """Calibrated logit: will the executor succeed?"""
    log_steps: Float[Array, "..."]
    """Logarithm of the steps a success takes."""


class EdgeDetector(eqx.Module):
    """ED(ρ, δρ)."""

    network: GoalNetwork

    @classmethod
    def init(cls, key: PRNGKeyArray, space: Product, hidden: int) -> "EdgeDetector":
        """An untrained detector."""
        return cls(
            GoalNetwork.init(key, state_width=space.width, goal_width=space.delta_width, hidden=hidden, outputs=3)
        )

    def __call__(self, space: Product, rho: Rho, delta: Delta) -> EdgeScores:
        """Score edges; the leading axes of ρ and δρ broadcast.

        Exogenous attributes are left out: they differ between the start of an attempt, when a plan asks, and its end,
        when the change happens.
        """
        if space.exogenous.any():
            rho = jnp.where(space.exogenous, 0.0, rho)
        out = self.network.head(self.network.trunk(None, space.encode(rho)), space.encode_delta(delta))
        return EdgeScores(out[..., 0], out[..., 1], out[..., 2])


class Replay(eqx.Module):
    """One ring buffer of examples per transition of 𝓑; the oldest example is overwritten.

    Frequencies of transitions differ by orders of magnitude. In a common buffer the easy ones would displace the rest,
    and a rare transition would be judged by its failures alone until it was no longer tried.
    """

    rho: Float[Array, "C n K"]
    success: Bool[Array, "C n"]
    steps: Float[Array, "C n"]
    next: Int32[Array, "C"]
    filled: Int32[Array, "C"]


def empty_replay(space: Product, transitions: int, capacity: int) -> Replay:
    """Empty buffers."""
    zero = jnp.zeros(transitions, jnp.int32)
    shape = (transitions, capacity)
    return Replay(jnp.zeros((*shape, space.size)), jnp.zeros(shape, bool), jnp.ones(shape), zero, zero)


def push(
    replay: Replay,
    entry: Int[Array, "m"],
    rho: Rho,
    success: Bool[Array, "m"],
    steps: Float[Array, "m"],
    keep: Bool[Array, "m"],
) -> Replay:
    """Append the marked examples, each to the buffer of its transition."""
    transitions, capacity = replay.success.shape
    member = (entry[:, None] == jnp.arange(transitions)) & keep[:, None]
    count = jnp.sum(member, axis=0, dtype=jnp.int32)
    rank = jnp.sum(jnp.where(member, jnp.cumsum(member, axis=0) - 1, 0), axis=1)
    ring = jnp.clip(entry, 0, transitions - 1)
    # If there are more examples than a buffer holds, the newest stay.
    fits = jnp.any(member, axis=1) & (rank >= count[ring] - capacity)
    row = jnp.where(fits, ring, transitions)
    slot = (replay.next[ring] + rank) % capacity
    return Replay(
        rho=replay.rho.at[row, slot].set(rho, mode="drop"),
        success=replay.success.at[row, slot].set(success, mode="drop"),
        steps=replay.steps.at[row, slot].set(steps, mode="drop"),
        next=(replay.next + count) % capacity,
        filled=jnp.minimum(replay.filled + count, capacity),
    )


def draw_batch(key: PRNGKeyArray, replay: Replay, batch: int) -> tuple[Int[Array, "batch"], Int[Array, "batch"]]:
    """(transition, slot) of a batch: uniform over transitions that have examples, then uniform within each."""
    entry_key, slot_key = jax.random.split(key)
    entry = jax.random.categorical(entry_key, jnp.where(replay.filled > 0, 0.0, -jnp.inf), shape=(batch,))
    slot = jax.random.randint(slot_key, (batch,), 0, jnp.maximum(replay.filled[entry], 1))
    return entry, slot


def edge_loss(
    detector: EdgeDetector,
    space: Product,
    key: PRNGKeyArray,
    transitions: Delta,
    positives: Replay,
    outcomes: Replay,
    batch: int,
    calibrated: bool = True,
) -> Float[Array, ""]:
    """Cross-entropy of both heads and the squared error of the logarithm of the steps, or of the first head alone."""
    found_key, tried_key = jax.random.split(key)
    entry, slot = draw_batch(found_key, positives, batch)
    found = detector(space, positives.rho[entry, slot], transitions[entry])
    entry, slot = draw_batch(tried_key, outcomes, 2 * batch)
    tried = detector(space, outcomes.rho[entry, slot], transitions[entry])
    success, steps = outcomes.success[entry, slot], outcomes.steps[entry, slot]

    entropy = optax.sigmoid_binary_cross_entropy
    balanced = jnp.mean(entropy(found.feasible, 1.0)) + masked_mean(entropy(tried.feasible, 0.0), ~success)
    ready = jnp.any(positives.filled > 0) & jnp.any(outcomes.filled > 0)
    if not calibrated:
        return jnp.where(ready, balanced, 0.0)
    success_loss = jnp.mean(entropy(tried.success, success.astype(jnp.float32)))
    duration = masked_mean((tried.log_steps - jnp.log(steps)) ** 2, success)
    return jnp.where(ready, balanced + success_loss + 0.1 * duration, 0.0)
