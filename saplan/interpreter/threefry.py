"""Random keys and bits as `jax.random` draws them, in NumPy: the Threefry-2x32 counter-based generator."""

from typing import Any

import numpy as np
from jaxtyping import Shaped, UInt32

KEY = np.dtype([("high", np.uint32), ("low", np.uint32)])
"""One random key as one element of an array, so that keys are sliced and reshaped like numbers."""
Keys = Shaped[np.ndarray, "..."] | np.void
Words = UInt32[np.ndarray, "..."] | np.uint32

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)


def from_words(high: Words, low: Words) -> Keys:
    """Keys of two words each."""
    keys = np.empty(np.shape(high), KEY)
    keys["high"], keys["low"] = high, low
    return keys


def from_data(data: UInt32[np.ndarray, "... 2"]) -> Keys:
    """Keys of the arrays that `jax.random.key_data` returns."""
    return from_words(data[..., 0], data[..., 1])


def to_data(keys: Keys) -> UInt32[np.ndarray, "... 2"]:
    """The array that `jax.random.key_data` returns for these keys."""
    return np.stack([keys["high"], keys["low"]], axis=-1)


def seed(value: Any) -> Keys:
    """Keys of 32-bit seeds."""
    low = np.asarray(value).astype(np.uint32)
    return from_words(np.zeros_like(low), low)


def split(keys: Keys, shape: tuple[int, ...]) -> Keys:
    """An array of new keys for each key."""
    return from_words(*_blocks(keys, shape))


def fold_in(keys: Keys, number: Words) -> Keys:
    """The key of each key and number."""
    counter = seed(number)
    return from_words(*_threefry(keys["high"], keys["low"], counter["high"], counter["low"]))


def bits(keys: Keys, width: int, shape: tuple[int, ...]) -> Any:
    """Random bits of each key, as unsigned integers of `width` bits."""
    high, low = _blocks(keys, shape)
    if width == 64:
        return high.astype(np.uint64) << np.uint64(32) | low
    return (high ^ low).astype(f"uint{width}")


def _blocks(keys: Keys, shape: tuple[int, ...]) -> tuple[Words, Words]:
    """Two random words per key and place of `shape`: the generator applied to the number of the place."""
    place = np.arange(int(np.prod(shape)), dtype=np.uint64).reshape(shape)
    high, low = (np.reshape(keys[word], np.shape(keys) + (1,) * len(shape)) for word in ("high", "low"))
    return _threefry(high, low, (place >> np.uint64(32)).astype(np.uint32), place.astype(np.uint32))


def _threefry(key_high: Words, key_low: Words, x: Words, y: Words) -> tuple[Words, Words]:
    """Twenty rounds of adding, rotating and mixing, with the key added after every fourth."""
    keys = (np.asarray(key_high), np.asarray(key_low), key_high ^ key_low ^ PARITY)
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x = x + y
            y = (y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))
            y = x ^ y
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y
