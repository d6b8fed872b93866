"""Trees of arrays as safetensors files, restored bit by bit. Nothing in such a file is ever executed."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy

from saplan.errors import InputError
from saplan.storage.files import open_regular
from saplan.storage.header import LARGEST, LENGTH, Header, read_header
from saplan.storage.json_data import parse_json

ABOUT = "saplan"
"""The name of our JSON among a file's metadata."""
Tree = TypeVar("Tree")


def is_key(leaf: Any) -> bool:
    """Whether a leaf is a random key, which is stored as its integers."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def named_leaves(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their path."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a tree as NumPy arrays, by their path."""
    return {
        name: np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        for name, leaf in named_leaves(tree).items()
    }


def to_bytes(arrays: dict[str, np.ndarray], about: Any = None) -> bytes:
    """A safetensors file; `about` is JSON data that go with the arrays."""
    note = None if about is None else {ABOUT: json.dumps(about, ensure_ascii=False)}
    return safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in arrays.items()}, note)


def from_bytes(data: bytes, path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, whose header is checked first."""
    return read_header(data, len(data), path).arrays(data)


def header_of(path: Path) -> Header:
    """The header of a file; the data behind it are not read."""
    with open_regular(path) as file:
        return read_header(file.read(LENGTH + LARGEST), os.fstat(file.fileno()).st_size, path)


def about_in(header: Header, path: Path) -> Any:
    """The JSON data that go with the arrays, or None."""
    text = header.metadata.get(ABOUT)
    return None if text is None else parse_json(text.encode(), f"the metadata of {path}")


def outline_of(make: Callable[[], Tree], largest: int, what: str) -> Tree:
    """The tree that `make` returns, with shapes in place of arrays: none of them is allocated.

    `InputError` if `make` fails, or if the arrays would take more bytes than can be saved.
    """
    try:
        outline: Tree = eqx.filter_eval_shape(make)
    except InputError:
        raise
    except (TypeError, ValueError, ArithmeticError, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{what} cannot be made: {type(error).__name__}: {reason}") from None
    size = sum(math.prod(shape) * dtype.itemsize for shape, dtype in _stored(outline))
    if size > largest:
        most = f"{largest / 2**30:.3g} GiB" if largest >= 2**30 else f"{largest / 2**20:.3g} MiB"
        raise InputError(f"{what} would take {size / 2**30:.3g} GiB, and at most {most} can be saved")
    return outline


def largest_file(outline: Any, exact: bool = False) -> int:
    """Upper bound on the bytes of a file with arrays of this outline; other precisions have at most 64 bits."""
    sizes = (math.prod(shape) * (dtype.itemsize if exact else 8) for shape, dtype in _stored(outline))
    return LENGTH + LARGEST + sum(sizes)


def _stored(outline: Any) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
    return [_shape_and_type(leaf) for leaf in named_leaves(outline).values()]


def _shape_and_type(like: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the type of a leaf in a file."""
    if is_key(like):
        like = jax.eval_shape(jax.random.key_data, like)
    return like.shape, np.dtype(like.dtype)


def fill(outline: Tree, arrays: dict[str, np.ndarray], path: Path, exact: bool = False) -> Tree:
    """`outline` with each leaf replaced by the array of its name; names and shapes must agree.

    An array may have another precision unless `exact` is set.
    """
    wanted = named_leaves(outline)
    if set(arrays) != set(wanted):
        odd = sorted(set(arrays) ^ set(wanted))[0]
        raise InputError(f"{path} does not fit its manifest: {odd[:80]!r} is missing or unknown")

    def leaf(place: Any, like: Any) -> jax.Array:
        name = jax.tree_util.keystr(place)
        return _leaf(like, arrays[name], name, path, exact)

    filled: Tree = jax.tree_util.tree_map_with_path(leaf, outline)
    return filled


def _leaf(like: Any, array: np.ndarray, name: str, path: Path, exact: bool) -> jax.Array:
    shape, dtype = _shape_and_type(like)
    same = array.dtype == dtype if exact else array.dtype.kind == dtype.kind
    if array.shape != shape or not same:
        raise InputError(f"{path} does not fit its manifest: {name} has another shape or type")
    with np.errstate(over="ignore"):
        stored = array.astype(dtype, copy=False)
    # After the conversion: float64 holds numbers that are infinite in float32.
    if dtype.kind == "f" and not np.all(np.isfinite(stored)):
        raise InputError(f"{path} holds a number that is not finite, in {name}")
    if dtype.kind in "iu" and not np.array_equal(stored, array):
        raise InputError(f"{path} holds a number too large for {dtype}, in {name}")
    value: jax.Array = jax.device_put(stored)
    return jax.random.wrap_key_data(value) if is_key(like) else value
