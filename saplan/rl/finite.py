"""A watch over numbers that are not finite: the first one ends training, by name."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32

NONE = -1
"""No fault."""


def watched(report: Any, learner: Any) -> dict[str, Any]:
    """All floats that must stay finite, by name: what an update reports comes first, as causes come before effects."""
    leaves = [
        (name + jax.tree_util.keystr(path), leaf)
        for name, tree in (("report", report), ("learner", learner))
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    ]
    return {name: leaf for name, leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)}


def first_fault(report: Any, learner: Any) -> Int32[Array, ""]:
    """The position, among what is watched, of the first that holds NaN or infinity; `NONE` if there is none."""
    bad = jnp.stack([~jnp.all(jnp.isfinite(leaf)) for leaf in watched(report, learner).values()])
    return jnp.where(jnp.any(bad), jnp.argmax(bad), NONE).astype(jnp.int32)


PLAIN = {
    "report.largest_attribute": "an attribute of the game",
    "report.largest_reward": "a reward",
    "report.policy_loss": "the policy's loss, or a gradient of it,",
    "report.edge_loss": "the edge detector's loss, or a gradient of it,",
}


def name_fault(fault: int, report: Any, learner: Any) -> str:
    """What a person is told of a fault."""
    name = list(watched(report, learner))[fault]
    return PLAIN.get(name, name)
