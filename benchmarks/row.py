"""How long the structured row of the paper's table takes: every game, several seeds, the paper's budgets.

    python benchmarks/row.py --lanes 4096 --json results/row.json

Each game trains all its seeds in one program and a process of its own, all games side by side, as is worth while on an
accelerator (on NVIDIA's, start `nvidia-cuda-mps-control -d` first). The clock runs from the start of the processes, so
imports, compilation and saving count. Afterwards the agents are tried on the test tasks, which does not count.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from saplan.experiments.tables import PAPER_STEPS
from saplan.games import make_game
from saplan.methods.registry import find_method
from saplan.storage.json_data import write_json
from saplan.training.config import run_config
from saplan.training.evaluate import evaluate
from saplan.training.progress import Progress
from saplan.training.provenance import provenance
from saplan.training.store import load_agent
from saplan.training.train import RunOptions, train_runs


def train_game(game: str, options: argparse.Namespace, out: Path, began: float) -> None:
    """Trains the seeds of one game, and writes when what happened, in seconds from the start of the processes."""
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
    told = {"imported": imported, "compiled": seen[0], "trained": seen[-1], "saved": time.time() - began}
    rounded = {name: round(seconds, 1) for name, seconds in told.items()}
    write_json(out / f"{game}.json", {"game": game, "steps": steps, "seeds": options.seeds, **rounded})


def try_out(out: Path, game: str, seeds: int, tasks: int) -> list[float]:
    """Success of every agent on test tasks."""
    agents = [load_agent(out / f"{game}-{seed}")[0] for seed in range(seeds)]
    return [round(float(evaluate(agent, tasks).success.mean()), 4) for agent in agents]


def main() -> None:
    """Trains, tries, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="*", default=list(PAPER_STEPS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--lanes", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=0, help="in place of the paper's budgets")
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--out", type=Path, help="keep the runs here")
    parser.add_argument("--json", type=Path)
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
    # Side by side, no process may take most of the device's memory for itself.
    env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    running = [subprocess.Popen([*again, f"{game}:{began}"], env=env) for game in options.games]
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit(1)
    wall = time.time() - began
    rows: list[dict[str, Any]] = []
    for game in options.games:
        rows.append(json.loads((out / f"{game}.json").read_text()))
        rows[-1]["success"] = try_out(out, game, options.seeds, options.tasks)
        print(rows[-1], flush=True)
    print(f"{wall:.0f} s in all")
    about = {"lanes": options.lanes, "tasks": options.tasks, "xla_flags": os.environ.get("XLA_FLAGS", "")}
    if options.json:
        told = {"wall_seconds": round(wall, 1), **about, "rows": rows, **provenance()}
        write_json(options.json, told)


if __name__ == "__main__":
    main()
