"""OGBench's puzzles, Lights Out pressed by a robot arm: trained without any task, evaluated as the benchmark does.

    python examples/ogbench_puzzle.py 4x6 --seed 0 --out runs/4x6-0 --json results/ogbench-4x6-0.json

Training begins with the arm and all buttons drawn at random, which is the benchmark's mode for collecting data and
knows no tasks. The evaluation plays the benchmark's five tasks, with its limits and its own `success`.
"""

import argparse
import dataclasses
import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import ogbench

import saplan

LIMITS = {"3x3": 500, "4x4": 500, "4x5": 1000, "4x6": 1000}
SIDES = [(1, 0, 0.05), (-1, 0, 0.05), (0, 1, 0.05), (0, -1, 0.05)]
# Directions of the effector, with the gripper closed; the arm sinks unless it is told to rise a little.
MOVES = [(*direction, 0, 1) for direction in [*SIDES, *SIDES, (0, 0, 1), (0, 0, -1)]]
# Control steps of each: one button further, less than half as far, up, and down.
HOLD = [5] * 4 + [2] * 4 + [3, 3]
FIELDS = ("_cur_button_states", "_target_button_states", "_success")
SETTINGS = saplan.StructuredSettings(
    lanes=32, rollout=16, replay=15, replay_size=128, minibatches=128, attempt_steps=20, repeat_cost=0.0,
    capacity=64, rare=0.005,
)  # fmt: skip


class Puzzle(saplan.MujocoStates):
    """A puzzle with discrete moves: from random states, or the benchmark's tasks in turn."""

    def __init__(self, size: str, tasks: bool) -> None:
        mode = "task" if tasks else "data_collection"
        env = ogbench.make_env_and_datasets(f"puzzle-{size}-play-v0", env_only=True, mode=mode)
        super().__init__(saplan.DiscreteMoves(env, MOVES), FIELDS, lambda inner: inner._apply_button_states())
        self.tasks = tasks

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(seed=seed, options={"task_id": 1 + (seed or 0) % 5} if self.tasks else None)


def buttons(observation: Any, info: dict[str, Any], env: Any) -> Any:
    """The attributes."""
    return info["button_states"]


def puzzle(size: str, processes: int = 2, trained_in: saplan.GymWorld | None = None) -> saplan.GymWorld:
    """The world for training, or that of the benchmark's tasks for an agent that was trained in another."""
    rows, columns = map(int, size.split("x"))
    space = saplan.Product.of(**{f"b{r}{c}": saplan.Cyclic(2) for r in range(rows) for c in range(columns)})
    make = functools.partial(Puzzle, size, trained_in is not None)
    return saplan.gym_world(make, space, buttons, ["b00=1"], trained_in is None, processes, f"puzzle-{size}",
                            hold=HOLD, normalise=trained_in or 600)  # fmt: skip


def evaluate(agent: Any, size: str, episodes: int, processes: int = 2) -> list[float]:
    """Success in each of the benchmark's five tasks."""
    world = puzzle(size, processes, agent.game)
    states = jax.vmap(world.begin)(jnp.arange(5 * episodes))
    tasks = world.host.player.env.unwrapped.task_infos * episodes
    wanted = np.array([task["goal_button_states"] for task in tasks], np.float32)
    execution = dataclasses.replace(agent, game=world).executor(states, saplan.Goal(wanted, wanted))
    execution.run(LIMITS[size], seed=0)
    return np.asarray(execution.state.lost).reshape(-1, 5).mean(axis=0).tolist()


def main() -> None:
    """Trains or resumes, evaluates, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=LIMITS)
    parser.add_argument("--steps", type=int, default=200_000, help="moves of training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/ogbench"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    config = saplan.run_config(puzzle(options.size, options.processes), options.steps, options.seed, SETTINGS)
    run = saplan.RunOptions(progress=saplan.ProgressBar())
    (agent,) = saplan.train_runs([config], [options.out], run, resume=True)
    success = evaluate(agent, options.size, options.episodes, options.processes)
    print(f"{options.size}: {np.mean(success):.1%} of the tasks, {success}")
    saplan.write_result(options.json, {"size": options.size, "seed": options.seed, "success": success}, "ogbench")


if __name__ == "__main__":
    main()
