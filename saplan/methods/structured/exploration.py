"""The exploration reward R_exp: it pays for surprising transitions and for rarely visited attribute values."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from saplan.algebra import Product, Rho
from saplan.methods.structured.edge_detector import EdgeDetector
from saplan.methods.structured.memory import Memory, joint_counts, marginals
from saplan.methods.structured.settings import StructuredSettings
from saplan.rl.rollout import Trajectory


def joint_rarity(memory: Memory, space: Product, rho: Rho) -> Float[Array, "..."]:
    """How rarely exploration visited this combination of attribute values."""
    share = (joint_counts(memory.explored_cells, space, rho) + 1) / (jnp.sum(memory.explored_cells) + 1)
    return share**-0.5


def rarity(memory: Memory, space: Product, rho: Rho, before: Rho) -> Float[Array, "..."]:
    """h: how rarely exploration visited the values that changed; the least rare of them decides.

    The paper's h takes the minimum over all coordinates, and unchanged ones contribute zero: as printed it is zero for
    every transition of its games. It must mean the minimum over *changed* coordinates. Shares instead of raw counts
    keep h from fading during training.
    """
    counts = marginals(memory.explored, space, rho)
    share = (counts + 1) / (jnp.sum(memory.explored[0]) + 1)
    return jnp.min(jnp.where((rho != before) & ~space.exogenous, share**-0.5, jnp.inf), axis=-1)


def exploration_reward(
    memory: Memory, detector: EdgeDetector, space: Product, steps: Trajectory, settings: StructuredSettings
) -> Float[Array, "..."]:
    """R_exp = -α_1 log ED(ρ, δρ) + α_2 h for every step that changed ρ, zero for the others."""
    reward = jnp.zeros(steps.changed.shape)
    if settings.alpha_surprise:
        surprise = -jax.nn.log_sigmoid(detector(space, steps.rho, steps.delta).feasible)
        reward = reward + settings.alpha_surprise * surprise
    if settings.alpha_rare:
        if settings.joint:
            rare = joint_rarity(memory, space, steps.after)
        else:
            rare = rarity(memory, space, steps.after, steps.rho)
        reward = reward + settings.alpha_rare * jnp.where(steps.changed, rare, 0.0)
    return jnp.where(steps.changed, reward, 0.0)
