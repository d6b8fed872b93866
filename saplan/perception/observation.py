"""What a learner of attributes is shown: a bag of words or a picture, in which nothing is written as a number.

Both show the map around the agent as its policy sees it, and a shelf with what is held. On the shelf lie objects side
by side, or a bar that is the longer the more there is. A switch is one thing on the map and looks different in every
position. So counts have to be counted, amounts measured, and the faces of a switch told apart.
"""

import colorsys
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int16, UInt8

from saplan.errors import unknown_name
from saplan.games.game import Game
from saplan.games.grid import EDGE_WORDS, OFFSETS, PITCH, SIDE

SHADES = 16
"""How many fills of a place on the shelf the words tell apart."""
FLOOR, WALL, SHELF = 40, 110, 160
"""How bright the floor, walls, and things on the shelf are in a picture."""
SIGHTS = ("words", "picture")


@dataclass(frozen=True)
class Sight:
    """One of the ways to show the states of a game."""

    game: Game[Any]
    name: str = "words"

    def __post_init__(self) -> None:
        if self.name not in SIGHTS:
            raise unknown_name("sight", self.name, SIGHTS)

    @property
    def vocabulary(self) -> int:
        """The number of words; 0 where what is seen is a picture."""
        rows, cells = self._shelf
        return self.game.vocabulary + rows * cells * SHADES if self.name == "words" else 0

    @property
    def _shelf(self) -> tuple[int, int]:
        state = jax.eval_shape(self.game.reset, jax.random.key(0))
        rows, cells = jax.eval_shape(self.game.shelf, state).shape
        return rows, cells

    def __call__(self, state: Any) -> Array:
        """What is seen of a state."""
        return self.words(state) if self.name == "words" else self.picture(state)

    def words(self, state: Any) -> Int16[Array, "slots"]:
        """The words of the map, and one word (row, place, shade) for every place of the shelf that is not empty."""
        shade = jnp.round(self.game.shelf(state).reshape(-1) * SHADES).astype(jnp.int32)
        place = jnp.arange(len(shade)) * SHADES
        held = jnp.where(shade > 0, self.game.vocabulary + place + shade - 1, 0)
        return jnp.concatenate([self.game.observe(state), held.astype(jnp.int16)])

    def picture(self, state: Any) -> UInt8[Array, "height width 3"]:
        """One pixel a cell, the agent in the middle; below, the shelf."""
        ground, shelf = self._map(self.game.observe(state).astype(jnp.int32)), self.game.shelf(state)
        width = max(PITCH, shelf.shape[1])
        fills = shelf[:, :, None] * jnp.array(_hues(len(shelf), SHELF))[:, None]
        parts = [ground, jnp.zeros((1, PITCH, 3)), fills]
        return jnp.concatenate([_widened(part, width) for part in parts]).astype(jnp.uint8)

    def _map(self, words: Array) -> Float[Array, "height width 3"]:
        up, down, left, right = (words[k] - 1 - SIDE * k for k in range(4))
        row, column = jnp.arange(PITCH) - PITCH // 2, jnp.arange(PITCH) - PITCH // 2
        inside = ((row >= -up) & (row <= down))[:, None] & ((column >= -left) & (column <= right))
        floor = jnp.where(inside.reshape(-1, 1), FLOOR, 0) * jnp.ones(3)
        thing = words[4:] - 1 - EDGE_WORDS
        kinds = self.game.vocabulary // OFFSETS - 1
        place = jnp.where(thing >= 0, thing % OFFSETS, OFFSETS)  # what is nowhere falls off the picture
        colour = jnp.array(_colours(kinds))[jnp.clip(thing // OFFSETS, 0, kinds)]
        return floor.at[place].set(colour, mode="drop").reshape(PITCH, PITCH, 3)


def _widened(part: Array, width: int) -> Array:
    return jnp.pad(part, ((0, 0), (0, width - part.shape[1]), (0, 0)))


def _colours(kinds: int) -> np.ndarray:
    """Grey for walls, then one hue per kind of item."""
    return np.concatenate([np.full((1, 3), WALL, np.float32), _hues(kinds, 255)])


def _hues(count: int, bright: int) -> np.ndarray:
    """Colours all around the circle."""
    colours = [colorsys.hsv_to_rgb(k / count, 0.9, bright) for k in range(count)]
    return np.array(colours, np.float32).reshape(count, 3)
