"""Transition proposals: the change that the execution policy tries next."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from saplan.algebra import Product, Rho
from saplan.methods.structured.edge_detector import EdgeDetector
from saplan.methods.structured.memory import Memory, joint_counts, marginals
from saplan.methods.structured.settings import StructuredSettings


def proposal_weights(
    memory: Memory, detector: EdgeDetector, space: Product, settings: StructuredSettings, rho: Rho
) -> Float[Array, "lanes C"]:
    """Distribution over 𝓑 at every ρ: uniform with probability s_0, else by γ, over the transitions above p_0.

    γ(δρ) = (1 + p_expl) / (1 + p_exec) at ρ + δρ, normalised over 𝓑, with joint counts or, as in the paper, the least
    of the marginal counts. Transitions that leave the space are never proposed.
    """
    ends = space.compose(rho[:, None, :], memory.delta[None])
    inside = memory.trusted(space, settings.rare, settings.double) & space.contains(ends)
    logit = detector(space, rho[:, None, :], memory.delta[None]).feasible
    likely = inside & (jax.nn.sigmoid(logit) > settings.threshold)
    if settings.joint:
        ahead = joint_counts(memory.explored_cells, space, ends)
        behind = joint_counts(memory.executed_cells, space, ends)
    else:
        ahead = jnp.min(marginals(memory.explored, space, ends), axis=-1)
        behind = jnp.min(marginals(memory.executed, space, ends), axis=-1)
    gamma = normalised(likely * ((1 + ahead) / (1 + behind)))
    mixed = settings.uniform * normalised(likely * 1.0) + (1 - settings.uniform) * gamma
    # The last terms keep every row a distribution, even if no transition is known or likely.
    return (1 - settings.doubt) * mixed + settings.doubt * normalised(inside * 1.0) + 1e-9 * inside + 1e-30


def normalised(weights: Float[Array, "lanes C"]) -> Float[Array, "lanes C"]:
    """Rows scaled to sum to one; rows of zeros stay zero."""
    return weights / jnp.maximum(jnp.sum(weights, axis=-1, keepdims=True), 1e-9)
