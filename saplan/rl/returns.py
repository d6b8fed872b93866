"""Returns of Q-learning over a rollout, for one value or for many goals at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

PerStep = Float[Array, "time ..."]


def lambda_returns(reward: PerStep, discount: PerStep, next_value: PerStep, trace: PerStep) -> PerStep:
    """Returns that mix one-step bootstrapping with the rest of the rollout.

    G_t = reward_t + discount_t · ((1 - trace_t) · next_value_t + trace_t · G_{t+1}), where `next_value_t` is the value
    of the state after step t, `discount_t` is zero where the episode ends, and `trace_t` is λ times the trust in the
    following action: Watkins' Q(λ) cuts the trace to zero at the first action that is not greedy, Peng and Williams
    (1996) do not. The last step has no G_{t+1}: its trace counts as zero.
    """

    def back(following: Array, step: tuple[Array, Array, Array, Array]) -> tuple[Array, Array]:
        r, d, v, c = step
        value = r + d * (v + c * (following - v))
        return value, value

    return jax.lax.scan(back, next_value[-1], (reward, discount, next_value, trace), reverse=True)[1]


def agreement(
    logits: Float[Array, "... actions"], action: Int[Array, "..."], temperature: float
) -> Float[Array, "..."]:
    """How far a greedy policy would agree with an action: 1 for a best one, falling with its disadvantage."""
    chosen = jnp.take_along_axis(logits, action[..., None].astype(jnp.int32), axis=-1)[..., 0]
    return jnp.exp(jnp.minimum((chosen - jnp.max(logits, axis=-1)) / temperature, 0.0))


def masked_mean(x: Float[Array, "..."], mask: Bool[Array, "..."] | Float[Array, "..."]) -> Float[Array, ""]:
    """Mean over the masked entries, zero if there are none."""
    weight = jnp.asarray(mask, jnp.float32)
    return jnp.sum(x * weight) / jnp.maximum(jnp.sum(weight), 1.0)
