"""OGBench's scene: two buttons that lock a drawer and a window, and a cube that the agent is not told about.

    python examples/ogbench_scene.py --seed 0 --out runs/ogbench-scene-0

The arm makes the moves of `ogbench_puzzle.py`, with its gripper closed. So it can press, pull and push, but not grasp:
two of the benchmark's five tasks do without the cube. Training begins from random states and knows no tasks.
"""

import argparse
import dataclasses
from typing import Any

import gymnasium
import jax
import numpy as np
import ogbench
import ogbench_puzzle as puzzle

import saplan

LIMIT = 750
LABELS = ("closed", "between", "open")
# The effector, the gripper, the drawer and the window, out of an observation that also shows joints, cube and buttons.
SEEN = [*range(12, 19), 36, 38]
FIELDS = ("_cur_button_states", "_target_button_states", "_target_drawer_pos", "_target_window_pos", "_success")
# The way to a change depends on ρ here: a locked drawer does not move.
SETTINGS = dataclasses.replace(puzzle.SETTINGS, sees_rho=True, attempt_steps=24, capacity=32)
PLANNER = dataclasses.replace(puzzle.PLANNER, attempt_steps=24)
STEPS = 120_000


class Scene(saplan.MujocoStates):
    """The scene with discrete moves, from random states."""

    mode = "data_collection"

    def __init__(self) -> None:
        env = ogbench.make_env_and_datasets("scene-play-v0", env_only=True, mode=self.mode)
        box = gymnasium.spaces.Box(-99, 99, (len(SEEN),))
        seen = gymnasium.wrappers.TransformObservation(env, lambda numbers: numbers[SEEN], box)
        moves = saplan.DiscreteMoves(seen, puzzle.MOVES)
        super().__init__(moves, FIELDS, lambda env: env._apply_button_states(), puzzle.ONCE)


class Tasks(Scene):
    """The benchmark's tasks, one after another by seed."""

    mode = "task"

    def task(self, seed: int) -> Any:
        inner: Any = self.unwrapped
        return inner.task_infos[seed % 5]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(seed=seed, options={"task_info": self.task(seed or 0)})


def label(share: float, tolerance: float) -> float:
    """Closed or open within the benchmark's tolerance, or between."""
    return 0.0 if share <= tolerance else 2.0 if share >= 1 - tolerance else 1.0


def attributes(buttons: Any, drawer: float, window: float) -> list[float]:
    """ρ of two button states and two positions; the drawer opens by 16 cm and the window by 20."""
    return [*map(float, buttons), label(-drawer / 0.16, 0.25), label(window / 0.2, 0.2)]


def read(observation: Any, info: dict[str, Any], env: Any) -> list[float]:
    """ρ now."""
    slides = (info[f"privileged/{name}_pos"][0] for name in ("drawer", "window"))
    return attributes(info["button_states"], *slides)


def scene(processes: int = 2, kind: type[Scene] = Scene, like: Any = 600) -> saplan.GymWorld:
    """The world for training; or, for an agent that was trained in a world `like` this, another kind of it."""
    locks = {"drawer_lock": saplan.Cyclic(2), "window_lock": saplan.Cyclic(2)}
    space = saplan.Product.of(**locks, drawer=saplan.Categorical(LABELS), window=saplan.Categorical(LABELS))
    return saplan.gym_world(kind, space, read, ["drawer=open"], kind is Scene, processes, "scene", hold=puzzle.HOLD,
                            normalise=like, waves=3)  # fmt: skip


def evaluate(agent: Any, episodes: int, processes: int = 2) -> np.ndarray:
    """The benchmark's own success of so many episodes, the five tasks in turn."""
    world = scene(processes, Tasks, agent.game)
    states = jax.vmap(world.begin)(jax.numpy.arange(episodes))
    host: Any = world.host
    goals = [host.player.env.task(k)["goal"] for k in range(episodes)]
    rho = [attributes(goal["button_states"], goal["drawer_pos"], goal["window_pos"]) for goal in goals]
    wanted = np.array(rho, np.float32)
    execution = dataclasses.replace(agent, game=world).executor(states, saplan.Goal(wanted, wanted), PLANNER)
    execution.run(LIMIT, seed=0)
    return np.asarray(execution.state.lost)


def main() -> None:
    """Trains, evaluates and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"--steps": STEPS, "--seed": 0, "--episodes": 50}.items():
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--out", default="runs/ogbench-scene")
    options = parser.parse_args()
    world, bar = scene(), saplan.ProgressBar()
    agent = saplan.train(world, options.steps, options.seed, SETTINGS, options.out, eval_points=0, progress=bar)
    success = evaluate(agent, 5 * options.episodes)
    print(f"scene: by task {success.reshape(-1, 5).mean(axis=0)}")


if __name__ == "__main__":
    main()
