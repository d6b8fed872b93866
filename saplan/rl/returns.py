"""Targets of Q-learning over a rollout, for one value or for many goals at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Trajectory = Float[Array, "time ..."]


def lambda_returns(
    reward: Trajectory,
    discount: Trajectory,
    next_value: Trajectory,
    trace: Trajectory,
) -> Trajectory:
    """Returns that mix one-step bootstrapping with what the rollout itself went on to bring.

    G_t = reward_t + discount_t · ((1 - trace_t) · next_value_t + trace_t · G_{t+1}), where `next_value_t` is the value
    of the state after step t, `discount_t` is zero where nothing follows, and `trace_t` says how far the following
    action may be trusted as the one that would be taken: λ where it agrees, less where it does not (Watkins' Q(λ) cuts
    it to zero; Peng and Williams, 1996, do not). The last step has no G_{t+1}: its trace counts as zero.
    """

    def back(following: Array, step: tuple[Array, Array, Array, Array]) -> tuple[Array, Array]:
        r, d, v, c = step
        value = r + d * (v + c * (following - v))
        return value, value

    last = next_value[-1]
    return jax.lax.scan(back, last, (reward, discount, next_value, trace), reverse=True)[1]


def agreement(logits: Float[Array, "... actions"], action: Array, temperature: float) -> Float[Array, "..."]:
    """How much a greedy-minded actor would agree with an action: 1 for a best one, falling with its disadvantage."""
    chosen = jnp.take_along_axis(logits, action[..., None].astype(jnp.int32), axis=-1)[..., 0]
    return jnp.exp(jnp.minimum((chosen - jnp.max(logits, axis=-1)) / temperature, 0.0))


def masked_mean(x: Float[Array, "..."], mask: Bool[Array, "..."] | Float[Array, "..."]) -> Float[Array, ""]:
    """The mean over what the mask leaves, zero if that is nothing."""
    weight = jnp.asarray(mask, jnp.float32)
    return jnp.sum(x * weight) / jnp.maximum(jnp.sum(weight), 1.0)
