"""OGBench's puzzles, Lights Out pressed by a robot arm, trained without any task and evaluated as the benchmark does.

    python examples/ogbench_puzzle.py 4x6 --minutes 12 --seed 0 --out runs/4x6-0

Training draws the arm and all buttons at random (the benchmark's mode for collecting data, which knows no tasks). The
evaluation plays the five tasks of the benchmark, with its limits in control steps and its own `success`.
"""

import argparse
import dataclasses
import functools
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import ogbench

import saplan

LIMITS = {"3x3": 500, "4x4": 500, "4x5": 1000, "4x6": 1000}
MOVES = [(x, y, z, 0, 1) for x, y, z in [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]]
"""A full deflection of the effector along one axis, with the gripper closed."""
HOLD = 2
"""Control steps that a move lasts: about 4 cm."""
FIELDS = ("_cur_button_states", "_target_button_states", "_success")


class Puzzle(saplan.MujocoStates):
    """A puzzle with discrete moves; as the benchmark's `tasks`, or else from random states."""

    def __init__(self, size: str, tasks: bool) -> None:
        mode = "task" if tasks else "data_collection"
        env = ogbench.make_env_and_datasets(f"puzzle-{size}-play-v0", env_only=True, mode=mode)
        super().__init__(saplan.DiscreteMoves(env, MOVES), FIELDS, lambda inner: inner._apply_button_states())
        self.tasks = tasks

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(seed=seed, options={"task_id": 1 + (seed or 0) % 5} if self.tasks else None)


def attributes(observation: Any, info: dict[str, Any], env: Any) -> np.ndarray:
    """The states of the buttons."""
    return info["button_states"]


def puzzle(size: str, processes: int = 2, trained: saplan.GymWorld | None = None) -> saplan.GymWorld:
    """The puzzle as a world for training; with the world that an agent was `trained` in, the benchmark's tasks."""
    rows, columns = map(int, size.split("x"))
    space = saplan.Product.of(**{f"b{r}{c}": saplan.Cyclic(2) for r in range(rows) for c in range(columns)})
    return saplan.gym_world(functools.partial(Puzzle, size, bool(trained)), space, attributes, ["b00=1"], not trained,
                            processes, f"puzzle-{size}", hold=HOLD, normalise=trained or 600)  # fmt: skip


def evaluate(agent: saplan.StructuredAgent, size: str, episodes: int, processes: int = 2) -> np.ndarray:
    """The benchmark's own success of episodes of each of its five tasks."""
    world = puzzle(size, processes, agent.game)
    infos = world.host.player.env.unwrapped.task_infos
    agent = dataclasses.replace(agent, game=world)
    success = []
    for k in range(episodes):
        states = jax.vmap(world.begin)(5 * k + jnp.arange(5))
        wanted = np.array([info["goal_button_states"] for info in infos], np.float32)
        run = agent.executor(states, saplan.Goal(wanted, wanted))
        run.run(LIMITS[size], seed=k)
        success.append(np.asarray(run.state.lost))
    return np.array(success)
