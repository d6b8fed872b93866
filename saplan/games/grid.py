"""Maps of the grid games: how they are drawn, seen and walked on.

A place is one number, row · 32 + column, so that rows and columns are bits of it. The word of an item is (kind, row
offset, column offset). Offsets lie in -9..9: on maps larger than 10 × 10 an item farther away appears at the rim of
this window, in its direction, a wall farther away does not appear, and an edge farther away appears nine cells away.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int16, Int32, PRNGKeyArray

from saplan.errors import InputError

LARGEST_SIDE = 32
"""Largest height and width of a map: a row of cells is a mask of 32 bits."""
PITCH = LARGEST_SIDE
_ROW, _COLUMN = 5, PITCH - 1
"""A place shifted right by `_ROW` is its row; its bits under `_COLUMN` are its column."""
SIDE = 10
"""Height and width that the words describe without loss."""
RIM = SIDE - 1
"""Largest offset in a word."""
WINDOW = 2 * SIDE - 1
OFFSETS = WINDOW * WINDOW
NOWHERE = -1
"""The place of an item that is not on the map."""
PADDING = 0
"""The word of an absent slot."""
EDGE_WORDS = 4 * SIDE
ROOM = 30
"""Number of items that nearly always fit on a map with this number of free cells."""

FAR = 2**31 - 1

MOVES = ("up", "down", "left", "right")
INTERACT = 4
_ROW_STEP = np.array([-1, 1, 0, 0, 0], np.int16)
_COLUMN_STEP = np.array([0, 0, -1, 1, 0], np.int16)

Place = Int16[Array, ""]
Places = Int16[Array, "n"]


@dataclass(frozen=True)
class MapRules:
    """Sizes and walls of the maps that are drawn."""

    smallest: int = 7
    """Smallest height and width."""
    largest: int = 10
    """Largest height and width."""
    blocked: float = 0.1
    """Share of the cells that are walls."""

    def __post_init__(self) -> None:
        if not 3 <= self.smallest <= self.largest <= LARGEST_SIDE:
            numbers = f"{self.smallest} and {self.largest}"
            raise InputError(f"maps need 3 <= smallest <= largest <= {LARGEST_SIDE}, got {numbers}")
        if not 0 <= self.blocked <= 0.3:
            raise InputError(f"the share of blocked cells must lie in 0..0.3, got {self.blocked}")

    @property
    def max_walls(self) -> int:
        # At least one slot, even if it stays absent: `lax.map` in batches refuses empty arrays.
        return max(1, round(self.blocked * self.largest**2))

    def check_room(self, items: int) -> None:
        """Raises `InputError` if the items hardly ever fit beside walls and agent: drawing would not end."""
        free = self.largest**2 - round(self.blocked * self.largest**2) - 1
        room = min(free, max(ROOM, 3 * free // 4))  # some free cells may not be reachable
        if items > room:
            raise InputError(f"{items} items do not fit on a map with room for {room}: make maps larger or items fewer")


class Map(eqx.Module):
    """The ground of a grid game: its size, its walls, and the place of the agent."""

    height: Int16[Array, ""]
    width: Int16[Array, ""]
    walls: Places
    agent: Place


@runtime_checkable
class GridState(Protocol):
    """A state of a game on such a map."""

    @property
    def ground(self) -> Map:
        """The map."""

    @property
    def items(self) -> Places:
        """Places of all items, NOWHERE for an item that is not on the map."""


def move(ground: Map, action: Int[Array, ""]) -> Map:
    """The map after a move of the agent, unless an edge or a wall blocks it; other actions do not move it."""
    row, column = ground.agent >> _ROW, ground.agent & _COLUMN
    direction = jnp.minimum(action, INTERACT)
    down, right = jnp.asarray(_ROW_STEP)[direction], jnp.asarray(_COLUMN_STEP)[direction]
    new_row, new_column = row + down, column + right
    inside = (new_row >= 0) & (new_row < ground.height) & (new_column >= 0) & (new_column < ground.width)
    target = (new_row * PITCH + new_column).astype(jnp.int16)
    free = inside & ~jnp.any(ground.walls == target)
    return Map(ground.height, ground.width, ground.walls, jnp.where(free, target, ground.agent))


def words(ground: Map, kinds: Int32[Array, "n"], places: Places) -> Int16[Array, "slots"]:
    """The bag of words: walls (kind 0), items with their kinds (from 1), and the distances to the four edges."""
    row, column = ground.agent >> _ROW, ground.agent & _COLUMN
    edges = jnp.stack([row, ground.height - 1 - row, column, ground.width - 1 - column])
    edge_words = 1 + jnp.minimum(edges, RIM) + SIDE * jnp.arange(4, dtype=jnp.int16)
    all_kinds = jnp.concatenate([jnp.zeros(ground.walls.shape[0], jnp.int32), kinds])
    all_places = jnp.concatenate([ground.walls, places])
    down, right = (all_places >> _ROW) - row, (all_places & _COLUMN) - column
    outside = (jnp.abs(down) > RIM) | (jnp.abs(right) > RIM)
    absent = (all_places == NOWHERE) | outside & (jnp.arange(len(all_places)) < ground.walls.shape[0])
    offsets = (jnp.clip(down, -RIM, RIM) + RIM) * WINDOW + jnp.clip(right, -RIM, RIM) + RIM
    item_words = jnp.where(absent, PADDING, 1 + EDGE_WORDS + all_kinds * OFFSETS + offsets.astype(jnp.int32))
    return jnp.concatenate([edge_words.astype(jnp.int16), item_words.astype(jnp.int16)])


def vocabulary(kinds: int) -> int:
    """Number of words for maps with this many kinds of item, walls not counted."""
    return 1 + EDGE_WORDS + (1 + kinds) * OFFSETS


@partial(jax.jit, static_argnums=(0, 2))  # otherwise every map drawn outside of `jit` would compile its loop again
def draw_map(rules: MapRules, key: PRNGKeyArray, items: int) -> tuple[Map, Places]:
    """A map and `items` distinct places on it, none a wall or the agent's, all reachable from the agent.

    Every cell gets a random rank. The first cells become walls, the next one is the agent's, and the items take the
    reachable ones that follow. A map whose reachable part is too small is drawn again.
    """

    def draw(
        carry: tuple[PRNGKeyArray, Bool[Array, ""], Map, Places],
    ) -> tuple[PRNGKeyArray, Bool[Array, ""], Map, Places]:
        key, size_key, rank_key = jax.random.split(carry[0], 3)
        ground, places, enough = _attempt_map(rules, size_key, rank_key, items)
        return key, enough, ground, places

    nothing = jnp.zeros((), jnp.int16)
    blank = Map(nothing, nothing, jnp.zeros(rules.max_walls, jnp.int16), nothing)
    start = (key, jnp.zeros((), bool), blank, jnp.zeros(items, jnp.int16))
    _, _, ground, places = jax.lax.while_loop(lambda carry: ~carry[1], draw, start)
    return ground, places


def _attempt_map(
    rules: MapRules, size_key: PRNGKeyArray, rank_key: PRNGKeyArray, items: int
) -> tuple[Map, Places, Bool[Array, ""]]:
    sizes = jax.random.randint(size_key, (2,), rules.smallest, rules.largest + 1).astype(jnp.int16)
    height, width = sizes[0], sizes[1]
    side = max(SIDE, rules.largest)
    cell = jnp.arange(side * side)
    inside = (cell // side < height) & (cell % side < width)
    # The low bits of a cell's random score hold the cell itself, so that all scores differ.
    low_bits = 2 ** (side * side - 1).bit_length() - 1
    score = jax.random.bits(rank_key, cell.shape, jnp.uint32).astype(jnp.int32) & (FAR ^ low_bits) | cell
    score = jnp.where(inside, score, FAR)

    first = _lowest(score, rules.max_walls + 1) & low_bits
    wall_count = jnp.round(rules.blocked * (height * width)).astype(jnp.int32)
    is_wall = jnp.arange(rules.max_walls) < wall_count
    wall_cells = jnp.where(is_wall, first[: rules.max_walls], NOWHERE)
    agent_cell = first[wall_count]

    walled = jnp.any(cell[:, None] == wall_cells[None, :], axis=1)
    reachable = flood(inside & ~walled, agent_cell)
    candidate = reachable & (cell != agent_cell)
    item_cells = _lowest(jnp.where(candidate, score, FAR), items) & low_bits
    enough = jnp.sum(candidate) >= items
    walls = jnp.where(is_wall, to_place(wall_cells, side), NOWHERE).astype(jnp.int16)
    ground = Map(height, width, walls, to_place(agent_cell, side).astype(jnp.int16))
    return ground, to_place(item_cells, side).astype(jnp.int16), enough


def to_place(cell: Int[Array, "..."], side: int) -> Int[Array, "..."]:
    """The place of a cell, given its number row by row on a map of `side` columns."""
    return cell // side * PITCH + cell % side


def to_cell(place: Int[Array, "..."], side: int) -> Int[Array, "..."]:
    """The number of a place's cell, row by row on a map of `side` columns."""
    return place // PITCH * side + place % PITCH


