"""Gymnasium in: episodes on the host as pure functions, and Taxi from training to files."""

from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import saplan
from saplan.algebra import Integer, Natural, Product
from saplan.envs.gymnasium_env import GymWorld, gym_world
from saplan.errors import InputError
from tests.loading import load
from tests.reliability.tiny import SIZES


class Counter(gymnasium.Env[Any, Any]):
    """Counts up or down, with luck that its seed decides; ends at 5."""

    observation_space = spaces.MultiDiscrete([9, 2], start=[-1, 3])
    action_space = spaces.Discrete(2, start=7)
    resets = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        Counter.resets += 1
        self.count, self.lucky = 0, int(self.np_random.integers(2))
        return self._seen(), {}

    def _seen(self) -> np.ndarray:
        return np.array([self.count, 3 + self.lucky])

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in (7, 8), "actions must be those of the environment"
        assert self.count < 5, "an episode that is over must be left alone"
        lucky = self.np_random.random() < 0.5
        self.count = max(self.count + (1 + lucky if action == 7 else -1), -1)
        return self._seen(), 0.0, self.count >= 5, False, {}


def counted(observation: Any, info: dict[str, Any], env: Any) -> tuple[int, int]:
    return env.count, env.lucky


def world_of(**more: Any) -> GymWorld:
    return gym_world(Counter, Product.of(count=Integer(), lucky=Natural()), counted, ["count=3"], **more)


def test_time_that_is_up_is_no_death() -> None:
    space, up = Product.of(count=Integer(), lucky=Natural()), jnp.int32(0)
    timed = gym_world(lambda: gymnasium.wrappers.TimeLimit(Counter(), 1), space, counted, ["count=3"])
    state = timed.step(jax.random.key(0), timed.reset(jax.random.key(0)), up)
    assert (bool(timed.over(state)), bool(timed.lost(state))) == (True, False)
    world = world_of()
    state = world.reset(jax.random.key(0))
    for _ in range(5):
        state = world.step(jax.random.key(0), state, up)
    assert (bool(world.over(state)), bool(world.lost(state))) == (True, True)


def test_a_state_can_be_gone_on_from_however_often() -> None:
    world = world_of()
    step = jax.jit(jax.vmap(world.step, in_axes=(None, 0, 0)))
    start = jax.jit(jax.vmap(world.reset))(jax.random.split(jax.random.key(0), 6))
    key, up, down = jax.random.key(1), jnp.zeros(6, int), jnp.ones(6, int)
    one = step(key, start, up)
    two = step(key, one, down)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), two, step(key, one, down)))
    other = step(key, one, up)
    again = step(key, step(key, start, up), down)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), two, again))
    assert np.array_equal(np.asarray(other.rho)[:, 0] > np.asarray(two.rho)[:, 0], np.ones(6, bool))
    assert len(set(np.asarray(one.rho)[:, 0].tolist())) == 2, "the seed decides"


def test_an_episode_that_is_over_stays_as_it_is() -> None:
    world = world_of()
    state = world.reset(jax.random.key(2))
    for _ in range(8):
        state = world.step(jax.random.key(0), state, jnp.int32(0))
    assert bool(state.over)
    assert float(state.rho[0]) >= 5
    assert not bool(world_of(endless=True).reset(jax.random.key(2)).over)


def test_environments_are_used_again() -> None:
    world = world_of()
    reset = jax.jit(jax.vmap(world.reset))
    for k in range(20):
        reset(jax.random.split(jax.random.key(k), 5))
    host: Any = world.host
    assert len(host.live) + len(host.idle) <= 4 * 5 + 1


def test_what_cannot_be_a_world() -> None:
    with pytest.raises(InputError, match="actions must be discrete"):
        gym_world("Pendulum-v1", Product.of(x=Natural()), counted, [])
    with pytest.raises(InputError, match="unknown attribute"):
        gym_world(Counter, Product.of(x=Natural()), counted, ["y=1"])
    with pytest.raises(InputError, match="attributes must be 1 numbers"):
        gym_world(Counter, Product.of(x=Natural()), counted, [])
    with pytest.raises(InputError, match="lie outside"):
        gym_world(Counter, Product.of(x=Natural(), y=Natural()), lambda *_: (0, -1), [])


def test_a_pool_of_processes_plays_the_same() -> None:
    alone, pool = world_of(), world_of(processes=2)
    keys = jax.random.split(jax.random.key(4), 7)
    states = [jax.jit(jax.vmap(world.reset))(keys) for world in (alone, pool)]
    for action in (0, 1, 0):
        steps = [jax.jit(jax.vmap(world.step, in_axes=(None, 0, None))) for world in (alone, pool)]
        states = [step(keys[0], state, jnp.int32(action)) for step, state in zip(steps, states, strict=True)]
        assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), *states))


def test_what_goes_wrong_in_a_process_is_told() -> None:
    space = Product.of(count=Integer(), lucky=Natural())
    with pytest.raises(InputError, match="use functions of a module"):
        gym_world(Counter, space, lambda *_: (0, 0), [], processes=1)
    with pytest.raises(InputError, match="processes must lie in"):
        gym_world(Counter, space, counted, [], processes=1000)


class Poles(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Numbers in, and pictures out."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make("CartPole-v1", render_mode="rgb_array"))


def leaning(observation: Any, info: dict[str, Any], env: Any) -> tuple[int]:
    return (int(observation[2] > 0),)


def test_numbers_are_seen_and_pictures_shown() -> None:
    pygame = pytest.importorskip("pygame", reason="CartPole draws with pygame")
    assert pygame
    world = gym_world(Poles, Product.of(right=Natural(bins=2)), leaning, ["right=1"])
    state = world.reset(jax.random.key(0))
    assert (world.vocabulary, world.slots, state.seen.dtype) == (0, 4, jnp.float32)
    assert world.frame(state).shape == (400, 600, 3)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised")
def test_taxi() -> None:
    taxi = load("examples/taxi.py")
    agent: Any = saplan.train(
        taxi.taxi(), 120_000, 0, saplan.StructuredSettings(lanes=64, minibatches=8), eval_points=0
    )
    assert int(agent.memory.size) == 12, "four moves, four stands to pick up from and to drop at"
    assert saplan.evaluate(agent, 100).success.mean() > 0.9
    precision, recall = taxi.edges(agent)
    assert min(precision, recall) > 0.85


def test_a_few_updates_on_taxi(tmp_path: Path) -> None:
    taxi = load("examples/taxi.py")
    world = taxi.taxi()
    settings = saplan.StructuredSettings(**SIZES | {"lanes": 64, "rollout": 16, "capacity": 16})
    agent: Any = saplan.train(world, 8 * 64 * 16, 0, settings, tmp_path / "run", eval_points=0)
    assert int(agent.memory.size) in range(8, 13), "four moves, four stands to pick up from and to drop at"
    assert saplan.evaluate(agent, 2, budget=4).success.shape == (2,)
    with pytest.raises(InputError, match="belongs to the world 'Taxi-v4'"):
        saplan.load(tmp_path / "run")
    with pytest.raises(InputError, match="not to the given one"):
        saplan.load(tmp_path / "run", world_of())
    back: Any = saplan.load(tmp_path / "run", world)
    assert np.array_equal(back.memory.delta, agent.memory.delta)
