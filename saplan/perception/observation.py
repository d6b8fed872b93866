"""Observations to learn attributes from: a bag of words or a picture, neither of which contains an attribute.

Both show the map around the agent, as its policy sees it, and a shelf with everything that is held: objects side by
side, or a bar whose length is an amount. A switch is one thing on the map that looks different in every position. So
counts have to be counted, amounts measured, and the positions of a switch distinguished.

A picture has 64 × 64 pixels, red, green and blue: the map with 3 × 3 pixels per cell and the agent in the middle, and
the shelf in the strip below it. There is no text on it.
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
CELL = 3
"""Side of a cell of the map in a picture."""
PICTURE_SIDE = 64
"""Height and width of a picture; more only if the shelf needs it."""
GROUND = WINDOW * CELL
"""Height and width of the map in a picture."""
FLOOR, WALL, AGENT, SHELF = 40, 110, 255, 160
"""Brightness of floor, walls, agent and shelf in a picture."""
PATTERNS = ("xxxxxxxxx", "xxxx.xxxx", ".x.xxx.x.", "x.x.x.x.x", "xxxx.x...", "xx.xx.xxx", "x.xxxxx.x", ".xxx.xxx.")
"""Shapes of things, row by row; kinds beyond the last one differ by hue alone."""
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
        """The map around the agent, and the shelf below it."""
        ground, shelf = self._map(self.game.observe(state).astype(jnp.int32)), self.game.shelf(state)
        rows, cells = shelf.shape
        strip = PICTURE_SIDE - GROUND
        tall, wide = max(1, strip // max(1, rows)), max(1, min(CELL, PICTURE_SIDE // max(1, cells)))
        fills = shelf[:, :, None] * jnp.array(_hues(rows, SHELF))[:, None]
        fills = jnp.repeat(jnp.repeat(fills, tall, axis=0), wide, axis=1)
        height, width = GROUND + max(strip, rows * tall), max(PICTURE_SIDE, cells * wide)
        blank = jnp.zeros((height, width, 3)).at[:GROUND, :GROUND].set(ground)
        return blank.at[height - rows * tall :, : cells * wide].set(fills).astype(jnp.uint8)

    def _map(self, words: Array) -> Float[Array, "height width 3"]:
        up, down, left, right = (words[k] - 1 - SIDE * k for k in range(4))
        row, column = jnp.arange(WINDOW) - WINDOW // 2, jnp.arange(WINDOW) - WINDOW // 2
        inside = ((row >= -up) & (row <= down))[:, None] & ((column >= -left) & (column <= right))
        floor = jnp.where(inside.reshape(-1, 1, 1), FLOOR, 0) * jnp.ones((CELL * CELL, 3))
        thing = words[4:] - 1 - EDGE_WORDS
        kinds = self.game.vocabulary // OFFSETS - 1
        place = jnp.where(thing >= 0, thing % OFFSETS, OFFSETS)  # absent things fall outside the picture
        tile = jnp.array(_tiles(kinds))[jnp.clip(thing // OFFSETS, 0, kinds)]
        cells = floor.at[place].set(tile, mode="drop").at[OFFSETS // 2, CELL * CELL // 2].set(AGENT)
        tiled = cells.reshape(WINDOW, WINDOW, CELL, CELL, 3).swapaxes(1, 2)
        return tiled.reshape(GROUND, GROUND, 3)


def _tiles(kinds: int) -> np.ndarray:
    """The pixels of a wall, grey, then of every kind of item, in its hue and shape: [kinds + 1, pixels, 3]."""
    wall = np.full((1, CELL * CELL, 3), WALL, np.float32)
    shapes = np.array([[mark == "x" for mark in PATTERNS[k % len(PATTERNS)]] for k in range(kinds)]).reshape(kinds, -1)
    return np.concatenate([wall, np.where(shapes[..., None], _hues(kinds, 255)[:, None], np.float32(FLOOR))])


def _hues(count: int, bright: int) -> np.ndarray:
    """Colours spaced evenly around the colour circle."""
    colours = [colorsys.hsv_to_rgb(k / count, 0.9, bright) for k in range(count)]
    return np.array(colours, np.float32).reshape(count, 3)
