"""A guard against numbers that are not finite: the first one stops training and is reported by name."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, PyTree

NO_FAULT = -1
READABLE = {
    "report.largest_attribute": "an attribute of the game",
    "report.largest_reward": "a reward",
    "report.policy_loss": "the policy's loss, or a gradient of it,",
    "report.edge_loss": "the edge detector's loss, or a gradient of it,",
}


def watched(report: PyTree[Any], learner: PyTree[Any]) -> dict[str, Any]:
    """All floats that must stay finite, by name; the report comes first, because causes come before effects."""
    leaves = [
        (name + jax.tree_util.keystr(path), leaf)
        for name, tree in (("report", report), ("learner", learner))
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    ]
    return {name: leaf for name, leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)}


def first_fault(report: PyTree[Any], learner: PyTree[Any]) -> Int32[Array, ""]:
    """Position, among the watched leaves, of the first that holds NaN or infinity; `NO_FAULT` if none does."""
    bad = jnp.stack([~jnp.all(jnp.isfinite(leaf)) for leaf in watched(report, learner).values()])
    return jnp.where(jnp.any(bad), jnp.argmax(bad), NO_FAULT).astype(jnp.int32)


def name_fault(fault: int, report: PyTree[Any], learner: PyTree[Any]) -> str:
    """Name of a fault for people."""
    name = list(watched(report, learner))[fault]
    return READABLE.get(name, name)
