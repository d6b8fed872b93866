"""Success after a fixed number of environment steps, for several numbers of gradient steps.

    python benchmarks/gradient_steps.py --json results/gradient-steps.json

A variant such as `2x32@0.003` makes 2 passes over every rollout in 32 minibatches each, with that step size of Adam at
the start. Every variant of a game trains its seeds in one process, on a GPU if there is one, and its agents carry out
the same tasks. These are not the tasks that results are reported on: defaults may be chosen by them.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import make_parser, setting, text_table

from saplan.experiments.result_file import write_result
from saplan.games import make_game
from saplan.methods.registry import find_method
from saplan.storage.json_data import read_json, write_json
from saplan.training.config import run_config
from saplan.training.evaluate import evaluate
from saplan.training.store import load_agent
from saplan.training.train import RunOptions, train_runs

STEPS = {"switches": 2_500_000, "exchange": 4_000_000, "mining": 5_000_000}
VARIANTS = ["2x32@0.003", "1x32@0.004", "2x16@0.004", "2x8@0.005", "1x16@0.005"]
TASK_SEED = 11


def train_case(game: str, variant: str, options: argparse.Namespace, out: Path) -> None:
    """Train the seeds of one variant."""
    shape, rate = variant.split("@")
    epochs, minibatches = (int(number) for number in shape.split("x"))
    settings = find_method("structured").settings_for(make_game(game), False)
    settings = replace(settings, epochs=epochs, minibatches=minibatches, learning_rate=float(rate))
    steps = options.steps or STEPS[game]
    configs = [run_config(game, steps, seed, settings, "structured", 0, 0) for seed in range(options.seeds)]
    train_runs(configs, [out / str(seed) for seed in range(options.seeds)], RunOptions(save_every=1e9))


def evaluate_case(out: Path, tasks: int) -> None:
    """Evaluate one agent, and write its success beside it."""
    result = evaluate(load_agent(out)[0], tasks, TASK_SEED)
    write_json(out / "success.json", {"success": float(result.success.mean()), "tasks": tasks})


class Queue:
    """Processes, so many at a time."""

    def __init__(self, at_once: int) -> None:
        """Start without any."""
        self.at_once = at_once
        self.running: list[tuple[subprocess.Popen[bytes], str]] = []

    @property
    def room(self) -> bool:
        """Whether one more may run."""
        return len(self.running) < self.at_once

    def add(self, command: list[str], name: str, env: dict[str, str]) -> None:
        """Start a process."""
        self.running.append((subprocess.Popen(command, env={**os.environ, **env}), name))

    def collect(self) -> list[str]:
        """Names of the processes that have ended well since."""
        ended = [(process, name) for process, name in self.running if process.poll() is not None]
        self.running = [pair for pair in self.running if pair not in ended]
        return [name for process, name in ended if process.returncode == 0]


def run_all(options: argparse.Namespace, out: Path) -> None:
    """Train all cases and evaluate their agents as they come."""
    again = [sys.executable, __file__, "--out", str(out), "--tasks", str(options.tasks), "--seeds", str(options.seeds)]
    again += ["--steps", str(options.steps)]
    training, evaluating = Queue(options.at_once), Queue(options.evaluations)
    cases = [f"{game}:{variant}" for variant in options.variants for game in options.games]
    waiting: list[str] = list(cases)
    ready: list[str] = []
    while waiting or training.running or ready or evaluating.running:
        if waiting and training.room:
            case = waiting.pop(0)
            training.add([*again, "--train", case], case, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
        ready += [f"{case}/{seed}" for case in training.collect() for seed in range(options.seeds)]
        if evaluating.collect():
            report(options, out)
        if ready and evaluating.room:
            one = ready.pop(0)
            evaluating.add([*again, "--evaluate", one], one, {"JAX_PLATFORMS": "cpu"})
        time.sleep(0.3)


def report(options: argparse.Namespace, out: Path) -> list[dict[str, Any]]:
    """Everything measured so far, also written to the result file."""
    rows = []
    for game in options.games:
        for variant in options.variants:
            found = [out / f"{game}:{variant}" / str(seed) / "success.json" for seed in range(options.seeds)]
            success = [read_json(path)["success"] for path in found if path.exists()]
            if success:
                rows.append({"game": game, "variant": variant, "steps": options.steps or STEPS[game]}
                            | {"success": success, "mean": statistics.mean(success)})  # fmt: skip
    about = {"setting": options.facts, "tasks": options.tasks, "task_seed": TASK_SEED}
    write_result(options.json, {**about, "rows": rows})
    return rows


def main() -> None:
    """Train, evaluate, print and write."""
    parser = make_parser(__doc__)
    parser.add_argument("--games", nargs="+", default=list(STEPS))
    parser.add_argument("--variants", nargs="+", default=VARIANTS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=0, help="instead of the budgets of each game")
    parser.add_argument("--at-once", type=int, default=6, help="trainings at a time")
    parser.add_argument("--evaluations", type=int, default=8, help="evaluations at a time")
    parser.add_argument("--out", type=Path, help="keep the runs here")
    parser.add_argument("--train", metavar="CASE", help=argparse.SUPPRESS)
    parser.add_argument("--evaluate", metavar="CASE/SEED", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        game, variant = options.train.split(":")
        train_case(game, variant, options, options.out / options.train)
        return
    if options.evaluate:
        evaluate_case(options.out / options.evaluate, options.tasks)
        return
    out = options.out or Path(tempfile.mkdtemp())
    options.facts = setting()
    run_all(options, out)
    rows = [
        (row["game"], row["variant"], f"{100 * row['mean']:.2f} %", " ".join(f"{100 * x:.1f}" for x in row["success"]))
        for row in report(options, out)
    ]
    print(text_table(("game", "gradient steps", "success", "seeds"), rows))


if __name__ == "__main__":
    main()
