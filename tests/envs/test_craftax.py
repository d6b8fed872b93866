"""Craftax-Classic: the attributes of a world that nobody here wrote, by playing on purpose."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from tests.loading import load

pytest.importorskip("craftax", reason="the example of Craftax needs it: pip install craftax")
craftax_classic = load("examples/craftax_classic.py")


def with_items(state: Any, **items: int) -> Any:
    inventory = state.env.inventory.replace(**{name: jnp.int32(count) for name, count in items.items()})
    return type(state)(state.env.replace(inventory=inventory), state.seen, state.rho, state.over)


def test_a_table_and_a_pickaxe() -> None:
    world = craftax_classic.craftax()
    step = jax.jit(world.step)
    state = with_items(world.reset(jax.random.key(0)), wood=3)
    for action in ("place_table", "make_wood_pickaxe"):
        state = step(jax.random.key(1), state, jnp.int32(world.actions.index(action)))
    rho = dict(zip(world.space.names, state.rho.tolist(), strict=True))
    assert (rho["wood"], rho["near_table"], rho["wood_pickaxe"]) == (0, 1, 1)
    assert bool(world.space.contains(state.rho))
    assert world.place(state).tolist() == [rho["row"], rho["column"], rho["direction"]]
    assert not bool(world.lost(state))
