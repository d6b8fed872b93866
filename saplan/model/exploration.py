"""The exploration reward R_exp: what makes finding a transition worth while."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from saplan.algebra import Delta, Product, Rho
from saplan.model.edges import EdgeDetector
from saplan.model.memory import Memory, marginals


def rarity(memory: Memory, space: Product, rho: Rho, before: Rho) -> Float[Array, "..."]:
    """h: how rarely exploration saw the values that have changed, the least rare of them deciding.

    The paper's h takes the minimum over all coordinates, of which the unchanged contribute zero: as printed it is zero
    for every transition of its games. The minimum over *changed* coordinates is meant. Shares, not raw counts, keep it
    from fading as training goes on.
    """
    counts = marginals(memory.explored, space, rho)
    share = (counts + 1) / (jnp.sum(memory.explored[0]) + 1)
    return jnp.min(jnp.where(rho != before, share**-0.5, jnp.inf), axis=-1)


def exploration_reward(
    memory: Memory,
    detector: EdgeDetector,
    space: Product,
    before: Rho,
    delta: Delta,
    after: Rho,
    changed: Bool[Array, "..."],
    alphas: tuple[float, float],
) -> Float[Array, "..."]:
    """R_exp = -α_1 log ED(ρ, δρ) + α_2 h for every step that changed ρ, zero for the others."""
    surprise, rare = alphas
    reward = jnp.zeros(changed.shape)
    if surprise:
        reward = reward - surprise * jax.nn.log_sigmoid(detector(space, before, delta).feasible)
    if rare:
        reward = reward + rare * jnp.where(changed, rarity(memory, space, after, before), 0.0)
    return jnp.where(changed, reward, 0.0)
