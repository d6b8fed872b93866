"""Shortest walks on the map, by breadth-first search from every item."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int32

from saplan.games.grid import NOWHERE, GridState, Map, to_cell, to_place
from saplan.interpreter.program import interpretable

FAR = 10_000
"""More steps than any walk takes."""


def walks(ground: Map, places: Int[Array, "items"], side: int) -> Int32[Array, "items cells"]:
    """The length of the shortest walk from every cell to every place, FAR where there is none."""
    cell = jnp.arange(side * side)
    free = (cell // side < ground.height) & (cell % side < ground.width)
    free &= ~jnp.any(to_place(cell, side)[:, None] == ground.walls, axis=1)
    start = jnp.where((to_place(cell, side) == places[:, None]) & free, 0, FAR)

    def spread(length: Array) -> Array:
        around = jnp.pad(length.reshape(-1, side, side), ((0, 0), (1, 1), (1, 1)), constant_values=FAR)
        near = jnp.minimum(
            jnp.minimum(around[:, :-2, 1:-1], around[:, 2:, 1:-1]),
            jnp.minimum(around[:, 1:-1, :-2], around[:, 1:-1, 2:]),
        )
        return jnp.where(free, jnp.minimum(length, near.reshape(length.shape) + 1), FAR)

    return jax.lax.while_loop(
        lambda pair: jnp.any(pair[0] != pair[1]), lambda pair: (pair[1], spread(pair[1])), (start, spread(start))
    )[1]


def step_towards(length: Int32[Array, "cells"], cell: Int[Array, ""]) -> Int[Array, ""]:
    """The move that shortens a walk most."""
    side = side_of(length)
    row, column = cell // side, cell % side
    around = jnp.pad(length.reshape(side, side), 1, constant_values=FAR)
    return jnp.argmin(
        jnp.stack(
            [around[row, column + 1], around[row + 2, column + 1], around[row + 1, column], around[row + 1, column + 2]]
        )
    )


def side_of(length: Int32[Array, "... cells"]) -> int:
    """The number of columns of an array of walks."""
    return math.isqrt(length.shape[-1])


def all_walks(state: Any) -> Int32[Array | np.ndarray, "tasks items cells"]:
    """The walks of every task's map; they never change. The arrays are as wide as the largest map."""
    ground = state.ground
    return _all_walks(state, int(max(np.max(ground.height), np.max(ground.width))))


@interpretable
@eqx.filter_jit
def _all_walks(state: Any, side: int) -> Int32[Array, "tasks items cells"]:
    found: Array = jax.lax.map(lambda one: walks(one.ground, one.items, side), state, batch_size=64)
    return found


@interpretable
@eqx.filter_jit
def lengths(state: Any, walk: Int32[Array, "tasks items cells"]) -> Int32[Array, "tasks items"]:
    """How far every item that is still there is from the agent."""

    def one(state: Any, walk: Array) -> Array:
        return jnp.where(state.items == NOWHERE, FAR, walk[:, cell_of(state, side_of(walk))])

    return jax.vmap(one)(state, walk)


def cell_of(state: GridState, side: int) -> Int[Array, ""]:
    """The cell the agent stands in."""
    return to_cell(state.ground.agent, side).astype(jnp.int32)


@interpretable
@eqx.filter_jit
def walk_on(
    state: Any, walk: Int32[Array, "tasks items cells"], item: Int[Array, "tasks"], action: Int[Array, "tasks"]
) -> Int[Array, "tasks"]:
    """One step towards an item, and its action once there; an item of -1 means that here is as good as anywhere."""

    def one(state: Any, walk: Array, item: Array, action: Array) -> Array:
        cell = cell_of(state, side_of(walk))
        there = (item < 0) | (walk[item, cell] == 0)
        return jnp.where(there, action, step_towards(walk[item], cell))

    return jax.vmap(one)(state, walk, item, action)
