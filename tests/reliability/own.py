"""Worlds of one's own, so small that everything about them is known: a tower for Gymnasium, a row of lamps for JAX."""

import time
from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from saplan.algebra import Cyclic, Natural, Product
from saplan.envs.episodes import Host
from saplan.envs.gymnasium_env import GymWorld, gym_world
from saplan.envs.jax_env import JaxWorld, jax_world
from saplan.envs.player import GymPlayer
from saplan.envs.pool import Pool

FLOORS = 4


class Tower(gymnasium.Env[Any, Any]):
    """Every floor needs the one below it; its seed decides how many searches a stone takes.

    Three actions: search for a stone, build a floor with two stones, wait.
    """

    observation_space = spaces.MultiDiscrete([FLOORS + 1, 3, 4])
    action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.floors, self.stones, self.searched = 0, 0, 0
        return self._seen(), {}

    def _seen(self) -> np.ndarray:
        return np.array([self.floors, self.stones, self.searched])

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if action == 0 and self.stones < 2:
            self.searched += 1
            if self.searched == 3 or self.np_random.random() < 0.5:
                self.stones, self.searched = self.stones + 1, 0
        elif action == 1 and self.stones == 2 and self.floors < FLOORS:
            self.floors, self.stones = self.floors + 1, 0
        return self._seen(), 0.0, False, False, {}


POSSIBLE = {(0.0, 1.0), (1.0, -2.0)}
"""Every change of (floors, stones) that the rules allow."""


def height(observation: Any, info: dict[str, Any], env: Any) -> tuple[int, int]:
    return env.floors, env.stones


SPACE = Product.of(floors=Natural(bins=FLOORS + 1), stones=Natural(bins=3))


def tower(make: Any = Tower, **more: Any) -> GymWorld:
    return gym_world(make, SPACE, height, ["stones=1"], name="tower", **more)


def build() -> Host:
    return Host(partial(GymPlayer, Tower, height, SPACE))


def restarted(world: GymWorld, processes: int = 0) -> GymWorld:
    """The same world as another process has it: nothing of what was played before is known.

    It stays the same object, so that compiled programs can be used again.
    """
    object.__setattr__(world, "workers", Pool(build, processes) if processes else build())
    return world


class Raises(Tower):
    """Has a bug."""

    def step(self, action: int) -> Any:
        if self.stones:
            raise ZeroDivisionError("the third stone\nis missing")
        return super().step(action)


class Exits(Tower):
    """Takes its whole process with it."""

    def step(self, action: int) -> Any:
        import os

        os._exit(7)


class Quits(Tower):
    """Ends the program in a way that Python can catch."""

    def step(self, action: int) -> Any:
        raise SystemExit("no display")


class Unmakeable(Tower):
    """Can be made where there is a display, and there is one in the parent alone."""

    def __init__(self) -> None:
        import multiprocessing

        if multiprocessing.parent_process() is not None:
            raise RuntimeError("no display")


class Slow(Tower):
    """Takes its time."""

    def step(self, action: int) -> Any:
        time.sleep(0.3)
        return super().step(action)


class Stuck(Tower):
    """Never comes back."""

    def step(self, action: int) -> Any:
        time.sleep(3600)


class Lamps:
    """A row of three places, with a lamp of three states at the last."""

    def reset(self, key: Any, params: Any) -> Any:
        state = {"place": jax.random.randint(key, (), 0, 3), "lamp": jnp.int32(0)}
        return jax.nn.one_hot(state["place"], 3), state

    def step(self, key: Any, state: Any, action: Any, params: Any) -> Any:
        place = jnp.clip(state["place"] + jnp.array([-1, 1, 0])[action], 0, 2)
        state = {"place": place, "lamp": (state["lamp"] + ((action == 2) & (place == 2))) % 3}
        return jax.nn.one_hot(place, 3), state, 0.0, jnp.bool_(False), {}


def lamp(seen: Any, state: Any) -> Any:
    return state["lamp"].astype(jnp.float32)[None]


def lamps() -> JaxWorld:
    return jax_world(Lamps(), Product.of(lamp=Cyclic(3)), lamp, ["lamp=1"], ("left", "right", "switch"), name="lamps")
