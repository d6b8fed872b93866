"""The history of an attempt: which actions it took at which places.

A policy that is wrong at one place returns to that place for ever. Actions that led back are therefore penalised, and
the agent leaves a circle by its second-best action, then by its third, as in learning real-time search, rather than by
chance. A place is identified by a hash of the observation, unless the game defines it otherwise, so this works in any
world with recurring places.
"""

import jax.numpy as jnp
from jaxtyping import Array, Int, Shaped, UInt32

from saplan.algebra.hashing import marks

History = UInt32[Array, "lanes length"]
"""Hashes of the last (place, action) pairs, the newest last; 0 marks a free slot."""


def empty_history(lanes: int, length: int) -> History:
    """A history without steps."""
    return jnp.zeros((lanes, length), jnp.uint32)


def repeats(
    history: History, place: Shaped[Array, "lanes signs"], subgoal: Int[Array, "lanes"] | int, actions: int
) -> Int[Array, "lanes actions"]:
    """How often every action was already taken at this place."""
    ahead = marks(place, subgoal, jnp.arange(actions)[None])
    return jnp.sum(ahead[:, :, None] == history[:, None, :], axis=-1)


def extend(
    history: History,
    place: Shaped[Array, "lanes signs"],
    subgoal: Int[Array, "lanes"] | int,
    action: Int[Array, "lanes"],
) -> History:
    """The history with one more step; the oldest entry is dropped."""
    return jnp.concatenate([history[:, 1:], marks(place, subgoal, action)[:, None]], axis=1)
