"""Hash functions of the package: rows of whole numbers, mixed by multiplying and shifting.

Tables, visit counts and histories are indexed by these values, so a changed bit would change what an agent learns.
"""

from collections.abc import Iterable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int32, Int64, Shaped, UInt32, UInt64

Bits = TypeVar("Bits", Array, np.ndarray)

GOLDEN_32, GOLDEN_64 = 0x9E3779B1, 0x9E3779B97F4A7C15
"""Odd numbers near 2^32 and 2^64 divided by the golden ratio, as in Fibonacci hashing."""
MURMUR_1, MURMUR_2 = 0x85EBCA6B, 0xC2B2AE35
"""Multipliers of the last steps of MurmurHash3."""
ROW_MULTIPLIER = 0x1B873593CC9E2D51
TAG_START = 0x2545F491


def mix(x: Bits, multiplier: int, shift: int) -> Bits:
    """One mixing step: a product modulo the width of `x`, then its high bits folded into its low bits."""
    product = x * x.dtype.type(multiplier)
    mixed: Bits = product ^ (product >> shift)
    return mixed


def _fold(columns: Iterable[Bits], start: Bits, multiplier: int, shift: int) -> Bits:
    """One hash per row, column by column."""
    for column in columns:
        start = mix(start ^ column, multiplier, shift)
    return start


def mixers(columns: int) -> Int64[np.ndarray, "columns"]:
    """Random odd multipliers for `hashed`, one per column; the same in every process."""
    return np.random.default_rng(0).integers(1, 2**62, size=columns, dtype=np.int64) | 1


def hashed(rows: Int64[np.ndarray, "n columns"], by: Int64[np.ndarray, "columns"]) -> Int64[np.ndarray, "n"]:
    """64-bit keys of rows: two of a million rows collide with a probability below 1e-7."""
    key = rows @ by
    return mix(key ^ (key >> 29), ROW_MULTIPLIER, 32)


def hashed_rho(rho: Float[np.ndarray, "n K"]) -> UInt64[np.ndarray, "n"]:
    """64-bit keys of ρ rounded to whole numbers, on the host."""
    columns = np.rint(rho).astype(np.int64).astype(np.uint64).T
    return _fold(columns, np.zeros(len(rho), np.uint64), GOLDEN_64, 29)


def joint_cell(bins: Int[Array, "... K"], cells: int) -> Int32[Array, "..."]:
    """Cells of joint bins in a table of fixed size."""
    columns: list[Array] = [bins[..., k].astype(jnp.uint32) + jnp.uint32(k + 1) for k in range(bins.shape[-1])]
    return (_fold(columns, jnp.zeros(bins.shape[:-1], jnp.uint32), GOLDEN_32, 15) % cells).astype(jnp.int32)


def fingerprint(rho: Float[Array, "*n K"]) -> tuple[Int32[Array, "*n"], UInt32[Array, "*n"]]:
    """Home of ρ, a number from 0 up, and its tag, never 0. Together they tell a million nodes apart."""
    columns = jnp.moveaxis(rho.astype(jnp.int32).astype(jnp.uint32), -1, 0)
    home = _fold(columns, jnp.zeros(rho.shape[:-1], jnp.uint32), GOLDEN_32, 15)
    tag = jnp.full(rho.shape[:-1], TAG_START, jnp.uint32)
    for column in columns:
        tag = mix(tag + column, MURMUR_1, 13)
    return (home >> 1).astype(jnp.int32), tag | jnp.uint32(1)


def marks(
    place: Shaped[Array, "lanes signs"], subgoal: Int[Array, "lanes"] | int, action: Int[Array, "..."]
) -> UInt32[Array, "..."]:
    """Fingerprints of (place, subgoal, action), never 0; the lanes are broadcast against the axes of the actions."""
    slots = jnp.arange(1, place.shape[-1] + 1, dtype=jnp.uint32)
    bits = jax.lax.bitcast_convert_type(place, jnp.uint32) if place.dtype == jnp.float32 else place.astype(jnp.uint32)
    each = _scramble(bits * jnp.uint32(MURMUR_1) + slots)
    here = _scramble(jnp.sum(each, axis=-1, dtype=jnp.uint32) + jnp.asarray(subgoal, jnp.uint32))
    here = here.reshape(here.shape + (1,) * (action.ndim - 1))
    return _scramble(here * jnp.uint32(MURMUR_2) + action.astype(jnp.uint32)) | 1


def _scramble(x: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    return mix(x ^ (x >> 16), GOLDEN_32, 15)
