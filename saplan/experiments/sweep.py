"""The cells of a reproduction, each one game, method, variant and seed: computed once, by whoever claims it first."""

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax

from saplan.errors import InputError, unknown_name
from saplan.experiments.evaluation_report import summarise
from saplan.games import make_game
from saplan.methods.ablations import FULL, ablated
from saplan.methods.agent import PlannerSettings, planner_settings_for
from saplan.methods.oracle import Oracle
from saplan.methods.registry import find_method
from saplan.render.progress_bar import ProgressBar
from saplan.storage.files import Lock, make_directory
from saplan.training.config import RunConfig, write_json
from saplan.training.evaluate import evaluate
from saplan.training.loop import HELD_BACK_SEED
from saplan.training.metrics import read_metrics
from saplan.training.provenance import hardware
from saplan.training.run_directory import METRICS
from saplan.training.store import ORACLE, load_agent, read_manifest
from saplan.training.train import SAVE_EVERY, complain, kept_agent, run_config, train_runs

RUNS, CLAIMS = "runs", "claims"
"""Directories beside the results."""
POINTS = 60
"""Rows of metrics that a result keeps at most."""


@dataclass(frozen=True)
class Variant:
    """A way in which training departs from the default."""

    what: str
    """For people."""
    settings: dict[str, Any] = field(default_factory=dict)
    paper: bool = False
    algebra: str = FULL
    games: tuple[str, ...] | None = None
    """Where it makes a difference; None: everywhere."""

    def concerns(self, game: str) -> bool:
        """Whether it makes a difference in a game."""
        return self.games is None or game in self.games


VARIANTS = {
    "default": Variant("the default"),
    "paper": Variant("the paper's variant", paper=True),
    "no-counts": Variant("without counts of visits in proposals", {"uniform": 1.0}),
    "no-filter": Variant("without the edge detector's filter p_0", {"threshold": 0.0}),
    "raw": Variant("raw numbers in place of the algebra's features", algebra="raw"),
    "integers": Variant("ℤ/q treated as ℤ", algebra="integers", games=("switches",)),
    "no-hindsight": Variant("without hindsight: a step teaches about its own wish alone", {"relabel": False}),
    "no-trail": Variant("without the trail that keeps from walking in circles", {"repeat_cost": 0.0}),
}
ABLATIONS = [name for name in VARIANTS if name != "default"]


@dataclass(frozen=True)
class Trial:
    """What one result is about."""

    game: str
    method: str
    seed: int
    steps: int
    variant: str = "default"
    numbers: tuple[tuple[str, int | float], ...] = ()
    """Settings other than the defaults."""

    @property
    def group(self) -> str:
        """What cells that differ in their seeds alone have in common."""
        return f"{self.game}-{self.method}-{self.variant}-{self.steps / 1e6:g}M"

    @property
    def name(self) -> str:
        return f"{self.game}-{ORACLE}" if self.method == ORACLE else f"{self.group}-{self.seed}"

    def config(self) -> RunConfig:
        """The run that it needs."""
        if self.variant not in VARIANTS:
            raise unknown_name("variant", self.variant, VARIANTS)
        variant, method = VARIANTS[self.variant], find_method(self.method)
        game = ablated(make_game(self.game), variant.algebra)
        settings = method.settings_for(game, variant.paper)
        known = vars(settings)
        changes = {**{name: value for name, value in variant.settings.items() if name in known}, **dict(self.numbers)}
        for name in changes:
            if name not in known:
                raise unknown_name("setting", name, known)
        return run_config(game, self.steps, self.seed, replace(settings, **changes), self.method)


def misfit(game: str, method: str) -> str | None:
    """Why a method cannot be used in a game; None if it can."""
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
    """How closely cells are evaluated at."""

    tasks: int = 1000
    eval_points: int = 7
    """At the end, half-way, at a quarter, ..."""
    eval_tasks: int = 200
    together: bool = False
    """Whether the seeds of a group are trained in one program, and tried on tasks only after that: what trains them
    is too good to wait for a CPU."""
    devices: int = 1
    """That share the lanes of every run; 0 means all."""
    save_every: float = SAVE_EVERY


