"""A sweep over trials. A trial is one game, method, variant and seed; the first process to claim it computes it."""

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from saplan.errors import InputError, say, unknown_name
from saplan.experiments.evaluation_report import evaluation_data
from saplan.experiments.variants import VARIANTS
from saplan.games import make_game
from saplan.methods.ablations import ablated
from saplan.methods.agent import PlannerSettings, planner_settings_for
from saplan.methods.oracle.agent import Oracle
from saplan.methods.registry import METHODS, find_method
from saplan.storage.files import Lock, make_directory
from saplan.storage.json_data import write_json
from saplan.training.config import RunConfig, run_config
from saplan.training.evaluate import evaluate
from saplan.training.loop import HELD_BACK_SEED
from saplan.training.metrics import read_metrics
from saplan.training.program_cache import forget_old_programs
from saplan.training.progress import ProgressBar
from saplan.training.provenance import hardware
from saplan.training.run_directory import METRICS
from saplan.training.store import MANIFEST, ORACLE, load_agent, read_manifest
from saplan.training.train import SAVE_EVERY, RunOptions, kept_agent, train_runs

RUNS, CLAIMS = "runs", "claims"
"""Directories beside the results."""
POINTS = 60
"""Rows of metrics that a result keeps at most."""
TASK_SEED, BUDGET = 0, 150
BUSY = "already running in another process"


ALL_SETTINGS = sorted({field.name for method in METHODS.values() for field in fields(method.settings)})
"""The settings that some method has."""


@dataclass(frozen=True)
class Trial:
    """One training and evaluation of a sweep."""

    game: str
    method: str
    seed: int
    steps: int
    variant: str = "default"
    numbers: tuple[tuple[str, int | float], ...] = ()
    """Settings that differ from the defaults."""

    @property
    def group(self) -> str:
        """The name of all trials that differ only in their seeds."""
        return f"{self.game}-{self.method}-{self.variant}-{self.steps / 1e6:g}M"

    @property
    def name(self) -> str:
        return f"{self.game}-{ORACLE}" if self.method == ORACLE else f"{self.group}-{self.seed}"

    def config(self) -> RunConfig:
        """The configuration of its training run."""
        if self.variant not in VARIANTS:
            raise unknown_name("variant", self.variant, VARIANTS)
        variant, method = VARIANTS[self.variant], find_method(self.method)
        game = ablated(make_game(self.game), variant.algebra)
        settings = method.settings_for(game, variant.paper)
        for name, _ in self.numbers:
            if name not in ALL_SETTINGS:
                raise unknown_name("setting", name, ALL_SETTINGS)
        # A sweep over several methods gives each of them only the settings that it has.
        known = vars(settings)
        changes = {name: value for name, value in {**variant.settings, **dict(self.numbers)}.items() if name in known}
        return run_config(game, self.steps, self.seed, replace(settings, **changes), self.method)

    def planner(self) -> PlannerSettings:
        """How its agent plans in evaluations."""
        return VARIANTS[self.variant].planner or planner_settings_for(self.config().settings)


def misfit(game: str, method: str) -> str | None:
    """The reason why a method cannot be used in a game; None if it can."""
    try:
        if method == ORACLE:
            Oracle(make_game(game))
        else:
            run_config(make_game(game), None, 0, None, method)
    except InputError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class EvalBudget:
    """How much evaluation a trial gets, and how it trains."""

    tasks: int = 1000
    eval_points: int = 7
    """Evaluations during training: at the end, half-way, at a quarter, ..."""
    eval_tasks: int = 200
    together: bool = False
    """Train the seeds of a group in one program and evaluate them afterwards: an accelerator should not wait for
    evaluations on the CPU."""
    devices: int = 1
    """Devices that share the lanes of every run; 0 means all."""
    save_every: float = SAVE_EVERY
    train_only: bool = False
    """Leave the evaluations to another process, which finds the trained agents."""


