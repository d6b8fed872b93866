"""OGBench's puzzles, Lights Out pressed by a robot arm: trained without any task, evaluated as the benchmark does.

    python examples/ogbench_puzzle.py 4x6 --seed 0 --out runs/ogbench-4x6-0

Training begins with the arm and all buttons drawn at random, which is the benchmark's mode for collecting data and
knows no tasks. The evaluation plays the benchmark's five tasks, with its limits and its own `success`.
"""

import argparse
import dataclasses
import functools
from typing import Any

import gymnasium
import jax
import numpy as np
import ogbench

import saplan

LIMITS = {"3x3": 500, "4x4": 500, "4x5": 1000, "4x6": 1000}
SIDES = [(1, 0, 0.05), (-1, 0, 0.05), (0, 1, 0.05), (0, -1, 0.05)]
# Directions of the effector, with the gripper closed; the arm sinks unless it is told to rise a little, and leans
# forward as it goes down unless it is told to come back a little.
MOVES = [(*direction, 0, 1) for direction in [*SIDES, *SIDES, (0.2, 0, 1), (-0.25, 0, -1)]]
# Control steps of each: one button further, less than half as far, up, and down.
HOLD = [5] * 4 + [2] * 4 + [3, 3]
# Moves of training; and the part of an observation about the effector and the gripper, between joints and buttons.
STEPS, HAND = 80_000, slice(12, 19)
# What a state has besides physics; and what the benchmark computes three times in every step.
FIELDS, ONCE = ("_cur_button_states", "_target_button_states", "_success"), ("compute_ob_info",)
SETTINGS = saplan.StructuredSettings(
    lanes=16, rollout=16, replay=31, replay_size=256, minibatches=128, capacity=64, attempt_steps=20, repeat_cost=0.0,
    rare=0.0005, double=0.1, interleave=0.8, sees_rho=False)  # fmt: skip
# As in training: a press that takes longer than expected is not given up, and actions are drawn as they were learnt.
PLANNER = saplan.PlannerSettings(temperature=None, patience=np.inf, attempt_steps=20)


class Puzzle(saplan.MujocoStates):
    """A puzzle with discrete moves, from random states."""

    mode = "data_collection"

    def __init__(self, size: str) -> None:
        env = ogbench.make_env_and_datasets(f"puzzle-{size}-play-v0", env_only=True, mode=self.mode)
        arm = gymnasium.wrappers.TransformObservation(env, lambda seen: seen[HAND], gymnasium.spaces.Box(-9, 9, (7,)))
        super().__init__(saplan.DiscreteMoves(arm, MOVES), FIELDS, lambda env: env._apply_button_states(), ONCE)


class Tasks(Puzzle):
    """The benchmark's tasks, one after another by seed."""

    mode = "task"

    def task(self, seed: int) -> Any:
        inner: Any = self.unwrapped
        return inner.task_infos[seed % 5]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(seed=seed, options={"task_info": self.task(seed or 0)})


def buttons(observation: Any, info: dict[str, Any], env: Any) -> Any:
    """The attributes."""
    return info["button_states"]


def puzzle(size: str, processes: int = 2, kind: type[Puzzle] = Puzzle, like: Any = 600) -> saplan.GymWorld:
    """The world for training; or, for an agent that was trained in a world `like` this, another kind of it."""
    rows, columns = map(int, size.split("x"))
    space = saplan.Product.of(**{f"b{r}{c}": saplan.Cyclic(2) for r in range(rows) for c in range(columns)})
    return saplan.gym_world(functools.partial(kind, size), space, buttons, ["b00=1"], kind is Puzzle, processes,
                            f"puzzle-{size}", hold=HOLD, normalise=like, waves=3)  # fmt: skip


def evaluate(agent: Any, size: str, episodes: int, kind: type[Puzzle] = Tasks, processes: int = 2) -> np.ndarray:
    """The benchmark's own success of so many episodes."""
    world = puzzle(size, processes, kind, agent.game)
    states = jax.vmap(world.begin)(jax.numpy.arange(episodes))
    host: Any = world.host
    wanted = np.array([host.player.env.task(k)["goal_button_states"] for k in range(episodes)], np.float32)
    execution = dataclasses.replace(agent, game=world).executor(states, saplan.Goal(wanted, wanted), PLANNER)
    execution.run(LIMITS[size], seed=0)
    return np.asarray(execution.state.lost)


def main() -> None:
    """Trains, evaluates and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=LIMITS)
    for name, default in {"--steps": STEPS, "--seed": 0, "--episodes": 50}.items():
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--out", default="runs/ogbench")
    options = parser.parse_args()
    world, bar = puzzle(options.size), saplan.ProgressBar()
    agent = saplan.train(world, options.steps, options.seed, SETTINGS, options.out, eval_points=0, progress=bar)
    success = evaluate(agent, options.size, 5 * options.episodes)
    print(f"{options.size}: success {success.mean():.1%}, by task {success.reshape(-1, 5).mean(axis=0)}")


if __name__ == "__main__":
    main()
