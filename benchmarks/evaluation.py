"""Success, seconds and memory of `saplan evaluate` for the shipped agents.

Run: python benchmarks/evaluation.py --json results/evaluation.json

Every evaluation is the command, in a process of its own: its seconds are those of the whole process, with imports, and
its memory is the peak of the process. The first runs with an empty directory of compiled programs and compiles all of
them; the second finds them there, as every later evaluation of a user does. `--beside DIRECTORY` names another checkout
of the package: its evaluations run in turn with ours, under the same load.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import ROOT, describe, make_parser, progress, setting, text_table

from saplan.experiments.result_file import write_result
from saplan.training.program_cache import SETTING

GOAL_SECONDS, GOAL_BYTES = 10.0, 1e9
GOAL_SUCCESS = {"switches": 0.995, "exchange": 0.985, "mining": 0.90}
"""Goals for 1,000 tasks on two cores; on switches, the success before."""
KEPT = ("success", "interval", "mean_steps", "attempts_per_task", "attempt_success", "failures")


def measure(checkout: Path, game: str, tasks: int, seed: int, programs: Path) -> dict[str, Any]:
    """One evaluation by the package of a checkout, with compiled programs in a directory."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), SETTING: str(programs)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, "-m", "saplan", "evaluate", game, "--json"]
    command += ["--tasks", str(tasks), "--task-seed", str(seed)]
    began = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, env=environment, cwd=checkout, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{' '.join(command)} failed with exit code {child.returncode}")
        out.seek(0)
        said = json.loads(out.read())
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    figures = {name: said[name] for name in KEPT if name in said}
    return {**figures, "seconds": seconds, "cpu_seconds": used.ru_utime + used.ru_stime, "peak": peak}


def measure_twice(name: str, checkout: Path, game: str, tasks: int, seed: int) -> list[dict[str, Any]]:
    """An evaluation that compiles, and the same again."""
    records = []
    with tempfile.TemporaryDirectory() as directory:
        for programs in ("newly compiled", "compiled before"):
            found = measure(checkout, game, tasks, seed, Path(directory))
            records.append({"game": game, "task_seed": seed, "code": name, "programs": programs, **found})
            progress(f"{game}, tasks of seed {seed}, {name}, {programs}: {found['seconds']:.1f} s")
    return records


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
    records = [
        record
        for game in GOAL_SUCCESS
        for seed in options.seeds
        for name, checkout in checkouts.items()
        for record in measure_twice(name, checkout, game, options.tasks, seed)
    ]
    rows = [
        (f"{r['game']}, seed {r['task_seed']}, {r['code']}, {r['programs']}", f"{r['success']:.1%}",
         f"{r['mean_steps']:.1f}", f"{r['seconds']:.1f}", f"{r['cpu_seconds']:.1f}", f"{r['peak'] / 1e9:.2f}")
        for r in records
    ]  # fmt: skip
    print("\n" + text_table(("agent", "success", "mean steps", "seconds", "CPU seconds", "peak GB"), rows))
    goals = {"seconds": GOAL_SECONDS, "bytes": GOAL_BYTES, "success": GOAL_SUCCESS}
    write_result(options.json, {"setting": facts, "tasks": options.tasks, "goals": goals, "entries": records})


if __name__ == "__main__":
    main()
