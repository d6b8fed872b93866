"""Maps of the grid games: how they are drawn, seen and walked on.

A place is one number, row · PITCH + column, with a pitch of 2 · 10 - 1 = 19. Then the offset of an item from the agent
is a plain difference, and the word of an item (kind, row offset, column offset) is
`kind · 361 + difference + 180`, counted from the end of the edge words.
"""

from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int16, Int32, PRNGKeyArray

from saplan.errors import InputError

SIDE = 10
"""Largest height and width that the words can describe."""
CELLS = SIDE * SIDE
PITCH = 2 * SIDE - 1
OFFSETS = PITCH * PITCH
NOWHERE = -1
"""The place of an item that is not on the map."""
PADDING = 0
"""The word of an absent slot."""
EDGE_WORDS = 4 * SIDE

CELL_BITS = 127
"""The low bits of a cell's random score hold the cell itself, so that all scores differ."""
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
        if not 3 <= self.smallest <= self.largest <= SIDE:
            raise InputError(f"maps need 3 <= smallest <= largest <= {SIDE}, got {self.smallest} and {self.largest}")
        if not 0 <= self.blocked <= 0.3:
            raise InputError(f"the share of blocked cells must lie in 0..0.3, got {self.blocked}")

    @property
    def max_walls(self) -> int:
        # At least one slot, even if it stays absent: `lax.map` in batches refuses empty arrays.
        return max(1, round(self.blocked * self.largest**2))

    def check_room(self, items: int) -> None:
        """Raises `InputError` if so many items never fit beside the walls and the agent: drawing would not end."""
        room = self.largest**2 - round(self.blocked * self.largest**2) - 1
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
    row, column = ground.agent // PITCH, ground.agent % PITCH
    direction = jnp.minimum(action, INTERACT)
    down, right = jnp.asarray(_ROW_STEP)[direction], jnp.asarray(_COLUMN_STEP)[direction]
    new_row, new_column = row + down, column + right
    inside = (new_row >= 0) & (new_row < ground.height) & (new_column >= 0) & (new_column < ground.width)
    target = (new_row * PITCH + new_column).astype(jnp.int16)
    free = inside & ~jnp.any(ground.walls == target)
    return Map(ground.height, ground.width, ground.walls, jnp.where(free, target, ground.agent))


def words(ground: Map, kinds: Int32[Array, "n"], places: Places) -> Int16[Array, "slots"]:
    """The bag of words: walls (kind 0), items with their kinds (from 1), and the distances to the four edges."""
    row, column = ground.agent // PITCH, ground.agent % PITCH
    edges = jnp.stack([row, ground.height - 1 - row, column, ground.width - 1 - column])
    edge_words = 1 + edges + SIDE * jnp.arange(4, dtype=jnp.int16)
    all_kinds = jnp.concatenate([jnp.zeros(ground.walls.shape[0], jnp.int32), kinds])
    all_places = jnp.concatenate([ground.walls, places])
    offsets = (all_places - ground.agent + OFFSETS // 2).astype(jnp.int32)
    item_words = jnp.where(all_places == NOWHERE, PADDING, 1 + EDGE_WORDS + all_kinds * OFFSETS + offsets)
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
    cell = jnp.arange(CELLS)
    inside = (cell // SIDE < height) & (cell % SIDE < width)
    score = jax.random.bits(rank_key, (CELLS,), jnp.uint32).astype(jnp.int32) & (FAR ^ CELL_BITS) | cell
    score = jnp.where(inside, score, FAR)

    first = _lowest(score, rules.max_walls + 1)
    wall_count = jnp.round(rules.blocked * (height * width)).astype(jnp.int32)
    is_wall = jnp.arange(rules.max_walls) < wall_count
    wall_cells = jnp.where(is_wall, first[: rules.max_walls], NOWHERE)
    agent_cell = first[wall_count]

    walled = jnp.any(cell[:, None] == wall_cells[None, :], axis=1)
    reachable = flood(inside & ~walled, agent_cell)
    candidate = reachable & (cell != agent_cell)
    item_cells = _lowest(jnp.where(candidate, score, FAR), items)
    enough = jnp.sum(candidate) >= items
    walls = jnp.where(is_wall, to_place(wall_cells), NOWHERE).astype(jnp.int16)
    ground = Map(height, width, walls, to_place(agent_cell).astype(jnp.int16))
    return ground, to_place(item_cells).astype(jnp.int16), enough


def to_place(cell: Int[Array, "..."]) -> Int[Array, "..."]:
    """The place of a cell, given its number row by row on the largest map."""
    return cell // SIDE * PITCH + cell % SIDE


def _lowest(score: Int32[Array, "cells"], count: int) -> Int32[Array, "count"]:
    """The cells with the lowest scores, in order, found one by one: on a CPU ten times as fast as `top_k`."""

    def next_lowest(last: Array, _: None) -> tuple[Array, Array]:
        least = jnp.min(jnp.where(score > last, score, FAR))
        return least, least

    return jax.lax.scan(next_lowest, jnp.int32(-1), None, length=count)[1] & CELL_BITS


def flood(free: Bool[Array, "cells"], start: Int[Array, ""]) -> Bool[Array, "cells"]:
    """The free cells connected to `start`. Rows are bit masks, so one sweep is a handful of integer operations."""
    column = jnp.arange(SIDE, dtype=jnp.uint32)
    rows = jnp.sum(free.reshape(SIDE, SIDE).astype(jnp.uint32) << column, axis=1)
    bit = jnp.uint32(1) << (start % SIDE).astype(jnp.uint32)
    seed = jnp.where(jnp.arange(SIDE) == start // SIDE, bit, jnp.uint32(0))

    def spread(reached: Array) -> Array:
        none = jnp.zeros(1, jnp.uint32)
        above, below = jnp.concatenate([none, reached[:-1]]), jnp.concatenate([reached[1:], none])
        return (reached | reached << 1 | reached >> 1 | above | below) & rows

    _, reached = jax.lax.while_loop(
        lambda pair: jnp.any(pair[0] != pair[1]), lambda pair: (pair[1], spread(pair[1])), (jnp.zeros_like(seed), seed)
    )
    return ((reached[:, None] >> column) & 1).astype(bool).reshape(CELLS)
