"""What the right algebra is worth: games trained with their own space and with a wrong one.

    python benchmarks/worth.py --out DIR

writes `DIR/worth.json`: success on test tasks, steps to 90 % on held-back tasks and the size of 𝓑 for every seed, and
the oracle's success. `DIR/GAME` is the agent of the first seed of arm and of tiles as it ships. Every case trains all
its seeds in one program; cases run side by side, which pays on an accelerator.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import make_parser

from saplan.experiments.result_file import write_result
from saplan.games import make_game
from saplan.methods.ablations import FULL, ablated
from saplan.methods.oracle import Oracle
from saplan.methods.registry import find_method
from saplan.methods.structured.agent import StructuredAgent
from saplan.storage.json_data import read_json, write_json
from saplan.training.config import RunConfig, run_config
from saplan.training.evaluate import evaluate
from saplan.training.metrics import read_metrics
from saplan.training.provenance import command
from saplan.training.run_directory import METRICS
from saplan.training.store import MANIFEST, load_agent, save_agent
from saplan.training.train import RunOptions, train_runs

CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "arm": ("arm", FULL, {}),
    "arm-line": ("arm", "integers", {}),
    "tiles": ("tiles", FULL, {}),
    "tiles-labels": ("tiles", "labels", {"capacity": 64}),
    "tiles-line": ("tiles", "integers", {}),
    "switches": ("switches", FULL, {}),
    "switches-line": ("switches", "integers", {}),
}
"""By case: the game, its algebra and settings that differ from the defaults. 49 changes of labels need their room."""
SHIPPED = ("arm", "tiles")
ENOUGH = 0.9


def configs_of(case: str, options: argparse.Namespace) -> list[RunConfig]:
    """One configuration per seed."""
    name, algebra, numbers = CASES[case]
    game = ablated(make_game(name), algebra)
    settings = replace(find_method("structured").settings_for(game, False), **numbers)
    points = (options.eval_points, options.eval_tasks)
    return [run_config(game, options.steps, seed, settings, "structured", *points) for seed in range(options.seeds)]


def run_case(case: str, options: argparse.Namespace) -> None:
    """Trains the seeds of one case, evaluates them, and keeps the first agent where it ships."""
    outs = [options.runs / f"{case}-{seed}" for seed in range(options.seeds)]
    train_runs(configs_of(case, options), outs, RunOptions(save_every=1e9))
    rows = [seed_row(out, options.tasks) for out in outs]
    write_json(options.runs / f"{case}.json", {"case": case, "seeds": rows})
    if case in SHIPPED:
        agent, config = load_agent(outs[0])
        about = {**(read_json(outs[0] / MANIFEST).get("about") or {}), "command": command(config)}
        save_agent(options.out / case, agent, config, half=True, about=about)


def seed_row(out: Path, tasks: int) -> dict[str, Any]:
    """Success, the curve on held-back tasks, steps to 90 % and 𝓑 of one run."""
    agent, _ = load_agent(out)
    assert isinstance(agent, StructuredAgent)
    curve = [[row["steps"], row["success"]] for row in read_metrics(out / METRICS) if row["evaluated"]]
    return {
        "success": round(float(np.mean(evaluate(agent, tasks).success)), 4),
        "curve": curve,
        "steps_to_90": next((steps for steps, success in curve if success >= ENOUGH), None),
        "changes": int(agent.memory.size),
        "overflow": int(agent.memory.overflow),
    }


def main() -> None:
    """Trains, evaluates, prints and writes."""
    parser = make_parser(__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=Path, help="keep the runs here")
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--tasks", type=int, default=1000, help="test tasks per agent")
    parser.add_argument("--eval-points", type=int, default=8, help="evaluations on held-back tasks")
    parser.add_argument("--eval-tasks", type=int, default=200)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        run_case(options.only, options)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    options.runs = options.runs or Path(tempfile.mkdtemp())
    options.runs.mkdir(parents=True, exist_ok=True)
    # No process may reserve most of the device's memory.
    env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    again = [sys.executable, __file__, *sys.argv[1:], "--runs", str(options.runs), "--only"]
    running = [subprocess.Popen([*again, case], env=env) for case in options.cases]
    codes = {case: process.wait() for case, process in zip(options.cases, running, strict=True)}
    rows = [read_json(options.runs / f"{case}.json") for case, code in codes.items() if not code]
    games = sorted({CASES[case][0] for case in options.cases})
    oracle = {
        game: round(float(np.mean(evaluate(Oracle(make_game(game)), options.tasks).success)), 4) for game in games
    }
    for row in rows:
        print(
            row["case"], [(seed["success"], seed["steps_to_90"], seed["changes"]) for seed in row["seeds"]], flush=True
        )
    about = {"steps": options.steps, "tasks": options.tasks, "eval_tasks": options.eval_tasks}
    write_result(options.json or options.out / "worth.json", {**about, "oracle": oracle, "cases": rows})
    if any(codes.values()):
        raise SystemExit(f"failed: {', '.join(case for case, code in codes.items() if code)}")


if __name__ == "__main__":
    main()
