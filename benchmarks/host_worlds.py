"""Speed of Gymnasium environments as worlds of saplan, beside Gymnasium's own vector environments.

    python benchmarks/host_worlds.py --json results/benchmark-host-worlds.json

One small environment whose step takes a fixed time of computing is stepped in 32 lanes by random actions: as a world of
saplan in this process and in a pool, and by Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv`. The latter has one
process per lane. In the pool, an environment that can save its state shares memory with the others, one that cannot
stays in one process and answers through a pipe. A step of a world is a call from a compiled program and reads the
attributes as well. Turns are interleaved; rates are medians of them.
"""

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from common import cores, describe, make_parser, progress, quantity, setting, text_table

from saplan.algebra import Natural, Product
from saplan.envs.gymnasium_env import gym_world
from saplan.experiments.result_file import write_result

LANES = 32
SPACE = Product.of(steps=Natural())


class Busy(gymnasium.Env[Any, Any]):
    """Counts one of its two actions; every step computes for a fixed time."""

    def __init__(self, microseconds: float) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (32,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.seconds = microseconds / 1e6

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return self.seen(), {}

    def seen(self) -> np.ndarray:
        return np.full(32, self.count, np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        ends = time.thread_time() + self.seconds
        self.count += int(action)
        while time.thread_time() < ends:
            pass
        return self.seen(), 0.0, False, False, {}


class Saved(Busy):
    """The same with a state that can be saved."""

    def get_state(self) -> np.ndarray:
        """The state as numbers."""
        return np.array([self.count], float)

    def set_state(self, state: np.ndarray) -> None:
        """Continue from a state."""
        self.count = int(state[0])


def attributes(seen: np.ndarray, info: Any, env: Any) -> list[float]:
    """The count."""
    return [float(seen[0])]


Play = Callable[[int], None]
"""Plays so many steps in all lanes."""


def as_world(kind: type[Busy], microseconds: float, processes: int) -> Play:
    """The environment as a world of saplan."""
    world = gym_world(functools.partial(kind, microseconds), SPACE, attributes, ["steps=1"], processes=processes)
    step = jax.jit(lambda state, action: jax.vmap(world.step, in_axes=(None, 0, 0))(jax.random.key(0), state, action))
    held = {"state": jax.jit(jax.vmap(world.reset))(jax.random.split(jax.random.key(0), LANES))}
    draws = np.random.default_rng(0)

    def play(steps: int) -> None:
        for _ in range(steps):
            held["state"] = step(held["state"], jnp.asarray(draws.integers(2, size=LANES)))
        jax.block_until_ready(held["state"])

    return play


def as_vector(vector: Any, microseconds: float) -> Play:
    """The environment in one of Gymnasium's vector environments."""
    envs = vector([functools.partial(Busy, microseconds)] * LANES)
    envs.reset(seed=0)
    draws = np.random.default_rng(0)

    def play(steps: int) -> None:
        for _ in range(steps):
            envs.step(draws.integers(2, size=LANES))

    return play


def main() -> None:
    """Measures and prints the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--microseconds", type=float, nargs="+", default=[10, 100, 1000], help="work per step")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a turn")
    options = parser.parse_args()
    facts, processes = setting(), cores()
    print(describe(facts), flush=True)
    rows, entries = [], []
    for cost in options.microseconds:
        plays = {
            "saplan, this process": as_world(Busy, cost, 0),
            f"saplan, {processes} processes, pipes": as_world(Busy, cost, processes),
            f"saplan, {processes} processes, shared memory": as_world(Saved, cost, processes),
            "Gymnasium, SyncVectorEnv": as_vector(gymnasium.vector.SyncVectorEnv, cost),
            f"Gymnasium, AsyncVectorEnv, {LANES} processes": as_vector(gymnasium.vector.AsyncVectorEnv, cost),
        }
        rates: dict[str, list[float]] = {name: [] for name in plays}
        for play in plays.values():
            play(3)
        for _ in range(options.repetitions):
            for name, play in plays.items():
                steps, began = 0, time.perf_counter()
                while (spent := time.perf_counter() - began) < options.seconds:
                    play(4)
                    steps += 4
                rates[name].append(LANES * steps / spent)
        best = 1e6 / cost * processes
        for name, each in rates.items():
            rate = statistics.median(each)
            rows.append((f"{cost:g} µs", name, quantity(rate), f"{100 * rate / best:.0f} %"))
            entries.append({"microseconds": cost, "name": name, "median": rate, "rates": each, "limit": best})
        progress(f"{cost:g} µs: " + ", ".join(quantity(statistics.median(each)) for each in rates.values()))
        write_result(options.json, {"setting": facts, "lanes": LANES, "entries": entries}, "gymnasium")
    print(text_table(("work per step", "how", "steps/s", "of all cores' limit"), rows))


if __name__ == "__main__":
    main()
