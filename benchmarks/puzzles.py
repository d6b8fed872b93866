"""OGBench's puzzles, measured: the five tasks, the learnt changes against the rule, other goals, unreachable goals.

    python benchmarks/puzzles.py 4x6 --seed 0 --out runs/4x6-0 --json results/ogbench/4x6-0.json

Trains with the world and the settings of `examples/ogbench_puzzle.py`, for at most `--minutes`, and measures the agent.
`--parts` says what is measured; `--agent` measures the agent of such a directory, also on another machine, and adds to
what the JSON file says already. `--resume` continues a training from the last checkpoint in `--out`, if there is one,
also on another machine. With `--space auto` the world says of no button what its algebra is: random moves decide it
before training.
"""

import argparse
import dataclasses
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

import saplan
from saplan.envs.player import Snapshot
from saplan.envs.snapshots import Kept
from saplan.planning.certificate import unreachable_because
from saplan.planning.modular import eliminate
from saplan.planning.problem import Problem
from saplan.planning.proof import find_certificate
from saplan.planning.proof_checker import check
from saplan.planning.route import Outcome
from saplan.storage.json_data import read_json, write_json
from saplan.training.checkpoint import Checkpoint, Checkpoints, HostState
from saplan.training.loop import Loop
from saplan.training.provenance import provenance
from saplan.training.store import save_agent

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import ogbench_puzzle as example

STEPS = {"3x3": 50_000, "4x4": 80_000, "4x5": 100_000, "4x6": 300_000}
"""Moves of a training, unless `--steps` says how many."""
FIRST_GOAL = 10_000
"""Seed of the first random goal, far from those of the tasks."""
SPARE = 0.97
"""Share of the time that is left to which the number of updates is fitted: they become slower as 𝓑 grows."""
PARTS = ("tasks", "states", "goals")
"""What can be measured: the five tasks, plans between random states, and random reachable goals."""
SAVED = "training.json"
"""What is known of a training, beside its agent."""
SAVE_EVERY = 1.0
"""Minutes between two savings of a training."""
MACHINE = ("moves", "seconds", "cores", "processes", "code", "hardware", "versions")
"""What is known of a part of a training that was interrupted after it."""


def rule(size: str) -> np.ndarray:
    """The change of every button by the rules: itself and its neighbours."""
    rows, columns = map(int, size.split("x"))
    places = np.array([(r, c) for r in range(rows) for c in range(columns)])
    near: np.ndarray = np.abs(places[:, None] - places[None]).sum(axis=-1) <= 1
    return near.astype(int)


