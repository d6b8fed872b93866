"""Speed of the games beside other grid worlds: python benchmarks/games.py --json results/benchmark-games.json.

All worlds play random actions from the same distribution and build every observation. Sums of observations and rewards
(in our games, attributes) are accumulated and returned, so that the compiler cannot remove them. All reset finished
games: the peers by their own wrappers, ours as in training, from one new map per lane and rollout. Repetitions are
interleaved (A, B, C, A, B, C, ...), so that noise hits all equally; rates are medians, and a ratio is the median of the
ratios within a repetition.

The worlds have different rules; all are grids of 7 to 10 cells with 5 to 11 actions.
"""

import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from common import describe, make_parser, peer, progress, quantity, setting, text_table
from jaxtyping import Array, Float, Int, PRNGKeyArray

from saplan.experiments.result_file import write_result
from saplan.games import GAMES, Game, make_game

ROLLOUT = 64
"""Steps per jitted call."""
HORIZON = 150
"""Steps after which one of our games ends."""
LANES = (1024, 4096)
VECTOR = 16
"""Environments in a Gymnasium vector."""
HOST_STEPS = 64
"""Gymnasium calls between two readings of the clock."""

Play = Callable[[], int]
"""Continues playing for a moment and returns the number of steps."""


@dataclass
class Entry:
    """One world and the rates measured so far."""

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
    """A compiled rollout that continues where the last one ended."""
    compiled = jax.jit(rollout, donate_argnums=1)
    held: dict[str, Any] = {"carry": start, "key": jax.random.key(1)}

    def play() -> int:
        held["key"], key = jax.random.split(held["key"])
        held["carry"], total = compiled(key, held["carry"])
        total.block_until_ready()
        return ROLLOUT * lanes

    return play


def random_actions(key: PRNGKeyArray, lanes: int, count: int) -> Int[Array, "steps lanes"]:
    """Random actions, drawn in the same way for all worlds in JAX."""
    return jax.random.randint(key, (ROLLOUT, lanes), 0, count)


def consumed(*arrays: Array) -> Float[Array, "lanes"]:
    """One number per lane that depends on every element."""
    return sum((jnp.sum(a.reshape(len(a), -1).astype(jnp.float32), axis=1) for a in arrays), jnp.zeros(len(arrays[0])))


def play_ours(game: Game[Any], lanes: int) -> Play:
    """Our game: every lane gets one new map per rollout, and takes it when its game ends."""
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

    # The clocks start spread out, so that every rollout has its share of ends.
    start = jax.jit(reset)(jax.random.split(jax.random.key(0), lanes)), jnp.arange(lanes) % HORIZON
    return jitted(rollout, start, lanes)


def spread(mask: Array, like: Array) -> Array:
    """A mask over lanes, shaped to choose between arrays like `like`."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - 1))


def play_timesteps(reset: Callable[[Array], Any], step: Callable[[Any, Array], Any], actions: int, lanes: int) -> Play:
    """A peer that resets automatically and whose state, observation and reward are one record."""

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
    """Several Farama MiniGrid environments, stepped one after the other and reset by Gymnasium."""

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


def installed_worlds() -> list[Entry]:
    """Our games and the installed peers."""
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
    """Lets all worlds play in turn, several times."""
    for entry in entries:
        begin = time.perf_counter()
        entry.play()
        entry.play()  # the result of a rollout may have weaker types than its start, which compiles it a second time
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
    """How many times faster than the fastest peer in JAX with the same number of lanes."""
    rivals = [other for other in entries if other.kind == "jax" and other.lanes == entry.lanes]
    if entry.kind != "ours" or not rivals:
        return None
    fastest = max(rivals, key=lambda other: other.rate)
    return statistics.median(a / b for a, b in zip(entry.rates, fastest.rates, strict=True))


def main() -> None:
    """Measures all worlds and prints the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=7, help="turns per world")
    parser.add_argument("--seconds", type=float, default=0.4, help="length of a turn")
    options = parser.parse_args()

    facts = setting()
    print(describe(facts), flush=True)
    entries = installed_worlds()
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
    print(text_table(("world", "lanes", "steps/s", "lowest .. highest", "ratio"), rows))
    write_result(options.json, {"setting": facts, "entries": records})


if __name__ == "__main__":
    main()