class Sweep:
    """A directory of results, one file per trial, and of the runs behind them."""

    def __init__(self, out: Path) -> None:
        """Writes nothing before a trial is computed."""
        self.out = out

    def result_path(self, trial: Trial) -> Path:
        return self.out / f"{trial.name}.json"

    def run_path(self, trial: Trial) -> Path:
        return self.out / RUNS / trial.name

    def finished(self, trial: Trial) -> bool:
        return self.result_path(trial).exists()

    def missing(self, trials: Sequence[Trial]) -> list[Trial]:
        """The trials without results."""
        return [trial for trial in trials if not self.finished(trial)]

    def jobs(self, trials: Sequence[Trial], together: bool) -> list[list[Trial]]:
        """The trials without results, grouped into jobs that one process computes."""
        groups: dict[str, list[Trial]] = {}
        for trial in self.missing(trials):
            groups.setdefault(trial.group if together else trial.name, []).append(trial)
        return list(groups.values())

    def compute(self, job: list[Trial], eval_budget: EvalBudget, quiet: bool = False) -> bool:
        """Computes the results of a job; False if another process is computing it.

        Resumes after a process that died: runs continue from their last checkpoints, and only missing results are
        computed.
        """
        claim = self.out / CLAIMS / job[0].name
        make_directory(claim)
        try:
            lock = Lock(claim)
        except InputError:
            return False
        with lock:
            missing = self.missing(job)
            if missing and missing[0].method != ORACLE:
                self._train(missing, eval_budget, quiet)
            for trial in [] if eval_budget.train_only else missing:
                write_json(self.result_path(trial), self._measure(trial, eval_budget))
                # Only the agent is still needed; checkpoints are many times its size.
                for finished in ("checkpoints", "evaluations"):
                    shutil.rmtree(self.run_path(trial) / finished, ignore_errors=True)
        return True

    def _train(self, trials: list[Trial], budget: EvalBudget, quiet: bool) -> None:
        outs = [self.run_path(trial) for trial in trials]
        if all((out / MANIFEST).exists() for out in outs):
            return
        eval_tasks = 0 if budget.together else budget.eval_tasks
        configs = [replace(trial.config(), eval_points=budget.eval_points, eval_tasks=eval_tasks) for trial in trials]
        with contextlib.closing(ProgressBar()) if not quiet else contextlib.nullcontext() as bar:
            options = RunOptions(bar, budget.save_every, devices=budget.devices)
            train_runs(configs, outs, options, resume=True)

    def _measure(self, trial: Trial, budget: EvalBudget) -> dict[str, Any]:
        about: dict[str, Any] = {"variant": trial.variant, "budgeted_steps": trial.steps}
        if trial.method == ORACLE:
            planning = planner_settings_for(find_method("structured").settings_for(make_game(trial.game), False))
            result = evaluation_data(trial.game, budget.tasks, TASK_SEED, BUDGET, planning, ORACLE)
            return {**result, **about, "hardware": hardware()}
        run, config = self.run_path(trial), trial.config()
        planning = trial.planner()
        trained = read_manifest(run).get("about") or {}
        about |= {"hardware": trained.get("hardware"), "trained_by": trained.get("code"), "config": config.to_json()}
        result = evaluation_data(str(run), budget.tasks, TASK_SEED, BUDGET, planning)
        return {**result, **about, **training_history(run, budget.eval_tasks, planning)}


def training_history(run: Path, eval_tasks: int, planning: PlannerSettings) -> dict[str, Any]:
    """Learning curve, examples of the edge detector, and training time, from the metrics of a run."""

    def success(row: dict[str, Any]) -> float | None:
        kept, known = kept_agent(run, row["steps"]), row["success"]
        if not kept.exists():
            return None if known is None else float(known)
        return float(evaluate(load_agent(kept)[0], eval_tasks, HELD_BACK_SEED, planning=planning).success.mean())

    rows = read_metrics(run / METRICS)
    kept = rows[:: max(1, len(rows) // POINTS)]
    points = [{"steps": row["steps"], "success": success(row)} for row in rows if row["evaluated"]]
    return {
        "curve": [point for point in points if point["success"] is not None],
        "examples": [{name: row[name] for name in ("steps", "positives", "negatives", "known")} for row in kept],
        "overflow": rows[-1]["overflow"],
        "training_seconds": rows[-1]["seconds"],
    }


def run_trials(sweep: Sweep, trials: Sequence[Trial], eval_budget: EvalBudget) -> list[Trial]:
    """Computes the missing results in this process; returns the trials that other processes are computing."""
    jobs = sweep.jobs(trials, eval_budget.together)
    for number, job in enumerate(jobs, 1):
        forget_old_programs()
        seeds = "" if job[0].method == ORACLE else f", seed {' '.join(str(trial.seed) for trial in job)}"
        say(f"{number} of {len(jobs)}: {job[0].game}, {job[0].method}, {job[0].variant}{seeds}")
        if not sweep.compute(job, eval_budget):
            say(BUSY)
    return sweep.missing(trials)
