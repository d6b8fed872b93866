"""Observations to learn attributes from: a bag of words or a picture, neither of which contains an attribute.

Both show the map around the agent, as its policy sees it, and a shelf with everything that is held: objects side by
side, or a bar whose length is an amount. A switch is one thing on the map that looks different in every position. So
counts have to be counted, amounts measured, and the positions of a switch distinguished.
"""

import colorsys
from dataclasses import dataclass
from typing import Any, Generic

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int16, UInt8

from saplan.errors import unknown_name
from saplan.games.game import Game, State
from saplan.games.grid import EDGE_WORDS, OFFSETS, SIDE, WINDOW

SHADES = 16
"""Levels of fill that words distinguish in a place of the shelf."""
FLOOR, WALL, SHELF = 40, 110, 160
"""Brightness of floor, walls and shelf in a picture."""
OBSERVATIONS = ("words", "picture")


@dataclass(frozen=True)
class Observer(Generic[State]):
    """A function from the states of a game to observations."""

    game: Game[State]
    name: str = "words"

    def __post_init__(self) -> None:
        if self.name not in OBSERVATIONS:
            raise unknown_name("observation", self.name, OBSERVATIONS)

    @property
    def vocabulary(self) -> int:
        """Number of words; 0 for pictures."""
        rows, cells = self._state_shape(self.game.shelf).shape
        return self.game.vocabulary + rows * cells * SHADES if self.name == "words" else 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return tuple(self._state_shape(self).shape)

    @property
    def size(self) -> int:
        """Bytes of one observation."""
        seen = self._state_shape(self)
        return int(seen.size * seen.dtype.itemsize)

    def _state_shape(self, function: Any) -> jax.ShapeDtypeStruct:
        shape: jax.ShapeDtypeStruct = jax.eval_shape(function, jax.eval_shape(self.game.reset, jax.random.key(0)))
        return shape

    def __call__(self, state: State) -> Array:
        """The observation of a state."""
        return self.words(state) if self.name == "words" else self.picture(state)

    def words(self, state: State) -> Int16[Array, "slots"]:
        """The words of the map, and one word (row, place, shade) for every place of the shelf that is not empty."""
        shade = jnp.round(self.game.shelf(state).reshape(-1) * SHADES).astype(jnp.int32)
        place = jnp.arange(len(shade)) * SHADES
        held = jnp.where(shade > 0, self.game.vocabulary + place + shade - 1, 0)
        return jnp.concatenate([self.game.observe(state), held.astype(jnp.int16)])

    def picture(self, state: State) -> UInt8[Array, "height width 3"]:
        """One pixel per cell, the agent in the middle; the shelf below."""
        ground, shelf = self._map(self.game.observe(state).astype(jnp.int32)), self.game.shelf(state)
        width = max(WINDOW, shelf.shape[1])
        fills = shelf[:, :, None] * jnp.array(_hues(len(shelf), SHELF))[:, None]
        parts = [ground, jnp.zeros((1, WINDOW, 3)), fills]
        return jnp.concatenate([_widened(part, width) for part in parts]).astype(jnp.uint8)

    def _map(self, words: Array) -> Float[Array, "height width 3"]:
        up, down, left, right = (words[k] - 1 - SIDE * k for k in range(4))
        row, column = jnp.arange(WINDOW) - WINDOW // 2, jnp.arange(WINDOW) - WINDOW // 2
        inside = ((row >= -up) & (row <= down))[:, None] & ((column >= -left) & (column <= right))
        floor = jnp.where(inside.reshape(-1, 1), FLOOR, 0) * jnp.ones(3)
        thing = words[4:] - 1 - EDGE_WORDS
        kinds = self.game.vocabulary // OFFSETS - 1
        place = jnp.where(thing >= 0, thing % OFFSETS, OFFSETS)  # absent things fall outside the picture
        colour = jnp.array(_colours(kinds))[jnp.clip(thing // OFFSETS, 0, kinds)]
        return floor.at[place].set(colour, mode="drop").reshape(WINDOW, WINDOW, 3)


def _widened(part: Array, width: int) -> Array:
    return jnp.pad(part, ((0, 0), (0, width - part.shape[1]), (0, 0)))


def _colours(kinds: int) -> np.ndarray:
    """Grey for walls, then one hue per kind of item."""
    return np.concatenate([np.full((1, 3), WALL, np.float32), _hues(kinds, 255)])


def _hues(count: int, bright: int) -> np.ndarray:
    """Colours spaced evenly around the colour circle."""
    colours = [colorsys.hsv_to_rgb(k / count, 0.9, bright) for k in range(count)]
    return np.array(colours, np.float32).reshape(count, 3)
