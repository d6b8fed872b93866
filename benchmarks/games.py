"""How fast the games are, next to other people's grid worlds: `python benchmarks/games.py [--json FILE]`.

Everyone plays random actions drawn alike, builds every observation, and has it consumed: sums of observation and reward
(for us: of attributes) go into an accumulator that is returned, so that the compiler cannot leave them out. Everyone
resets finished games: the peers by their own wrappers, ours as the trainer does it, from one fresh map per lane and
rollout. Repetitions are interleaved (A, B, C, A, B, C, ...), so that a noisy moment hits all alike; rates are medians,
and a ratio is the median of the ratios within a repetition.

The worlds differ in their rules, of course; all are grids of 7 to 10 cells with 5 to 11 actions.
"""

import argparse
import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray
from report import describe, peer, progress, quantity, save, setting, table

from saplan.games import GAMES, Game, make_game

ROLLOUT = 64
"""Steps per jitted call."""
HORIZON = 150
"""Steps after which one of our games ends."""
LANES = (1024, 4096)
VECTOR = 16
"""Environments in a Gymnasium vector."""
HOST_STEPS = 64
"""Gymnasium calls between two looks at the clock."""

Play = Callable[[], int]
"""Plays on for a moment, waits for the end, and returns how many steps that were."""


@dataclass
class Entry:
    """One contestant and the rates measured so far."""

    world: str
    lanes: int
    play: Play
    kind: str
    """One of `ours`, `jax`, `bare` (a peer in JAX that never resets), `host`."""
    rates: list[float] = field(default_factory=list)

    @property
    def label(self) -> str:
        return f"{self.world}, {self.lanes} lanes"

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)


def jitted(rollout: Callable[[PRNGKeyArray, Any], tuple[Any, Array]], start: Any, lanes: int) -> Play:
    """Compiles a rollout and plays it over and over, each time from where the last one ended."""
    compiled = jax.jit(rollout, donate_argnums=1)
    held = {"carry": start, "key": jax.random.key(1)}

    def play() -> int:
        held["key"], key = jax.random.split(held["key"])
        held["carry"], total = compiled(key, held["carry"])
        total.block_until_ready()
        return ROLLOUT * lanes

    return play


def random_actions(key: PRNGKeyArray, lanes: int, count: int) -> Int[Array, "steps lanes"]:
    """The same draw for all contestants that live in JAX."""
    return jax.random.randint(key, (ROLLOUT, lanes), 0, count)


def consumed(*arrays: Array) -> Float[Array, "lanes"]:
    """One number per lane in which every element has a part."""
    return sum(jnp.sum(a.reshape(a.shape[0], -1).astype(jnp.float32), axis=1) for a in arrays)


def play_ours(game: Game[Any], lanes: int) -> Play:
    """Our game: fresh maps are drawn once per rollout for every lane, and a lane whose game ends takes its own."""
    reset, step, observe = jax.vmap(game.reset), jax.vmap(game.step), jax.vmap(game.observe)
    attributes, over = jax.vmap(game.attributes), jax.vmap(game.over)

    def rollout(key: PRNGKeyArray, carry: Any) -> tuple[Any, Array]:
        fresh_key, action_key, step_key = jax.random.split(key, 3)
        fresh = reset(jax.random.split(fresh_key, lanes))

        def advance(carry: Any, inputs: Any) -> tuple[Any, None]:
            state, clock, total = carry
            key, action = inputs
            state = step(jax.random.split(key, lanes), state, action)
            rho = attributes(state)
            ended = (clock + 1 >= HORIZON) | over(state)
            state = jax.tree.map(lambda new, old: jnp.where(spread(ended, new), new, old), fresh, state)
            return (state, jnp.where(ended, 0, clock + 1), total + consumed(observe(state), rho)), None

        inputs = jax.random.split(step_key, ROLLOUT), random_actions(action_key, lanes, len(game.actions))
        (state, clock, total), _ = jax.lax.scan(advance, (*carry, jnp.zeros(lanes)), inputs)
        return (state, clock), total

    # The clocks start spread out, so that every rollout sees its share of ends.
    start = jax.jit(reset)(jax.random.split(jax.random.key(0), lanes)), jnp.arange(lanes) % HORIZON
    return jitted(rollout, start, lanes)


