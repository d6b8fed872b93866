"""Success, seconds and memory of evaluating the shipped agents.

Run: python benchmarks/evaluation.py --json results/evaluation.json

Every evaluation runs in a process of its own, so that its seconds include compilation and its peak memory is its own.
`--beside DIRECTORY` names another checkout of the package: its evaluations run in turn with ours, under the same load.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from common import ROOT, describe, make_parser, progress, setting, text_table

from saplan.experiments.result_file import write_result
from saplan.games import GAMES

GOAL_SECONDS, GOAL_BYTES = 10.0, 1e9
GOAL_SUCCESS = {"switches": 0.995, "exchange": 0.985, "mining": 0.90}
"""Goals for 1,000 tasks on two cores; on switches, the success before."""
PROGRAM = """
import json, resource, sys, time
from saplan.training.evaluate import evaluate
from saplan.training.store import load
game, tasks, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
agent = load(game)
wall, cpu = time.perf_counter(), time.process_time()
result = evaluate(agent, tasks, task_seed=seed)
seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps({"success": float(result.success.mean()), "mean_steps": float(result.steps.mean()),
                  "attempts": len(result.attempts), "seconds": seconds, "cpu_seconds": cpu_seconds, "peak": peak}))
"""


def measure(checkout: Path, game: str, tasks: int, seed: int) -> dict[str, Any]:
    """One evaluation by the package of a checkout, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, "-c", PROGRAM, game, str(tasks), str(seed)]
    done = subprocess.run(command, env=environment, cwd=checkout, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Evaluates every shipped agent and prints the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="seeds of the tasks; reports use 0")
    parser.add_argument("--beside", type=Path, metavar="DIRECTORY", help="another checkout, measured in turn with this")
    options = parser.parse_args()
    facts = setting()
    print(describe(facts), flush=True)
    checkouts = {"now": ROOT, **({"beside": options.beside.resolve()} if options.beside else {})}
    records: list[dict[str, Any]] = []
    for game in GAMES:
        for seed in options.seeds:
            for name, checkout in checkouts.items():
                found = measure(checkout, game, options.tasks, seed)
                records.append({"game": game, "task_seed": seed, "code": name, **found})
                progress(f"{game}, tasks of seed {seed}, {name}: {found['seconds']:.1f} s")
    rows = [
        (f"{r['game']}, seed {r['task_seed']}, {r['code']}", f"{r['success']:.1%}", f"{r['mean_steps']:.1f}",
         f"{r['seconds']:.1f}", f"{r['cpu_seconds']:.1f}", f"{r['peak'] / 1e9:.2f}")
        for r in records
    ]  # fmt: skip
    print("\n" + text_table(("agent", "success", "mean steps", "seconds", "CPU seconds", "peak GB"), rows))
    goals = {"seconds": GOAL_SECONDS, "bytes": GOAL_BYTES, "success": GOAL_SUCCESS}
    write_result(options.json, {"setting": facts, "tasks": options.tasks, "goals": goals, "entries": records})


if __name__ == "__main__":
    main()
