"""Transition proposals: which change the execution policy should try next."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from saplan.algebra import Product, Rho
from saplan.model.edges import EdgeDetector
from saplan.model.memory import Memory, marginals
from saplan.model.settings import Settings


def proposal_weights(
    memory: Memory, detector: EdgeDetector, space: Product, settings: Settings, rho: Rho
) -> Float[Array, "lanes C"]:
    """The distribution over 𝓑 at every ρ: uniform with probability s_0, else by γ, both over what p_0 leaves.

    γ(δρ) = min_k p_expl / (1 + min_k p_exec) at ρ + δρ, normalised over 𝓑. Ends outside the space are never proposed.
    """
    ends = space.compose(rho[:, None, :], memory.delta[None])
    inside = memory.used & space.contains(ends)
    logit = detector(space, rho[:, None, :], memory.delta[None]).feasible
    likely = inside & (jax.nn.sigmoid(logit) > settings.threshold)
    ahead = jnp.min(marginals(memory.explored, space, ends), axis=-1)
    behind = 1 + jnp.min(marginals(memory.executed, space, ends), axis=-1)
    gamma = _normalised(likely * (ahead / behind))
    mixed = settings.uniform * _normalised(likely * 1.0) + (1 - settings.uniform) * gamma
    return (1 - settings.doubt) * mixed + settings.doubt * _normalised(inside * 1.0) + 1e-9 * inside


def propose(key: PRNGKeyArray, weights: Float[Array, "lanes C"]) -> Int[Array, "lanes"]:
    """One entry of 𝓑 per lane."""
    return jax.random.categorical(key, jnp.log(weights + 1e-30), axis=-1)


def _normalised(weights: Float[Array, "lanes C"]) -> Float[Array, "lanes C"]:
    return weights / jnp.maximum(jnp.sum(weights, axis=-1, keepdims=True), 1e-9)
