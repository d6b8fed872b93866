"""The host loop of training: compiled chunks, and between them progress, metrics and a look at held-back tasks."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from saplan.errors import InputError
from saplan.experiments.evaluate import evaluate
from saplan.games import Game, make_game
from saplan.model.agent import Agent
from saplan.model.settings import Settings, settings_for
from saplan.model.training import Learner, Report, begin_training, train_chunk
from saplan.runs.config import RunConfig
from saplan.runs.metrics import MetricsFile
from saplan.runs.store import save_agent

HELD_BACK_SEED = 1_000_003
"""Tasks that training looks at to report its progress. Test tasks have other seeds; nothing is learnt from either."""
DEFAULT_STEPS = {"switches": 5_000_000, "exchange": 4_000_000, "mining": 25_000_000}
"""A tenth of the paper's budget where the paper states one."""


@dataclass(frozen=True)
class Progress:
    """Where training stands."""

    steps: int
    total: int
    seconds: float
    steps_per_second: float
    success: float | None
    """Share of held-back tasks that succeed, when last looked at."""
    transitions: int
    """Size of 𝓑."""
    overflow: int
    positives: int
    negatives: int
    """Examples that exploration and execution have given the edge detector so far."""
    attempt_success: float
    attempt_steps: float

    def line(self) -> str:
        """For people."""
        seconds = (self.total - self.steps) / self.steps_per_second if self.steps_per_second else None
        left = "?" if seconds is None else f"{seconds:.0f}"
        looked = "–" if self.success is None else f"{self.success:.1%}"
        return (
            f"{self.steps / 1e6:.2f}/{self.total / 1e6:.2f} M steps  {self.steps_per_second / 1e3:.0f} k/s  "
            f"tasks {looked}  attempts {self.attempt_success:.1%} in {self.attempt_steps:.1f}  "
            f"|𝓑| {self.transitions}  +{self.positives} -{self.negatives}  {left} s left"
        )


def train(
    game: Game[Any] | str,
    steps: int | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    out: Path | str | None = None,
    looks: int = 5,
    look_tasks: int = 200,
    show: Callable[[Progress], None] | None = None,
) -> Agent:
    """Trains an agent on a game without any task, and returns it.

    `out` is a directory for the configuration, metrics and the agent; `looks` is how often held-back tasks are tried
    on the way (0: never); `show` is called after every chunk.
    """
    game = make_game(game) if isinstance(game, str) else game
    settings = settings_for(game) if settings is None else settings
    steps = DEFAULT_STEPS.get(game.name, 5_000_000) if steps is None else steps
    config = RunConfig(game, settings, steps, seed)
    per_update = settings.lanes * settings.rollout
    if steps < per_update:
        raise InputError(f"steps must be at least lanes × rollout = {per_update}, got {steps}")
    updates = steps // per_update
    metrics = MetricsFile(Path(out) / "metrics.jsonl") if out is not None else None
    loop = Loop(config, updates, looks, look_tasks)
    while loop.done < updates:
        progress = loop.chunk()
        if metrics is not None:
            metrics.write(vars(progress))
        if show is not None:
            show(progress)
    agent = loop.agent()
    if metrics is not None and out is not None:
        metrics.close()
        save_agent(
            Path(out), agent, config, about={"steps_trained": loop.done * per_update, "command": command(config)}
        )
    return agent


def command(config: RunConfig) -> str:
    """The command line that trains this again (rules and settings other than the defaults are in the manifest)."""
    return (
        f"saplan train {config.game.name} --steps {config.steps} --seed {config.seed} --lanes {config.settings.lanes}"
    )


class Loop:
    """Training in chunks."""

    def __init__(self, config: RunConfig, updates: int, looks: int, look_tasks: int) -> None:
        """Nothing learnt yet."""
        self.config, self.updates, self.look_tasks = config, updates, look_tasks
        self.learner: Learner = begin_training(config.game, config.settings, jax.random.key(config.seed))
        self.size = max(1, min(16, updates // 8))
        self.looks_at = [updates * (k + 1) // looks for k in range(looks)]
        self.done, self.positives, self.negatives = 0, 0, 0
        self.success: float | None = None
        self.began = self.timed_from = time.monotonic()
        self.untimed = 0

    def agent(self) -> Agent:
        """The agent as it is now."""
        learner = self.learner
        return Agent(learner.policy, learner.detector, learner.memory, self.config.game, self.config.settings)

    def chunk(self) -> Progress:
        """Some updates, and a look at held-back tasks when one is due."""
        count = min(self.size, self.updates - self.done)
        self.learner, report = train_chunk(self.config.game, self.config.settings, self.updates, count, self.learner)
        report = jax.device_get(report)
        if self.done == 0:  # the first chunk compiled; speed is that of the others
            self.timed_from, self.untimed = time.monotonic(), count
        self.done += count
        elapsed = time.monotonic() - self.timed_from
        if self.looks_at and self.done >= self.looks_at[0]:
            self.looks_at = [due for due in self.looks_at if due > self.done]
            self.success = float(evaluate(self.agent(), self.look_tasks, HELD_BACK_SEED).success.mean())
            self.timed_from += time.monotonic() - self.timed_from - elapsed
        return self._progress(report, elapsed)

    def _progress(self, report: Report, elapsed: float) -> Progress:
        memory, per_update = self.learner.memory, self.config.settings.lanes * self.config.settings.rollout
        self.positives += int(report.found.sum())
        self.negatives += int(report.failed.sum())
        return Progress(
            steps=self.done * per_update,
            total=self.updates * per_update,
            seconds=time.monotonic() - self.began,
            steps_per_second=(self.done - self.untimed) * per_update / max(elapsed, 1e-9),
            success=self.success,
            transitions=int(memory.size),
            overflow=int(memory.overflow),
            positives=self.positives,
            negatives=self.negatives,
            attempt_success=int(report.successes.sum()) / max(int(report.attempts.sum()), 1),
            attempt_steps=float(report.success_steps.mean()),
        )


class Shower:
    """Shows progress: a bar that stays in place on a terminal, a plain line every few seconds elsewhere."""

    def __init__(self, every: float = 5.0) -> None:
        """`every` is the pause between plain lines, in seconds."""
        self.every, self.last = every, 0.0
        self.bar: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            console = Console(stderr=True)
            columns = (BarColumn(20), TextColumn("{task.description}"))
            self.bar = Progress(*columns, console=console, transient=False)
            self.bar.start()
            self.task = self.bar.add_task("compiling …", total=None)

    def __call__(self, progress: Progress) -> None:
        """Shows the present state."""
        if self.bar is not None:
            self.bar.update(self.task, description=progress.line(), total=progress.total, completed=progress.steps)
        elif time.monotonic() - self.last > self.every or progress.steps >= progress.total:
            self.last = time.monotonic()
            print(progress.line(), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leaves the last state standing."""
        if self.bar is not None:
            self.bar.stop()
