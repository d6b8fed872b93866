"""OGBench's puzzles, measured: the five tasks, the learnt changes against the rule, other goals, unreachable goals.

    python benchmarks/puzzles.py 4x6 --seed 0 --out runs/4x6-0 --json results/ogbench/4x6-0.json

Trains with the world and the settings of `examples/ogbench_puzzle.py`, or continues an interrupted training, and
measures the agent. `--agent` measures a saved agent instead.
"""

import argparse
import dataclasses
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import saplan
from saplan.planning.certificate import unreachable_because
from saplan.planning.checker import check
from saplan.planning.modular import eliminate
from saplan.planning.problem import Problem
from saplan.planning.proof import find_certificate
from saplan.planning.search import Outcome

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import ogbench_puzzle as example

FIRST_GOAL = 10_000
"""Seed of the first random goal, far from those of the tasks."""


def rule(size: str) -> np.ndarray:
    """The change of every button by the rules: itself and its neighbours."""
    rows, columns = map(int, size.split("x"))
    places = np.array([(r, c) for r in range(rows) for c in range(columns)])
    return (np.abs(places[:, None] - places[None]).sum(axis=-1) <= 1).astype(int)


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


def measure(agent: saplan.StructuredAgent, options: argparse.Namespace) -> dict[str, Any]:
    """Everything that is measured of one agent."""
    size, processes = options.size, options.processes
    began = time.monotonic()
    success = example.evaluate(agent, size, 5 * options.episodes, processes=processes)
    tasks_seconds = time.monotonic() - began
    others = example.evaluate(agent, size, options.goals, OtherGoals, processes)
    memory = agent.memory
    tried = [int(x) for x in np.asarray(memory.tried)[: int(memory.size)]]
    return {
        "success": float(success.mean()),
        "success_by_task": success.reshape(-1, 5).mean(axis=0).tolist(),
        "episodes": int(success.size),
        "seconds": round(tasks_seconds, 1),
        "other_goals": {"goals": options.goals, "success": float(others.mean())},
        "changes": learnt_changes(agent, size),
        "random_states": unreachable(agent, size, options.goals),
        "attempts": sum(tried),
    }


def main() -> None:
    """Trains, measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=example.LIMITS)
    parser.add_argument("--steps", type=int, default=example.STEPS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=50, help="of each of the five tasks")
    parser.add_argument("--goals", type=int, default=200, help="random goals")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--agent", type=Path, help="a saved agent, in place of training")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world = example.puzzle(options.size, options.processes)
    began = time.monotonic()
    if options.agent:
        agent: Any = saplan.load(options.agent, world)
    else:
        config = saplan.run_config(world, options.steps, options.seed, example.SETTINGS, "structured", 4, 0)
        run = saplan.RunOptions(progress=lambda now: print(now.line(), flush=True), chunk=8)
        (agent,) = saplan.train_runs([config], [options.out], run, resume=True)
    seconds = round(time.monotonic() - began, 1)
    result = {"size": options.size, "seed": options.seed, "moves": options.steps, "training_seconds": seconds}
    result |= measure(agent, options)
    print(result, flush=True)
    saplan.write_result(options.json, result, "ogbench", "mujoco")


if __name__ == "__main__":
    main()
