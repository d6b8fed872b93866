"""Trees of arrays as safetensors: there and back, bit by bit. Nothing in such a file is ever executed."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from saplan.errors import InputError

LARGEST_HEADER = 2**20
"""Bytes. The header names every array; ours are a tenth of this, and a parser must not be fed gigabytes."""

ABOUT = "saplan"
"""The name of plain data among a file's metadata."""


def is_key(leaf: Any) -> bool:
    """Whether a leaf is a random key, which is stored as the integers behind it."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def named_leaves(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their path."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a tree as NumPy arrays."""
    return {
        name: np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        for name, leaf in named_leaves(tree).items()
    }


def to_bytes(arrays: dict[str, np.ndarray], about: Any = None) -> bytes:
    """A safetensors file; `about` is plain data to go with the arrays."""
    note = None if about is None else {ABOUT: json.dumps(about, ensure_ascii=False)}
    return safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in arrays.items()}, note)


def from_bytes(data: bytes, path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, whose header is looked at before it is parsed."""
    return both_from_bytes(data, path)[0]


def both_from_bytes(data: bytes, path: Path) -> tuple[dict[str, np.ndarray], Any]:
    """The arrays, and the plain data that go with them; None if there are none."""
    header = int.from_bytes(data[:8], "little")
    if len(data) < 8 or header > min(len(data) - 8, LARGEST_HEADER) or data[8:9] != b"{":
        raise InputError(f"{path} is not a safetensors file of ours")
    try:
        note = json.loads(data[8 : 8 + header]).get("__metadata__", {}).get(ABOUT)
        return safetensors.numpy.load(data), None if note is None else json.loads(note)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:120]
        raise InputError(f"{path} is not a safetensors file: {reason}") from None


def fill(outline: Any, arrays: dict[str, np.ndarray], path: Path, exact: bool = False) -> Any:
    """`outline` with its leaves replaced by the arrays of the same name, which must be all of them, of the same shape.

    Unless it must be `exact`, an array may have another precision.
    """
    wanted = named_leaves(outline)
    if set(arrays) != set(wanted):
        odd = sorted(set(arrays) ^ set(wanted))[0]
        raise InputError(f"{path} does not fit its manifest: {_short(odd)} is missing or unknown")
    return jax.tree_util.tree_map_with_path(
        lambda place, like: _leaf(like, arrays[jax.tree_util.keystr(place)], jax.tree_util.keystr(place), path, exact),
        outline,
    )


def _leaf(like: Any, array: np.ndarray, name: str, path: Path, exact: bool) -> jax.Array:
    shape, dtype = like.shape, like.dtype
    if is_key(like):
        plain = jax.eval_shape(jax.random.key_data, like)
        shape, dtype = plain.shape, plain.dtype
    same = array.dtype == dtype if exact else array.dtype.kind == np.dtype(dtype).kind
    if array.shape != shape or not same:
        raise InputError(f"{path} does not fit its manifest: {name} has another shape or type")
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise InputError(f"{path} holds a number that is not finite, in {name}")
    value = jnp.asarray(array, dtype)
    return jax.random.wrap_key_data(value) if is_key(like) else value


def _short(name: str) -> str:
    return repr(name)[:80]