def spread(mask: Array, like: Array) -> Array:
    """A mask over lanes, shaped to choose between arrays like `like`."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - 1))


def play_timesteps(reset: Callable[[Array], Any], step: Callable[[Any, Array], Any], actions: int, lanes: int) -> Play:
    """A peer whose state, observation and reward are one record, and which resets itself."""

    def rollout(key: PRNGKeyArray, timestep: Any) -> tuple[Any, Array]:
        def advance(carry: Any, action: Array) -> tuple[Any, None]:
            timestep, total = carry
            timestep = jax.vmap(step)(timestep, action)
            return (timestep, total + consumed(timestep.observation, timestep.reward)), None

        inputs = random_actions(key, lanes, actions)
        (timestep, total), _ = jax.lax.scan(advance, (timestep, jnp.zeros(lanes)), inputs)
        return timestep, total

    start = jax.jit(jax.vmap(reset))(jax.random.split(jax.random.PRNGKey(0), lanes))
    return jitted(rollout, start, lanes)


def play_xminigrid(xminigrid: Any, lanes: int, resets: bool = True) -> Play:
    """XLand-MiniGrid with the faster of its two reset wrappers."""
    env, params = xminigrid.make("MiniGrid-DoorKey-8x8")
    if resets:
        env = importlib.import_module("xminigrid.wrappers").GymAutoResetWrapper(env)
    return play_timesteps(
        lambda key: env.reset(params, key),
        lambda timestep, action: env.step(params, timestep, action),
        env.num_actions(params),
        lanes,
    )


def play_navix(navix: Any, lanes: int, resets: bool = True) -> Play:
    """NAVIX with its default symbolic observation; `step` resets, `_step` does not."""
    env = navix.make("Navix-DoorKey-8x8-v0")
    return play_timesteps(env.reset, env.step if resets else env._step, len(env.action_set), lanes)


def play_minigrid(gymnasium: Any, wrappers: Any) -> Play:
    """One Farama MiniGrid environment."""
    env = wrappers.ImgObsWrapper(gymnasium.make("MiniGrid-DoorKey-8x8-v0", disable_env_checker=True))
    env.reset(seed=0)
    env.action_space.seed(0)

    def play() -> int:
        for _ in range(HOST_STEPS):
            observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
            observation.sum()
            if terminated or truncated:
                env.reset()
        return HOST_STEPS

    return play


def play_minigrid_vector(gymnasium: Any, wrappers: Any) -> Play:
    """Several Farama MiniGrid environments, stepped in turn by Gymnasium, which also resets them."""

    def make() -> Any:
        return wrappers.ImgObsWrapper(gymnasium.make("MiniGrid-DoorKey-8x8-v0", disable_env_checker=True))

    envs = gymnasium.vector.SyncVectorEnv([make] * VECTOR)
    envs.reset(seed=0)
    envs.action_space.seed(0)

    def play() -> int:
        for _ in range(HOST_STEPS // VECTOR):
            observation = envs.step(envs.action_space.sample())[0]
            observation.sum()
        return HOST_STEPS

    return play


def contestants() -> list[Entry]:
    """Everyone who is installed."""
    xminigrid, navix, minigrid = peer("xminigrid"), peer("navix"), peer("minigrid")
    in_jax = [("xminigrid DoorKey-8x8", play_xminigrid, xminigrid), ("navix DoorKey-8x8", play_navix, navix)]
    entries = []
    for lanes in LANES:
        entries += [Entry(name, lanes, play_ours(make_game(name), lanes), "ours") for name in GAMES]
        for world, play, module in in_jax:
            if module:
                entries.append(Entry(world, lanes, play(module, lanes), "jax"))
                entries.append(Entry(f"{world}, no resets", lanes, play(module, lanes, resets=False), "bare"))
    if minigrid:
        gymnasium, wrappers = importlib.import_module("gymnasium"), importlib.import_module("minigrid.wrappers")
        entries.append(Entry("MiniGrid DoorKey-8x8", 1, play_minigrid(gymnasium, wrappers), "host"))
        entries.append(Entry("MiniGrid DoorKey-8x8, vector", VECTOR, play_minigrid_vector(gymnasium, wrappers), "host"))
    return entries


def measure(entries: list[Entry], repetitions: int, seconds: float) -> None:
    """Lets everyone play in turn, again and again."""
    for entry in entries:
        begin = time.perf_counter()
        entry.play()
        entry.play()  # what a rollout returns may be typed more weakly than what it started from: once more is compiled
        progress(f"ready: {entry.label} ({time.perf_counter() - begin:.1f} s to compile and warm up)")
    for repetition in range(repetitions):
        for entry in entries:
            entry.rates.append(timed(entry.play, seconds))
        shown = ", ".join(f"{entry.world.split()[0]} {entry.lanes}: {quantity(entry.rates[-1])}" for entry in entries)
        progress(f"repetition {repetition + 1}/{repetitions}: {shown}")


def timed(play: Play, seconds: float) -> float:
    """Steps per second over at least this long."""
    steps, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < seconds:
        steps += play()
    return steps / spent


def ratio(entry: Entry, entries: list[Entry]) -> float | None:
    """How many times faster than the faster of the peers in JAX with as many lanes."""
    rivals = [other for other in entries if other.kind == "jax" and other.lanes == entry.lanes]
    if entry.kind != "ours" or not rivals:
        return None
    fastest = max(rivals, key=lambda other: other.rate)
    return statistics.median(a / b for a, b in zip(entry.rates, fastest.rates, strict=True))


def main() -> None:
    """Measures everyone and prints the table."""
    parser = argparse.ArgumentParser(
        description="Steps per second of the games and of other grid worlds, side by side."
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result here")
    parser.add_argument("--repetitions", type=int, default=7, help="turns per contestant (default: 7)")
    parser.add_argument("--seconds", type=float, default=0.4, help="length of a turn (default: 0.4)")
    options = parser.parse_args()

    facts = setting()
    print(describe(facts), flush=True)
    entries = contestants()
    measure(entries, options.repetitions, options.seconds)

    rows, records = [], []
    for entry in entries:
        times = ratio(entry, entries)
        extent = f"{quantity(min(entry.rates))} .. {quantity(max(entry.rates))}"
        shown = "" if times is None else f"{times:.1f}×"
        rows.append((entry.world, str(entry.lanes), quantity(entry.rate), extent, shown))
        records.append(
            {"world": entry.world, "kind": entry.kind, "lanes": entry.lanes, "median": entry.rate}
            | {"rates": entry.rates, "ratio": times}
        )
    print(f"\nSteps per second, medians of {options.repetitions} interleaved turns; ratio to the faster peer in JAX\n")
    print(table(("world", "lanes", "steps/s", "lowest .. highest", "ratio"), rows))
    if options.json:
        save(options.json, {"setting": facts, "entries": records})


if __name__ == "__main__":
    main()
