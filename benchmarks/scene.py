"""OGBench's scene, measured: success per task, and the transitions that were learnt.

    python benchmarks/scene.py --seed 0 --out runs/scene-0 --json results/ogbench/scene-0.json

Trains with the world and the settings of `examples/ogbench_scene.py`, for at most `--minutes`, and measures the agent.
`--agent` measures the agent of such a directory, also on another machine, and `--resume` continues its training.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import puzzles

import saplan

import ogbench_scene as example  # isort: skip  (puzzles adds examples/ to the path)


def learnt(agent: saplan.StructuredAgent) -> list[str]:
    """The transitions that plans use, in words."""
    space, deltas = agent.game.space, np.asarray(agent.memory.delta)[np.asarray(agent.trusted)]
    return [space.format_delta(delta) for delta in deltas]


def main() -> None:
    """Trains, measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=example.STEPS)
    parser.add_argument("--minutes", type=float, default=60.0, help="of training, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=50, help="of each of the five tasks")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/scene"), help="directory for the agent")
    parser.add_argument("--agent", type=Path, help="the directory of a saved agent, in place of training")
    parser.add_argument("--resume", action="store_true", help="continue the training in --out, if there is one")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {"size": "scene", "seed": options.seed, "cores": len(os.sched_getaffinity(0))}
    world = puzzles.training_world(example.scene, options, result)
    if options.agent:
        agent, known = puzzles.saved_agent(world, options.agent)
        result = {**known, "evaluation_cores": result["cores"]}
    else:
        agent, result["training"] = puzzles.train(world, example.SETTINGS, options, result)
    result["transitions"] = learnt(agent)
    began = time.monotonic()
    success = example.evaluate(agent, 5 * options.episodes, options.processes)
    result |= {
        "success": float(success.mean()),
        "success_by_task": success.reshape(-1, 5).mean(axis=0).tolist(),
        "episodes": int(success.size),
        "evaluation_seconds": round(time.monotonic() - began, 1),
    }
    print(result, flush=True)
    saplan.write_result(options.json, result, "ogbench", "mujoco")


if __name__ == "__main__":
    main()
