"""The trail of an attempt: which action was already taken at which place.

A policy that is wrong at one place comes back to that place for ever. What was tried there and led back is worth
trying less, and so the agent leaves a circle by its second-best way, and its third, as learning real-time search does,
rather than by chance. A place is all that is seen there, unless the game knows better, and is remembered by its
fingerprint alone; so this works in any world whose places recur.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Shaped, UInt32

History = UInt32[Array, "lanes length"]
"""Marks of the last steps, the newest last; 0 where there is none."""


def empty_history(lanes: int, length: int) -> History:
    """Nothing done yet."""
    return jnp.zeros((lanes, length), jnp.uint32)


def marks(
    place: Shaped[Array, "lanes signs"], subgoal: Int[Array, "lanes"] | int, action: Int[Array, "..."]
) -> UInt32[Array, "..."]:
    """Fingerprints of (place, wish, action), never 0; the place's axis is broadcast against that of the actions."""
    slots = jnp.arange(1, place.shape[-1] + 1, dtype=jnp.uint32)
    bits = jax.lax.bitcast_convert_type(place, jnp.uint32) if place.dtype == jnp.float32 else place.astype(jnp.uint32)
    each = _mix(bits * jnp.uint32(0x85EBCA6B) + slots)
    here = _mix(jnp.sum(each, axis=-1, dtype=jnp.uint32) + jnp.asarray(subgoal, jnp.uint32))
    here = here.reshape(here.shape + (1,) * (action.ndim - 1))
    return _mix(here * jnp.uint32(0xC2B2AE35) + action.astype(jnp.uint32)) | jnp.uint32(1)


def _mix(x: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    x = (x ^ (x >> 16)) * jnp.uint32(0x9E3779B1)
    return x ^ (x >> 15)


def repeats(
    history: History, place: Shaped[Array, "lanes signs"], subgoal: Int[Array, "lanes"] | int, actions: int
) -> Int[Array, "lanes actions"]:
    """How often every action was already taken from this place."""
    ahead = marks(place, subgoal, jnp.arange(actions)[None])
    return jnp.sum(ahead[:, :, None] == history[:, None, :], axis=-1)


def extend(
    history: History,
    place: Shaped[Array, "lanes signs"],
    subgoal: Int[Array, "lanes"] | int,
    action: Int[Array, "lanes"],
) -> History:
    """The trail one step on; the oldest mark is forgotten."""
    return jnp.concatenate([history[:, 1:], marks(place, subgoal, action)[:, None]], axis=1)
