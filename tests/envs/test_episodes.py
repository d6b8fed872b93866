"""Episodes on the host: any step can be replayed, and an unknown step is refused."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.envs.histories import OVERHEAD, Histories
from saplan.errors import InputError
from tests.reliability.own import build, restarted, tower

KEY = jax.random.key(0)


def same(one: Any, other: Any) -> bool:
    return jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), one, other))


def test_episodes_that_had_to_make_room_go_on_where_they_were() -> None:
    world = tower()
    step = jax.jit(jax.vmap(world.step, in_axes=(None, 0, None)))
    state = jax.jit(jax.vmap(world.reset))(jax.random.split(KEY, 3))
    for action in (0, 0, 0, 1):
        state = step(KEY, state, jnp.int32(action))
    following = step(KEY, state, jnp.int32(0))
    for k in range(9):  # many others pass through
        jax.jit(jax.vmap(world.reset))(jax.random.split(jax.random.key(k + 1), 3))
    host: Any = world.host
    assert not set(np.asarray(state.ticket).tolist()) & set(host.live)
    assert same(step(KEY, state, jnp.int32(0)), following)


def test_ways_that_part_are_told_apart() -> None:
    world = tower()
    start = world.reset(KEY)
    search, wait = (world.step(KEY, start, jnp.int32(action)) for action in (0, 2))
    on = [world.step(KEY, state, jnp.int32(0)) for state in (search, wait, search, wait)]
    assert same(on[0], on[2])
    assert same(on[1], on[3])
    assert not same(on[0], on[1]), "the same clock, and another path"


def test_an_unknown_moment_is_refused() -> None:
    world = tower()
    state = world.step(KEY, world.reset(KEY), jnp.int32(0))
    restarted(world)
    ticket, clock, path = (np.asarray(each)[None] for each in (state.ticket, state.clock, state.path))
    with pytest.raises(InputError, match=r"step 1 of the episode with seed \d+ is unknown"):
        world.workers.step(ticket, clock, path, np.zeros(1, np.int32))


@pytest.mark.parametrize("processes", [0, 1])
def test_episodes_come_back_in_another_process(processes: int) -> None:
    world = restarted(tower(), processes)
    states = jax.vmap(world.reset)(jax.random.split(KEY, 5))
    ahead = jnp.array([True, False, True, True, False])
    for action in (0, 2, 0):
        after = jax.vmap(world.step, in_axes=(None, 0, None))(KEY, states, jnp.int32(action))
        pick = lambda a, b: jnp.where(ahead.reshape(-1, *(1,) * (a.ndim - 1)), a, b)  # noqa: E731
        states = jax.tree.map(pick, after, states)
    recalled = world.recall(states)
    following = jax.vmap(world.step, in_axes=(None, 0, None))(KEY, states, jnp.int32(0))
    restarted(world, processes)
    world.restore(states, recalled)
    assert same(jax.vmap(world.step, in_axes=(None, 0, None))(KEY, states, jnp.int32(0)), following)
    restarted(world, processes)
    other = {"actions": np.where(recalled["actions"] == 2, 1, recalled["actions"])}
    with pytest.raises(InputError, match="do not lead to its state"):
        world.restore(states, other)
    with pytest.raises(InputError, match="do not fit its clock"):
        world.restore(states, {"actions": recalled["actions"][:, :2]})
    with pytest.raises(InputError, match="were not saved"):
        world.restore(states, {})


def test_the_memory_of_what_was_played_is_bounded() -> None:
    histories = Histories(most=20 * OVERHEAD)
    histories.room = 2
    for ticket in range(1000):
        history = histories.find(ticket, 0, 0)
        for clock in range(5):
            history = histories.follow(history, clock, 1)
    assert len(histories.used) == len(histories.of) <= 20
    assert histories.weight == sum(len(history.actions) + OVERHEAD for history in histories.used)
    assert histories.find(999, 5, history.paths[-1]) is history
    with pytest.raises(InputError, match="is unknown"):
        histories.find(0, 5, history.paths[-1])


def test_environments_of_a_large_batch_are_let_go() -> None:
    host = build()
    host.reset(np.arange(100, dtype=np.int32))
    for k in range(300):
        host.reset(np.arange(k, k + 2, dtype=np.int32))
    assert len(host.live) + len(host.idle) <= 4 * 2 + 1
