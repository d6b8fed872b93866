"""Trees of arrays as safetensors: there and back, bit by bit. Nothing in such a file is ever executed."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy

from saplan.errors import InputError
from saplan.storage.files import open_plain
from saplan.storage.header import LARGEST, LENGTH, Header, read_header
from saplan.storage.json_data import parse_json

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
    """The arrays of a safetensors file, whose header is checked before."""
    return read_header(data, len(data), path).arrays(data)


def header_of(path: Path) -> Header:
    """The header of a file, of which nothing else is read."""
    with open_plain(path) as file:
        return read_header(file.read(LENGTH + LARGEST), os.fstat(file.fileno()).st_size, path)


def about_in(header: Header, path: Path) -> Any:
    """The plain data that go with the arrays; None if there are none."""
    text = header.metadata.get(ABOUT)
    return None if text is None else parse_json(text.encode(), f"what {path} says of itself")


def size_of(outline: Any) -> int:
    """Bytes that the arrays of this outline take."""
    return sum(math.prod(shape) * dtype.itemsize for shape, dtype in map(_plain, named_leaves(outline).values()))


def outline_of(make: Callable[[], Any], largest: int, what: str) -> Any:
    """Shapes in place of the arrays that `make` makes: none of them is allocated.

    `InputError` if that cannot be made, or would take more bytes than can be saved.
    """
    try:
        outline = eqx.filter_eval_shape(make)
    except InputError:
        raise
    except (TypeError, ValueError, ArithmeticError, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{what} cannot be made: {type(error).__name__}: {reason}") from None
    size = size_of(outline)
    if size > largest:
        most = f"{largest / 2**30:.3g} GiB" if largest >= 2**30 else f"{largest / 2**20:.3g} MiB"
        raise InputError(f"{what} would take {size / 2**30:.3g} GiB, and at most {most} can be saved")
    return outline


def room_for(outline: Any, exact: bool = False) -> int:
    """The most bytes that a file with arrays of this outline has; other precisions have 64 bits at most."""
    each = map(_plain, named_leaves(outline).values())
    return LENGTH + LARGEST + sum(math.prod(shape) * (dtype.itemsize if exact else 8) for shape, dtype in each)


def _plain(like: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the type that a leaf is stored with."""
    if is_key(like):
        like = jax.eval_shape(jax.random.key_data, like)
    return like.shape, np.dtype(like.dtype)


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
    shape, dtype = _plain(like)
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
    value = jnp.array(stored)
    return jax.random.wrap_key_data(value) if is_key(like) else value


def _short(name: str) -> str:
    return repr(name)[:80]