def states(size: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random button states, random states reachable from them, and the random states of any kind."""
    rng, changes = np.random.default_rng(seed), rule(size)
    start, presses, anything = rng.integers(0, 2, (3, len(changes)))
    return start, (start + presses @ changes) % 2, anything


class OtherGoals(example.Tasks):
    """Random starts and random reachable goals in place of the benchmark's tasks."""

    def task(self, seed: int) -> dict[str, Any]:
        env: Any = self.unwrapped
        start, goal, _ = states(env._env_type, FIRST_GOAL + seed)
        return {"task_name": "random", "init_button_states": start, "goal_button_states": goal}


def learnt_changes(agent: saplan.StructuredAgent, size: str) -> dict[str, float]:
    """The changes that plans use, and all of 𝓑, against the rule."""
    true = {tuple(row) for row in rule(size).tolist()}
    deltas = [tuple(row) for row in np.asarray(agent.memory.delta).astype(int).tolist()]
    planned = {delta for delta, trusted in zip(deltas, np.asarray(agent.trusted), strict=True) if trusted}
    everything = set(deltas[: int(agent.memory.size)])
    return {
        "planned": len(planned),
        "precision": len(planned & true) / max(len(planned), 1),
        "recall": len(planned & true) / len(true),
        "seen": len(everything),
        "precision_of_all_seen": len(everything & true) / max(len(everything), 1),
    }


def unreachable(agent: saplan.StructuredAgent, size: str, count: int) -> dict[str, Any]:
    """How many of some random pairs of states are refused, rightly and with a certificate that the checker accepts."""
    space, changes = agent.game.space, rule(size)
    found = {"goals": count, "reachable": 0, "planned": 0, "unreachable": 0, "refused": 0, "certified": 0}
    seconds, words = [], ""
    state = jax.jit(agent.game.reset)(jax.random.key(0))
    for seed in range(count):
        start, _, goal = states(size, 2 * FIRST_GOAL + seed)
        possible = eliminate(changes.T.astype(np.int64), (goal - start) % 2, 2) is not None
        wanted = saplan.Goal(goal.astype(np.float32), goal.astype(np.float32))
        here = dataclasses.replace(state, rho=jnp.asarray(start, jnp.float32))
        began = time.monotonic()
        outcome = agent.plan(here, wanted).outcome
        seconds.append(time.monotonic() - began)
        found["reachable" if possible else "unreachable"] += 1
        if possible:
            found["planned"] += outcome is Outcome.FOUND
            continue
        found["refused"] += outcome is Outcome.UNREACHABLE
        costs = np.where(np.asarray(agent.trusted), 1.0, np.inf)
        problem = Problem(space, start.astype(float), goal, goal, np.asarray(agent.memory.delta, float), costs)
        certificate = find_certificate(problem)
        found["certified"] += certificate is not None and check(problem, certificate)
        words = words or unreachable_because(problem) or ""
    return {**found, "median_seconds_per_plan": float(np.median(seconds)), "example": words}


def find_space(options: argparse.Namespace) -> dict[str, Any]:
    """The algebra of every button, by random moves in a world where all of them are integers."""
    declared, began = example.puzzle(options.size, 0).space, time.monotonic()
    raw = saplan.Product.of(**dict.fromkeys(declared.names, saplan.Integer()))
    make = functools.partial(example.Puzzle, options.size)
    world = saplan.gym_world(make, raw, example.buttons, ["b00=1"], True, hold=example.HOLD)
    found = saplan.suggest_space(world, options.play, options.seed, lanes=32)
    print("\n".join(found.lines()), flush=True)
    seconds = round(time.monotonic() - began, 1)
    return {"moves": found.steps, "seconds": seconds, "found": str(found.space), "is_declared": found.space == declared}


def fit_updates(loop: Loop, most: int, seconds: float, each: float) -> None:
    """Plans as many updates as the time allows, at most all: the learning rate falls until the last one."""
    updates: Any = jnp.int32(min(most, loop.done + max(1, int(SPARE * seconds / each))))
    loop.updates = updates  # an array: another number needs no other program


def train(
    world: saplan.GymWorld, settings: saplan.StructuredSettings, options: argparse.Namespace, result: dict[str, Any]
) -> tuple[saplan.StructuredAgent, dict[str, Any]]:
    """Trains until all moves are made or the time is up, and saves agent and checkpoint every minute."""
    config = saplan.run_config(world, options.steps, options.seed, settings, "structured", 0, 0)
    loop, began = Loop([config], 8), time.monotonic()
    most, each = loop.updates, 1e-9
    curve: list[list[float]] = []
    parts: dict[str, Any] = {}
    if options.resume:
        known = resume(world, config, loop, options.out)
        curve = [point for point in known["curve"] if point[0] <= loop.done * loop.per_update]
        parts = {"earlier": [*known.get("earlier", []), {name: known[name] for name in MACHINE}]}
        began, each = began - curve[-1][1], curve[-1][1] / loop.done
    ends, saved = began + 60 * options.minutes, time.monotonic()
    fit_updates(loop, most, ends - saved, each)
    before = saved
    while loop.done < int(loop.updates) and time.monotonic() < ends:
        (progress,) = loop.chunk()
        now, loop.done = time.monotonic(), int(loop.done)
        curve.append([loop.done * loop.per_update, round(now - began, 1), progress.attempt_success, progress.known])
        print(f"{now - began:.0f} s of {60 * options.minutes:.0f}, {progress.line()}", flush=True)
        if loop.chunks > 1:  # the first chunk was compiled
            fit_updates(loop, most, ends - now, (now - before) / loop.size)
        before = now
        if now - saved > 60 * SAVE_EVERY:
            saved = now
            save(world, config, loop, curve, options, result, parts)
    return save(world, config, loop, curve, options, result, {**parts, "complete": True})


def save(
    world: saplan.GymWorld,
    config: Any,
    loop: Loop,
    curve: list[list[float]],
    options: argparse.Namespace,
    result: dict[str, Any],
    parts: dict[str, Any],
) -> tuple[saplan.StructuredAgent, dict[str, Any]]:
    """Saves the agent as it is, what is known of its training, and a checkpoint."""
    (agent,) = loop.agents()
    assert isinstance(agent, saplan.StructuredAgent)
    save_agent(options.out, agent, config)
    reader: Any = world.host.reader
    training = {
        "moves": loop.done * loop.per_update,
        "seconds": curve[-1][1],
        "last_attempts": float(np.mean([point[2] for point in curve[-4:]])),
        "cores": len(os.sched_getaffinity(0)),
        "processes": options.processes,
        **provenance("ogbench", "mujoco"),
        **parts,
        "settings": vars(config.settings),
        "curve": curve,
    }
    reading = {"mean": reader.mean.tolist(), "deviation": reader.deviation.tolist()}
    write_json(options.out / SAVED, {**result, "training": training, "reading": reading})
    host = HostState(0, 0, None, 0, curve[-1][1])
    checkpoint = Checkpoint(loop.done, loop.learner, host, simulations(world, loop.learner.lanes.state))
    Checkpoints(options.out, config.to_json()).save(checkpoint)
    return agent, training


def positions(state: Any) -> list[tuple[int, ...]]:
    """Ticket, clock and path of every lane."""
    columns = (np.asarray(column).tolist() for column in (state.ticket, state.clock, state.path))
    return list(zip(*columns, strict=True))


def simulations(world: saplan.GymWorld, state: Any) -> dict[str, np.ndarray]:
    """The simulation of every lane as it is now: to replay all moves would take as long as the training."""
    host: Any = world.host
    kept = [host.kept[position] for position in positions(state)]
    found = {name: np.stack([getattr(each.snapshot, name) for each in kept]) for name in Snapshot._fields}
    return {"state": np.stack([each.state for each in kept]), **found}


def resume(world: saplan.GymWorld, config: Any, loop: Loop, directory: Path) -> dict[str, Any]:
    """Takes a training up where its newest checkpoint was saved; returns what is known of it until then."""
    checkpoints = Checkpoints(directory, config.to_json())
    found = checkpoints.load(checkpoints.names()[0], loop.outline())
    loop.learner, loop.done = found.learner, found.updates
    host: Any = world.host
    for k, position in enumerate(positions(found.learner.lanes.state)):
        snapshot = Snapshot(*(found.world[name][k] for name in Snapshot._fields))
        host.kept[position] = Kept(found.world["state"][k], snapshot, None)
    known: dict[str, Any] = read_json(directory / SAVED)["training"]
    return known


def training_world(
    make: Callable[..., saplan.GymWorld], options: argparse.Namespace, result: dict[str, Any]
) -> saplan.GymWorld:
    """The world of a training; if it is resumed, with what is known of it. A complete one is only measured again."""
    options.resume = bool(options.resume and not options.agent and Checkpoints(options.out, {}).names())
    if options.resume and read_json(options.out / SAVED)["training"].get("complete"):
        options.agent, options.resume = options.out, False
    if not options.resume:
        return make(0 if options.agent else options.processes)
    like = make(0)
    known = read_as_before(like, options.out)
    result.update({name: value for name, value in known.items() if name not in ("training", *result)})
    return make(options.processes, like=like)


def read_as_before(world: saplan.GymWorld, directory: Path) -> dict[str, Any]:
    """Has a world read observations as in the training in a directory; returns what is known of that training."""
    known, reader = read_json(directory / SAVED), cast(Any, world.host.reader)
    reader.mean, reader.deviation = (np.array(known["reading"][name]) for name in ("mean", "deviation"))
    return {name: value for name, value in known.items() if name != "reading"}


def saved_agent(world: saplan.GymWorld, directory: Path) -> tuple[Any, dict[str, Any]]:
    """A saved agent, and what is known of its training; the world reads observations as it did then."""
    known = read_as_before(world, directory)
    return saplan.load(directory, world), known


def measurements(agent: saplan.StructuredAgent, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What is measured of one agent, part by part."""
    size, processes, began = options.size, options.processes, time.monotonic()
    yield {"changes": learnt_changes(agent, size)}
    if "tasks" in options.parts:
        success = example.evaluate(agent, size, 5 * options.episodes, processes=processes)
        yield {
            "success": float(success.mean()),
            "success_by_task": success.reshape(-1, 5).mean(axis=0).tolist(),
            "episodes": int(success.size),
            "evaluation_seconds": round(time.monotonic() - began, 1),
        }
    if "states" in options.parts:
        yield {"random_states": unreachable(agent, size, options.goals)}
    if "goals" in options.parts:
        others = example.evaluate(agent, size, options.goals, OtherGoals, processes)
        yield {"other_goals": {"goals": options.goals, "success": float(others.mean())}}


def main() -> None:
    """Trains, measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=example.LIMITS)
    parser.add_argument("--steps", type=int, help=f"moves of training, at most; else {STEPS}")
    parser.add_argument("--minutes", type=float, default=60.0, help="of training, at most; 0 ends before it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=50, help="of each of the five tasks")
    parser.add_argument("--goals", type=int, default=200, help="random goals")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/puzzle"), help="directory for the agent")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS, help="what is measured")
    parser.add_argument("--agent", type=Path, help="the directory of a saved agent, in place of training")
    parser.add_argument("--resume", action="store_true", help="continue the training in --out, if there is one")
    parser.add_argument("--space", choices=("declared", "auto"), default="declared")
    parser.add_argument("--play", type=int, default=6_000, help="random moves that decide the algebra")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.steps = options.steps or STEPS[options.size]
    result: dict[str, Any] = {"size": options.size, "seed": options.seed, "cores": len(os.sched_getaffinity(0))}
    world = training_world(functools.partial(example.puzzle, options.size), options, result)
    if options.space == "auto" and not (options.agent or options.resume):
        result["space"] = find_space(options)
        saplan.write_result(options.json, result, "ogbench", "mujoco")
        if not result["space"]["is_declared"]:
            raise SystemExit(f"another space was found: {result['space']['found']}")
    if not options.minutes:
        return
    if options.agent:
        agent, known = saved_agent(world, options.agent)
        before = read_json(options.json) if options.json and options.json.exists() else {}
        result = {**known, **before, "evaluation_cores": result["cores"]}
    else:
        agent, result["training"] = train(world, example.SETTINGS, options, result)
    for part in measurements(agent, options):
        result |= part
        print(part, flush=True)
        saplan.write_result(options.json, result, "ogbench", "mujoco")


if __name__ == "__main__":
    main()
