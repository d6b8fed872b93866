"""MiniGrid: attributes of two environments that nobody here wrote, and a short training."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saplan
from saplan.envs.gymnasium_env import GymWorld, gym_world
from tests.loading import load
from tests.reliability.tiny import SIZES

pytest.importorskip("minigrid", reason="the examples of MiniGrid need it: pip install minigrid")
mini_grid = load("examples/mini_grid.py")
LEFT, RIGHT, FORWARD, PICK, DROP, TOGGLE = range(6)


@pytest.mark.parametrize("task", mini_grid.TASKS, ids=lambda task: task.env)
def test_attributes_stay_in_their_space(task: Any) -> None:
    world = task.world()
    state = world.reset(jax.random.key(0))
    for action in np.random.default_rng(0).integers(6, size=60):
        state = world.step(jax.random.key(0), state, jnp.int32(action))
        assert bool(task.space.contains(state.rho)), task.space.format(state.rho)
    assert world.frame(state).shape[2] == 3


def test_the_view_turns_with_the_agent() -> None:
    task = mini_grid.TASKS[0]
    env = task.make()
    seen, _ = env.reset(seed=3)
    for _ in range(4):
        seen, *_ = env.step(LEFT)
    size = 2 * task.reach + 1
    turned, *_ = env.step(LEFT)
    here, there = seen.reshape(size, size), turned.reshape(size, size)
    assert not np.array_equal(here, there)
    assert any(np.array_equal(np.rot90(here, k), there) for k in (1, 3))
    x, y = env.unwrapped.agent_pos
    ahead = env.unwrapped.grid.get(*env.unwrapped.front_pos)
    middle = there[task.reach - 1 : task.reach + 2, task.reach - 1 : task.reach + 2]
    kinds = sorted(middle[mask] for mask in [(0, 1), (1, 0), (1, 2), (2, 1)])
    around = [env.unwrapped.grid.get(x + dx, y + dy) for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    assert kinds == sorted(0 if thing is None else mini_grid.kind_of(thing) for thing in around)
    assert ahead is None or mini_grid.kind_of(ahead) in kinds


@pytest.mark.parametrize(("action", "fate"), [(PICK, "held"), (TOGGLE, "gone")])
def test_what_becomes_of_the_box(action: int, fate: str) -> None:
    task = mini_grid.TASKS[0]
    env = task.make()
    env.reset(seed=3)
    inner: Any = env.unwrapped
    where = next(k for k, thing in enumerate(inner.grid.grid) if thing is not None and thing.type == "box")
    column, row = where % inner.width, where // inner.width
    free = [(dx, dy) for dx, dy in ((1, 0), (0, 1), (-1, 0), (0, -1)) if inner.grid.get(column - dx, row - dy) is None]
    dx, dy = free[0]
    inner.agent_pos, inner.agent_dir = (column - dx, row - dy), [(1, 0), (0, 1), (-1, 0), (0, -1)].index((dx, dy))
    box = task.space.names.index("box")
    for expected in ("there", fate):
        assert mini_grid.BOX.labels[int(task.attributes(None, {}, inner)[box])] == expected
        env.step(action)


def trained(steps: int, settings: saplan.Settings) -> tuple[Any, set[str]]:
    """An agent of the first environment, and the transitions that it knows."""
    task = mini_grid.TASKS[0]
    world: GymWorld = gym_world(task.make, task.space, task.attributes, ("key=1",), endless=True, name=task.env)
    agent: Any = saplan.train(world, steps, 0, settings, eval_points=0)
    return agent, {task.space.format_delta(delta) for delta in np.asarray(agent.memory.delta[: int(agent.memory.size)])}


def test_a_few_updates_find_the_key() -> None:
    agent, known = trained(8 * 64 * 16, saplan.StructuredSettings(**SIZES | {"lanes": 64, "rollout": 16}))
    assert {"key +1", "key -1"} <= known
    assert saplan.evaluate(agent, 2, budget=4).success.shape == (2,)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised")
def test_a_short_training_learns_to_take_the_key() -> None:
    agent, known = trained(120_000, saplan.StructuredSettings(lanes=64, minibatches=8))
    assert {"key +1", "key -1", "ball +1, blocked +1 mod 2"} <= known
    assert saplan.evaluate(agent, 60, budget=100).success.mean() > 0.6
