"""What the right algebra is worth: every game trained with its declared space, the found one and a wrong one.

    python benchmarks/space_worth.py --out runs/worth --json results/space-worth.json

Every game and space trains its seeds in one process, and all of them at the same time, which pays on an accelerator.
A process writes its rows when it is done; the same command with `--collect` joins the files that exist.
"""

import argparse
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import make_parser, progress

from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Integer, Natural, Real
from saplan.experiments.result_file import write_result
from saplan.games import GAMES, make_game
from saplan.games.game import Game
from saplan.methods.registry import find_method
from saplan.methods.structured.agent import StructuredAgent
from saplan.perception.found import FoundAttribute, with_space
from saplan.perception.suggest import suggest_space
from saplan.storage.json_data import read_json, write_json
from saplan.training.config import run_config
from saplan.training.evaluate import evaluate
from saplan.training.store import load_agent
from saplan.training.train import RunOptions, train_runs

SPACES = ("declared", "found", "wrong")
REACHED = 0.9
"""Success that a run has to reach."""


def wrong_block(block: Block, alone: bool) -> Block:
    """A block without the structure of the right one; where a game has counts alone, they are said to wrap."""
    if isinstance(block, Cyclic):
        return Integer()
    if isinstance(block, Circle):
        return Real(block.resolution)
    if isinstance(block, Dihedral):
        return Categorical(tuple(block.format(code) for code in range(block.size)))
    if isinstance(block, Real):
        return replace(block, resolution=block.resolution / 10)
    return Cyclic(block.bins) if alone and isinstance(block, Natural) else block


def game_with(name: str, space: str, seed: int) -> Game[Any]:
    """A game with one of the spaces."""
    game = make_game(name)
    if space == "declared":
        return game
    if space == "found":
        return with_space(game, suggest_space(game, seed=seed))
    alone = all(isinstance(block, Natural) for block in game.space.blocks)
    pairs = zip(game.space.names, game.space.blocks, strict=True)
    return with_space(game, tuple(FoundAttribute(one, (one,), wrong_block(block, alone)) for one, block in pairs))


def train_one(name: str, space: str, options: argparse.Namespace) -> None:
    """Trains the seeds of one game in one space, evaluates them on the way, and writes their rows."""
    game = game_with(name, space, options.first_seed)
    defaults: Any = find_method("structured").settings_for(game, False)
    settings = replace(defaults, lanes=options.lanes, capacity=options.capacity)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    outs = [options.out / f"{name}-{space}-{seed}" for seed in seeds]
    configs = [run_config(game, options.steps, seed, settings, "structured", options.points, 0) for seed in seeds]
    last = train_runs(configs, outs, RunOptions(save_every=1e9))
    rows: list[dict[str, Any]] = []
    for seed, out, agent in zip(seeds, outs, last, strict=True):
        assert isinstance(agent, StructuredAgent)
        curve = []
        for point in sorted((out / "evaluations").iterdir(), key=lambda path: int(path.name)):
            success = evaluate(load_agent(point, game)[0], options.tasks, options.task_seed).success.mean()
            curve.append([int(point.name), round(float(success), 4)])
        final = curve[-1][1]
        reached = [steps for steps, success in curve if success >= REACHED]
        rows.append({"game": name, "space": space, "seed": seed, "blocks": str(game.space), "steps": curve[-1][0],
                     "success": final, "curve": curve, "steps_to_90": min(reached, default=None),
                     "changes": int(agent.memory.size), "overflow": int(agent.memory.overflow),
                     "tasks": options.tasks, "lanes": options.lanes})  # fmt: skip
        progress(f"{name}, {space}, seed {seed}: {final:.1%}, {rows[-1]['changes']} changes, by steps {curve}")
    write_json(options.out / f"{name}-{space}.json", rows)


def collect(options: argparse.Namespace) -> None:
    """Joins the rows of all processes that are done."""
    files = [options.out / f"{name}-{space}.json" for name in options.games for space in options.spaces]
    rows = [row for path in files if path.exists() for row in read_json(path)]
    write_result(options.json, {"rows": rows})
    for name in options.games:
        for space in options.spaces:
            each = [row["success"] for row in rows if (row["game"], row["space"]) == (name, space)]
            if each:
                print(f"{name} {space}: {np.mean(each):.1%}")


def main() -> None:
    """Trains, evaluates, prints and writes."""
    parser = make_parser(__doc__)
    parser.add_argument("--games", nargs="*", default=list(GAMES))
    parser.add_argument("--spaces", nargs="*", default=list(SPACES))
    parser.add_argument("--steps", type=int, default=20_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--lanes", type=int, default=2048)
    parser.add_argument("--capacity", type=int, default=48, help="room for the changes of a wrong space")
    parser.add_argument("--points", type=int, default=5, help="agents that are evaluated, at the end and on the way")
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--task-seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/worth"))
    parser.add_argument("--collect", action="store_true", help="only join the files that exist")
    parser.add_argument("--only", metavar="GAME:SPACE", help="train one game in one space in this process")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.only:
        name, space = options.only.split(":")
        train_one(name, space, options)
        return
    if not options.collect:
        again = [sys.executable, __file__, *sys.argv[1:], "--only"]
        env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        jobs = [f"{name}:{space}" for name in options.games for space in options.spaces]
        codes = [process.wait() for process in [subprocess.Popen([*again, job], env=env) for job in jobs]]
        failed = [job for job, code in zip(jobs, codes, strict=True) if code]
        if failed:
            progress(f"failed: {', '.join(failed)}")
    collect(options)


if __name__ == "__main__":
    main()