class Reproduction:
    """A directory of results, one file a cell, and of the runs behind them."""

    def __init__(self, out: Path) -> None:
        """Nothing is written before a cell is computed."""
        self.out = out

    def result_path(self, cell: Trial) -> Path:
        return self.out / f"{cell.name}.json"

    def run_path(self, cell: Trial) -> Path:
        return self.out / RUNS / cell.name

    def finished(self, cell: Trial) -> bool:
        return self.result_path(cell).exists()

    def jobs(self, cells: Sequence[Trial], together: bool) -> list[list[Trial]]:
        """What is still to be computed, in parts that belong together."""
        groups: dict[str, list[Trial]] = {}
        for cell in cells:
            if not self.finished(cell):
                groups.setdefault(cell.group if together else cell.name, []).append(cell)
        return list(groups.values())

    def compute(self, job: list[Trial], eval_budget: EvalBudget, quiet: bool = False) -> bool:
        """Computes the results of a job, unless another process is at it, which is answered by False.

        Whatever a process that died has left is gone on with: runs from their last checkpoints, results where they are
        missing.
        """
        claim = self.out / CLAIMS / job[0].name
        make_directory(claim)
        try:
            lock = Lock(claim)
        except InputError:
            return False
        with lock:
            missing = [cell for cell in job if not self.finished(cell)]
            if missing and missing[0].method != ORACLE:
                self._train(missing, eval_budget, quiet)
            for cell in missing:
                write_json(self.result_path(cell), self._measure(cell, eval_budget))
                # An agent is all that is needed now; checkpoints are many times its size.
                for finished in ("checkpoints", "evaluations"):
                    shutil.rmtree(self.run_path(cell) / finished, ignore_errors=True)
        return True

    def _train(self, cells: list[Trial], eval_budget: EvalBudget, quiet: bool) -> None:
        untrained = [cell for cell in cells if not (self.run_path(cell) / "manifest.json").exists()]
        if not untrained:
            return
        eval_tasks = 0 if eval_budget.together else eval_budget.eval_tasks
        configs = [replace(cell.config(), eval_points=eval_budget.eval_points, eval_tasks=eval_tasks) for cell in cells]
        outs = [self.run_path(cell) for cell in cells]
        with contextlib.closing(ProgressBar()) if not quiet else contextlib.nullcontext() as shower:
            train_runs(configs, outs, shower, eval_budget.save_every, devices=eval_budget.devices, go_on=True)

    def _measure(self, cell: Trial, eval_budget: EvalBudget) -> dict[str, Any]:
        about = {"variant": cell.variant, "budgeted_steps": cell.steps}
        if cell.method == ORACLE:
            planning = planner_settings_for(find_method("structured").settings_for(make_game(cell.game), False))
            return {
                **summarise(cell.game, eval_budget.tasks, 0, 150, planning, ORACLE),
                **about,
                "hardware": hardware(),
            }
        run, config = self.run_path(cell), cell.config()
        trained = read_manifest(run).get("about") or {}
        result = summarise(str(run), eval_budget.tasks, 0, 150, planner_settings_for(config.settings))
        told = history(run, eval_budget.eval_tasks, planner_settings_for(config.settings))
        by = {"hardware": trained.get("hardware"), "trained_by": trained.get("code"), "config": config.to_json()}
        return {**result, **about, **by, **told}


def history(run: Path, eval_tasks: int, planning: PlannerSettings) -> dict[str, Any]:
    """What the metrics of a run tell: the learning curve, the examples of the edge detector, the time."""

    def success(row: dict[str, Any]) -> float | None:
        kept = kept_agent(run, row["steps"])
        if not kept.exists():
            return row["success"]
        return float(evaluate(load_agent(kept)[0], eval_tasks, HELD_BACK_SEED, planning=planning).success.mean())

    rows = read_metrics(run / METRICS)
    kept = rows[:: max(1, len(rows) // POINTS)]
    eval_points = [{"steps": row["steps"], "success": success(row)} for row in rows if row["evaluated"]]
    return {
        "curve": [look for look in eval_points if look["success"] is not None],
        "examples": [{name: row[name] for name in ("steps", "positives", "negatives", "known")} for row in kept],
        "overflow": rows[-1]["overflow"],
        "training_seconds": rows[-1]["seconds"],
    }


def compute_all(reproduction: Reproduction, cells: Sequence[Trial], eval_budget: EvalBudget) -> list[Trial]:
    """Computes what is missing, here and now; returns the cells that other processes are at."""
    jobs = reproduction.jobs(cells, eval_budget.together)
    for number, job in enumerate(jobs, 1):
        seeds = "" if job[0].method == ORACLE else f", seed {' '.join(str(cell.seed) for cell in job)}"
        complain(f"{number} of {len(jobs)}: {job[0].game}, {job[0].method}, {job[0].variant}{seeds}")
        if not reproduction.compute(job, eval_budget):
            complain("another process is at it")
    return [cell for cell in cells if not reproduction.finished(cell)]


def on_accelerator() -> bool:
    """Whether there is something better than a CPU to train on."""
    return jax.default_backend() != "cpu"
