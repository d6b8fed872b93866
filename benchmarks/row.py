"""Time of the structured row of the paper's table: every game, several seeds, the paper's budgets.

    python benchmarks/row.py --lanes 4096 --json results/row-cold.json

Each game trains all its seeds in one program and one process, and all games train at the same time, which pays on an
accelerator (on NVIDIA's, start `nvidia-cuda-mps-control -d` first). The clock runs from the start of the processes, so
that imports, compilation and saving count. The evaluation of the agents on test tasks afterwards does not count.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import make_parser

from saplan.experiments.paper import PAPER_STEPS
from saplan.experiments.result_file import write_result
from saplan.games import make_game
from saplan.methods.registry import find_method
from saplan.storage.json_data import read_json, write_json
from saplan.training.config import run_config
from saplan.training.evaluate import evaluate
from saplan.training.progress import Progress
from saplan.training.store import load_agent
from saplan.training.train import RunOptions, train_runs


def train_game(game: str, options: argparse.Namespace, out: Path, began: float) -> None:
    """Trains the seeds of one game, and writes the seconds from the start of the processes to each stage."""
    settings = find_method("structured").settings_for(make_game(game), False)
    seen: list[float] = []

    def show(progress: Progress) -> None:
        seen.append(time.time() - began)

    imported = time.time() - began
    steps = options.steps or PAPER_STEPS[game]
    outs = [out / f"{game}-{seed}" for seed in range(options.seeds)]
    settings = replace(settings, lanes=options.lanes)
    configs = [run_config(game, steps, seed, settings, "structured", 0, 0) for seed in range(options.seeds)]
    train_runs(configs, outs, RunOptions(show, save_every=1e9))
    times = {"imported": imported, "compiled": seen[0], "trained": seen[-1], "saved": time.time() - began}
    rounded = {name: round(seconds, 1) for name, seconds in times.items()}
    write_json(out / f"{game}.json", {"game": game, "steps": steps, "seeds": options.seeds, **rounded})


def measure_success(out: Path, game: str, seeds: int, tasks: int) -> list[float]:
    """Success of every agent on test tasks."""
    agents = [load_agent(out / f"{game}-{seed}")[0] for seed in range(seeds)]
    return [round(float(evaluate(agent, tasks).success.mean()), 4) for agent in agents]


def main() -> None:
    """Trains, evaluates, prints and writes."""
    parser = make_parser(__doc__)
    parser.add_argument("--games", nargs="*", default=list(PAPER_STEPS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--lanes", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=0, help="instead of the paper's budgets")
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--out", type=Path, help="keep the runs here")
    parser.add_argument("--only", metavar="GAME:BEGAN", help=argparse.SUPPRESS)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp())
    if options.only:
        game, began = options.only.split(":")
        train_game(game, options, out, float(began))
        return
    out.mkdir(parents=True, exist_ok=True)
    began = time.time()
    again = [sys.executable, __file__, *sys.argv[1:], "--out", str(out), "--only"]
    # No process may reserve most of the device's memory.
    env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    running = [subprocess.Popen([*again, f"{game}:{began}"], env=env) for game in options.games]
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit(1)
    wall = time.time() - began
    rows: list[dict[str, Any]] = []
    for game in options.games:
        rows.append(read_json(out / f"{game}.json"))
        rows[-1]["success"] = measure_success(out, game, options.seeds, options.tasks)
        print(rows[-1], flush=True)
    print(f"{wall:.0f} s in all")
    about = {"lanes": options.lanes, "tasks": options.tasks, "xla_flags": os.environ.get("XLA_FLAGS", "")}
    write_result(options.json, {"wall_seconds": round(wall, 1), **about, "rows": rows})


if __name__ == "__main__":
    main()
