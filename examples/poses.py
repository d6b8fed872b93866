"""MiniGrid's pose as one attribute, against position and direction apart: any pose of an empty room as a goal.

    python examples/poses.py --seeds 3 --json results/poses.json

All agents see the same cells around them. For those with a pose, changes are taken in the agent's own frame: a step
forward is one change, and with the two turns there are three. For the others a step is another change for every
direction, and with the two turns there are six. An agent that knows its place learns where the walls of its room are,
which another room does not have; `anywhere` marks the place as homogeneous, so that only the cells in sight decide
which steps are possible. Prints the size of 𝓑, success on random poses during training, and success in a room twice as
large.
"""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from mini_grid import Around, where
from minigrid.envs.empty import EmptyEnv

import saplan
from saplan import Cyclic, Homogeneous, Natural, Product

INNER = 6
"""Cells along a side of the room that agents are trained in."""
POSES = 60
"""Goals per room."""
BUDGET = 60
PLACE = Natural(bins=16)
APART = Product.of(x=PLACE, y=PLACE, direction=Cyclic(4))
ANYWHERE = Product.of(x=Homogeneous(PLACE), y=Homogeneous(PLACE), direction=Cyclic(4))
SPACES = {
    "pose": APART.with_pose("x", "y", "direction"),
    "apart": APART,
    "pose, anywhere": ANYWHERE.with_pose("x", "y", "direction"),
    "apart, anywhere": ANYWHERE,
}
SETTINGS = saplan.StructuredSettings(lanes=64, minibatches=8)


def goals(inner: int) -> tuple[str, ...]:
    """Random poses in a room, the same ones for both spaces."""
    rng = np.random.default_rng(inner)
    poses = rng.integers((1, 1, 0), (inner + 1, inner + 1, 4), (POSES, 3))
    return tuple(f"x={x} y={y} direction={heading}" for x, y, heading in poses)


def attributes(observation: Any, info: dict[str, Any], env: Any) -> tuple[float, ...]:
    """Position and direction."""
    return where(env)


def room(space: str, inner: int) -> saplan.GymWorld:
    """An empty room with a random start."""

    def make() -> Any:
        return Around(EmptyEnv(size=inner + 2, agent_start_pos=None, max_steps=10**6), reach=2)

    return saplan.gym_world(make, SPACES[space], attributes, goals(inner), endless=True, name=f"empty-{inner}")


def pose_world() -> saplan.GymWorld:
    """The room with the pose as one attribute, for `saplan check`."""
    return room("pose", INNER)


def trained(space: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Success of one agent in its room, during and after training, and in the larger room."""
    world, curve = room(space, INNER), list[tuple[int, float]]()

    def show(progress: saplan.Progress) -> None:
        if progress.evaluated and progress.success is not None:
            curve.append((progress.steps, progress.success))

    points = {"eval_points": options.points, "eval_tasks": options.tasks}
    agent: Any = saplan.train(world, options.steps, seed, SETTINGS, progress=show, **points)
    success = saplan.evaluate(agent, options.tasks, budget=BUDGET).success
    larger = dataclasses.replace(agent, game=room(space, 2 * INNER))
    return {
        "space": space,
        "seed": seed,
        "changes": int(agent.memory.size),
        "success": round(float(success.mean()), 4),
        "curve": curve,
        "steps_to_95": next((steps for steps, share in curve if share >= 0.95), None),
        "twice_as_large": round(float(saplan.evaluate(larger, options.tasks, budget=2 * BUDGET).success.mean()), 4),
    }


def main() -> None:
    """Trains, evaluates, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=65_536)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--points", type=int, default=6, help="evaluations during training")
    parser.add_argument("--spaces", nargs="*", default=list(SPACES), choices=list(SPACES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in range(options.seeds):
        for space in options.spaces:
            rows.append(trained(space, seed, options))
            print(rows[-1], flush=True)
            about = {
                "steps": options.steps,
                "tasks": options.tasks,
                "room": INNER,
                "settings": "lanes=64 minibatches=8",
            }
            saplan.write_result(options.json, {**about, "rows": rows}, "minigrid")


if __name__ == "__main__":
    main()
