"""Where the time of one training update goes, and how it grows.

    taskset -c 0 python benchmarks/update_parts.py --json results/update-parts.json
    taskset -c 0 python benchmarks/update_parts.py --growth --json results/update-growth.json

The parts of an update are compiled and timed by themselves, at the default settings and after so many updates that 𝓑
is full; a part's time is the least of many runs, on an otherwise busy machine too. Compiled together they share some
work, so that the whole can be less than the sum. With `--growth`, one whole update is timed for several numbers of
lanes, of transitions in 𝓑, of attributes and of hidden units; its memory is what the compiled program asks for. A
synthetic 𝓑 fills the memory there: the cost of an update does not depend on what the transitions are.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from common import describe, make_parser, progress, setting, text_table

from saplan.experiments.result_file import write_result
from saplan.games import GAMES, Game, make_game
from saplan.methods.structured.learner import Structured, StructuredKnowledge
from saplan.methods.structured.settings import StructuredSettings, structured_settings
from saplan.methods.targets import value_rollout
from saplan.methods.update import Learner, improve_q, scaled_reward, train_chunk
from saplan.rl.optim import descend, shuffle

METHOD = Structured()
HORIZON = 10_000
WARM_UP = 24
GROWTH: dict[str, list[int]] = {
    "lanes": [64, 256, 1024], "transitions": [8, 16, 32, 64], "attributes": [5, 9, 13], "hidden": [64, 128, 256]
}  # fmt: skip


def least_time(function: Callable[..., Any], *arguments: Any, seconds: float = 1.0) -> float:
    """Seconds of the fastest of many runs."""
    jax.block_until_ready(function(*arguments))
    least, ends = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < ends:
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        least = min(least, time.perf_counter() - began)
    return least


def warmed_up(game: Game[Any], settings: StructuredSettings) -> Learner[StructuredKnowledge]:
    """A learner whose 𝓑 is full."""
    learner = METHOD.begin(game, settings, jax.random.key(0))
    return train_chunk(METHOD, game, settings, HORIZON, WARM_UP, WARM_UP, learner)[0]


def measure_parts(name: str, seconds: float) -> list[dict[str, Any]]:
    """The parts of an update of one game."""
    game = make_game(name)
    settings, key = structured_settings(game), jax.random.key(1)
    learner = warmed_up(game, settings)
    play = eqx.filter_jit(lambda learner: METHOD.play(game, settings, learner, key))
    rollout = play(learner)

    def know(learner: Any, rollout: Any) -> Any:
        learnt = METHOD.learn(game, settings, learner, rollout, key)
        return learnt.knowledge, learnt.reward

    def judge(learner: Any, rollout: Any) -> Any:
        learnt = METHOD.learn(game, settings, learner, rollout, key)
        reward, _ = scaled_reward(learner, rollout.trajectory, learnt.reward)
        values = value_rollout(game, settings, learner.policy, rollout)
        return learnt.knowledge, learnt.targets(values, reward)

    def improve(learner: Any, rollout: Any, batches: Any) -> Any:
        learnt = METHOD.learn(game, settings, learner, rollout, key)
        reward, _ = scaled_reward(learner, rollout.trajectory, learnt.reward)
        targets = learnt.targets(value_rollout(game, settings, learner.policy, rollout), reward)
        steps = lambda loss: descend(loss, learner.policy, learner.policy_moments, 1e-3, batches)  # noqa: E731
        return learnt.knowledge, improve_q(steps, *targets)

    order = jax.jit(partial(shuffle, settings, size=settings.lanes * settings.rollout))
    batches = order(key)
    update = eqx.filter_jit(lambda learner: METHOD.update(game, settings, HORIZON, learner))
    timed = partial(least_time, seconds=seconds)
    knowing = timed(eqx.filter_jit(know), learner, rollout)
    judging = timed(eqx.filter_jit(judge), learner, rollout)
    parts = {
        "rollout": timed(play, learner),
        "memory and edge detector": knowing,
        "values and targets": judging - knowing,
        "shuffles": timed(order, key),
        "gradient steps": timed(eqx.filter_jit(improve), learner, rollout, batches) - judging,
        "whole update": timed(update, learner),
    }
    progress(f"{name}: " + ", ".join(f"{part} {1000 * spent:.1f} ms" for part, spent in parts.items()))
    known = int(learner.knowledge.memory.size)
    return [{"game": name, "transitions": known, "part": part, "seconds": spent} for part, spent in parts.items()]


def full_memory(learner: Learner[StructuredKnowledge], known: int) -> Learner[StructuredKnowledge]:
    """The learner with a synthetic 𝓑 of so many transitions."""
    memory = learner.knowledge.memory
    rows = jnp.arange(memory.key.size, dtype=jnp.float32).reshape(memory.key.shape) % 7 - 3
    full = replace(memory, key=rows, delta=rows, seen=memory.seen + 100, size=jnp.int32(known))
    filled: Learner[StructuredKnowledge] = eqx.tree_at(lambda x: x.knowledge.memory, learner, full)
    return filled


def measure_growth(what: str, number: int, seconds: float) -> list[dict[str, Any]]:
    """Time and memory of an update of exchange with one number changed."""
    game = make_game("exchange") if what != "attributes" else make_game("switches", kinds=number // 2)
    settings = structured_settings(game)
    sizes = {"lanes": "lanes", "transitions": "capacity", "hidden": "hidden"}
    if what in sizes:
        changes: dict[str, Any] = {sizes[what]: number}
        settings = replace(settings, **changes)
    learner = full_memory(METHOD.begin(game, settings, jax.random.key(0)), number if what == "transitions" else 12)
    arrays, rest = eqx.partition(learner, eqx.is_array)
    update = jax.jit(lambda arrays: METHOD.update(game, settings, HORIZON, eqx.combine(arrays, rest)))
    compiled = update.lower(arrays).compile()
    memory: Any = compiled.memory_analysis()
    needed = memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes
    spent = least_time(compiled, arrays, seconds=seconds)
    steps = settings.lanes * settings.rollout
    progress(f"{what} {number}: {1000 * spent:.1f} ms, {needed / 1e6:.0f} MB")
    return [{"what": what, "number": number, "attributes": game.space.size, "seconds": spent, "steps": steps,
             "seconds_per_step": spent / steps, "bytes": needed}]  # fmt: skip


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures all parts or all sizes; the result is saved after each."""
    result: dict[str, Any] = {"setting": setting(), "entries": []}
    print(describe(result["setting"]), flush=True)
    cases: list[Callable[[], Any]] = [partial(measure_parts, name, options.seconds) for name in options.games]
    if options.growth:
        pairs = [(what, number) for what, numbers in GROWTH.items() for number in numbers]
        cases = [partial(measure_growth, what, number, options.seconds) for what, number in pairs]
    for case in cases:
        result["entries"] += case()
        write_result(options.json, result)
    return result


def main() -> None:
    """Measures and prints a table."""
    parser = make_parser(__doc__)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=["switches", "exchange", "mining"])
    parser.add_argument("--growth", action="store_true", help="whole updates by their sizes")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for every measurement")
    entries = run(parser.parse_args())["entries"]
    rows = [[str(value) for value in entry.values()] for entry in entries]
    print(text_table(list(entries[0]), rows))


if __name__ == "__main__":
    main()