def _lowest(score: Int32[Array, "cells"], count: int) -> Int32[Array, "count"]:
    """The lowest scores, in order, found one by one: on a CPU ten times as fast as `top_k`."""

    def next_lowest(last: Array, _: None) -> tuple[Array, Array]:
        least = jnp.min(jnp.where(score > last, score, FAR))
        return least, least

    return jax.lax.scan(next_lowest, jnp.int32(-1), None, length=count)[1]


def flood(free: Bool[Array, "cells"], start: Int[Array, ""]) -> Bool[Array, "cells"]:
    """The free cells connected to `start`. Rows are bit masks, so one sweep is a handful of integer operations."""
    side = math.isqrt(len(free))
    column = jnp.arange(side, dtype=jnp.uint32)
    rows = jnp.sum(free.reshape(side, side).astype(jnp.uint32) << column, axis=1)
    bit = jnp.uint32(1) << (start % side).astype(jnp.uint32)
    seed = jnp.where(jnp.arange(side) == start // side, bit, jnp.uint32(0))

    def spread(reached: Array) -> Array:
        none = jnp.zeros(1, jnp.uint32)
        above, below = jnp.concatenate([none, reached[:-1]]), jnp.concatenate([reached[1:], none])
        return (reached | reached << 1 | reached >> 1 | above | below) & rows

    _, reached = jax.lax.while_loop(
        lambda pair: jnp.any(pair[0] != pair[1]), lambda pair: (pair[1], spread(pair[1])), (jnp.zeros_like(seed), seed)
    )
    return ((reached[:, None] >> column) & 1).astype(bool).reshape(-1)
