"""The edge detector ED(ρ, δρ), which says whether a change can be made at a place.

Two heads on one trunk, because two things are asked. *Proposing* needs a balanced answer: half feasible examples, half
failures, so that a hard transition is not given up for being rare. *Planning* needs a calibrated one: the executor's
outcomes at their natural frequency. A third output is the logarithm of how many steps a success takes.
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
    """What the detector says of an edge; logits and logarithms, as the losses want them."""

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
        """A detector that has seen nothing."""
        return cls(
            GoalNetwork.init(key, state_width=space.width, goal_width=space.delta_width, hidden=hidden, outputs=3)
        )

    def __call__(self, space: Product, rho: Rho, delta: Delta) -> EdgeScores:
        """Scores edges; the leading axes of ρ and δρ broadcast.

        What changes by itself is left out: it would differ between the start of an attempt, when a plan asks, and its
        end, which is when a change is seen.
        """
        if space.exogenous.any():
            rho = jnp.where(space.exogenous, 0.0, rho)
        out = self.network.head(self.network.trunk(None, space.encode(rho)), space.encode_delta(delta))
        return EdgeScores(out[..., 0], out[..., 1], out[..., 2])


class Replay(eqx.Module):
    """One ring of examples per transition of 𝓑; the oldest is overwritten.

    A ring each, because transitions differ in frequency by orders of magnitude: in one common ring the easy ones would
    fill it, and a rare one would be judged by its failures alone until nobody tried it any more.
    """

    rho: Float[Array, "C n K"]
    success: Bool[Array, "C n"]
    steps: Float[Array, "C n"]
    next: Int32[Array, "C"]
    filled: Int32[Array, "C"]


def empty_replay(space: Product, transitions: int, capacity: int) -> Replay:
    """Rings with nothing in them."""
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
    """Appends the examples that are marked, each to the ring of its transition."""
    transitions, capacity = replay.success.shape
    member = (entry[:, None] == jnp.arange(transitions)) & keep[:, None]
    count = jnp.sum(member, axis=0, dtype=jnp.int32)
    rank = jnp.sum(jnp.where(member, jnp.cumsum(member, axis=0) - 1, 0), axis=1)
    ring = jnp.clip(entry, 0, transitions - 1)
    # Of more examples than a ring holds, the newest stay.
    fits = jnp.any(member, axis=1) & (rank >= count[ring] - capacity)
    row = jnp.where(fits, ring, transitions)
    slot = (replay.next[ring] + rank) % capacity
    put = lambda rings, new: rings.at[row, slot].set(new, mode="drop")  # noqa: E731
    return Replay(
        rho=put(replay.rho, rho),
        success=put(replay.success, success),
        steps=put(replay.steps, steps),
        next=(replay.next + count) % capacity,
        filled=jnp.minimum(replay.filled + count, capacity),
    )


def draw(key: PRNGKeyArray, replay: Replay, batch: int) -> tuple[Int[Array, "batch"], Int[Array, "batch"]]:
    """Places (transition, slot) of a batch: the transition uniform among those with examples, the example within it."""
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
) -> Float[Array, ""]:
    """Cross-entropy of both heads and the squared error of the logarithm of the steps."""
    found_key, tried_key = jax.random.split(key)
    entry, slot = draw(found_key, positives, batch)
    found = detector(space, positives.rho[entry, slot], transitions[entry])
    entry, slot = draw(tried_key, outcomes, 2 * batch)
    tried = detector(space, outcomes.rho[entry, slot], transitions[entry])
    success, steps = outcomes.success[entry, slot], outcomes.steps[entry, slot]

    entropy = optax.sigmoid_binary_cross_entropy
    balanced = jnp.mean(entropy(found.feasible, 1.0)) + masked_mean(entropy(tried.feasible, 0.0), ~success)
    calibrated = jnp.mean(entropy(tried.success, success.astype(jnp.float32)))
    duration = masked_mean((tried.log_steps - jnp.log(steps)) ** 2, success)
    ready = jnp.any(positives.filled > 0) & jnp.any(outcomes.filled > 0)
    return jnp.where(ready, balanced + calibrated + 0.1 * duration, 0.0)
