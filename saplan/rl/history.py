"""The trail of an attempt: which action was already taken at which place.

A policy that is wrong at one place comes back to that place for ever. What was tried there and led back is worth
trying less, and so the agent leaves a circle by its second-best way, and its third, as learning real-time search does,
rather than by chance. A place is all that is seen there, unless the game knows better, and is remembered by its
fingerprint alone; so this works in any world whose places recur.
"""

import jax.numpy as jnp
from jaxtyping import Array, Int, Shaped, UInt32

from saplan.algebra.hashing import marks

History = UInt32[Array, "lanes length"]
"""Marks of the last steps, the newest last; 0 where there is none."""


def empty_history(lanes: int, length: int) -> History:
    """Nothing done yet."""
    return jnp.zeros((lanes, length), jnp.uint32)


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
