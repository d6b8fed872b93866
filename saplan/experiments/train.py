"""The host loop of training: compiled chunks, and between them progress, metrics and a look at held-back tasks."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from saplan.baselines.methods import AnyAgent, find_method
from saplan.errors import InputError
from saplan.experiments.evaluate import evaluate
from saplan.games import Game, make_game
from saplan.model.settings import Settings
from saplan.model.training import Report, train_chunk, train_chunk_of_each
from saplan.model.walk import FAITHFUL, IMPROVED
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
    looked: bool
    """Whether that was just now."""
    known: int
    """Size of 𝓑, or of what a method has in its place."""
    counts: str
    """What that is called."""
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
            f"{self.counts} {self.known}  +{self.positives} -{self.negatives}  {left} s left"
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
    method: str = "structured",
) -> AnyAgent:
    """Trains an agent on a game without any task, and returns it.

    `out` is a directory for the configuration, metrics and the agent; `looks` is how often held-back tasks are tried:
    at the end, half-way, at a quarter, and so on (0: never); `show` is called after every chunk.
    """
    outs = None if out is None else [out]
    return train_seeds(game, steps, [seed], settings, outs, looks, look_tasks, show, method)[0]


def train_seeds(
    game: Game[Any] | str,
    steps: int | None,
    seeds: Sequence[int],
    settings: Settings | None = None,
    outs: Sequence[Path | str] | None = None,
    looks: int = 5,
    look_tasks: int = 200,
    show: Callable[[Progress], None] | None = None,
    method: str = "structured",
) -> list[AnyAgent]:
    """Trains one agent per seed side by side in one program, which on a GPU takes little longer than one agent."""
    game = make_game(game) if isinstance(game, str) else game
    settings = find_method(method).settings_for(game, False) if settings is None else settings
    steps = DEFAULT_STEPS.get(game.name, 5_000_000) if steps is None else steps
    configs = [RunConfig(game, settings, steps, seed, method) for seed in seeds]
    per_update = settings.lanes * settings.rollout
    if steps < per_update:
        raise InputError(f"steps must be at least lanes × rollout = {per_update}, got {steps}")
    folders = [] if outs is None else [Path(out) for out in outs]
    metrics = [MetricsFile(folder / "metrics.jsonl") for folder in folders]
    loop = Loop(configs, steps // per_update, looks, look_tasks)
    while loop.done < loop.updates:
        each = loop.chunk()
        for file, progress in zip(metrics, each, strict=False):
            file.write(vars(progress))
        if show is not None:
            show(together(each))
    agents = loop.agents()
    for folder, file, agent, config in zip(folders, metrics, agents, configs, strict=False):
        file.close()
        about = {"steps_trained": loop.done * per_update, "command": command(config), "hardware": hardware()}
        save_agent(folder, agent, config, about=about)
    return agents


def command(config: RunConfig) -> str:
    """The command line that trains this again (rules other than the defaults are in the manifest)."""
    words = [f"saplan train {config.game.name} --steps {config.steps} --seed {config.seed}"]
    if config.method != "structured":
        words.append(f"--method {config.method}")
    usual, settings = (find_method(config.method).settings_for(config.game, paper) for paper in (False, True))
    if len(differences(config.settings, settings)) < len(differences(config.settings, usual)):
        words.append("--paper")
        usual = settings
    for name, value in differences(config.settings, usual).items():
        option = name.replace("_", "-")
        words.append(
            (f"--{option}" if value else f"--no-{option}") if isinstance(value, bool) else f"--{option} {value}"
        )
    return " ".join(words)


def differences(settings: Settings, usual: Settings) -> dict[str, Any]:
    """The settings that are not the usual ones."""
    return {name: value for name, value in vars(settings).items() if value != getattr(usual, name)}


def hardware() -> str:
    """What this program computes on."""
    device = jax.devices()[0]
    return f"{os.cpu_count()} CPU cores" if device.platform == "cpu" else f"one {device.device_kind}"


def together(each: list[Progress]) -> Progress:
    """The mean over seeds."""
    mean = {
        name: sum(values) / len(each)
        for name, values in ((n, [getattr(p, n) for p in each]) for n in Progress.__dataclass_fields__)
        if not isinstance(values[0], str | bool) and None not in values
    }
    whole = {name: int(mean[name]) for name in ("steps", "total", "known", "overflow", "positives", "negatives")}
    return replace(each[0], **{**mean, **whole})


def row(stacked: Any, k: int) -> Any:
    """One of several trees that are stacked leaf by leaf."""
    return jax.tree.map(lambda leaf: leaf[k], stacked)


class Loop:
    """Training in chunks."""

    def __init__(self, configs: list[RunConfig], updates: int, looks: int, look_tasks: int) -> None:
        """Nothing learnt yet. The configurations differ in their seeds alone."""
        self.configs, self.updates, self.look_tasks = configs, updates, look_tasks
        self.game, self.settings = configs[0].game, configs[0].settings
        self.method = find_method(configs[0].method)
        each = [self.method.begin(self.game, self.settings, jax.random.key(config.seed)) for config in configs]
        self.alone = len(each) == 1
        self.learner: Any = each[0] if self.alone else jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
        self.size = max(1, min(16, updates // 8))
        self.looks_at = [-(-updates // 2**k) for k in reversed(range(looks))]
        self.done = 0
        self.positives, self.negatives = np.zeros(len(each), int), np.zeros(len(each), int)
        self.success: list[float | None] = [None] * len(each)
        self.began = self.timed_from = time.monotonic()
        self.untimed = 0

    def learners(self) -> list[Any]:
        """Each by itself."""
        if self.alone:
            return [self.learner]
        return [row(self.learner, k) for k in range(len(self.configs))]

    def agents(self) -> list[AnyAgent]:
        """The agents as they are now."""
        return [self.method.agent_of(learner, self.game, self.settings) for learner in self.learners()]

    def chunk(self) -> list[Progress]:
        """Some updates, and a look at held-back tasks when one is due."""
        count = min(self.size, self.updates - self.done)
        advance = train_chunk if self.alone else train_chunk_of_each
        self.learner, report = advance(
            self.game, self.settings, self.updates, self.size, jnp.int32(count), self.learner, self.method.update
        )
        report = jax.tree.map(lambda x: np.asarray(x).reshape(len(self.configs), self.size)[:, :count], report)
        if self.done == 0:  # the first chunk compiled; speed is that of the others
            self.timed_from, self.untimed = time.monotonic(), count
        self.done += count
        elapsed = time.monotonic() - self.timed_from
        looks = bool(self.looks_at) and self.done >= self.looks_at[0]
        if looks:
            self.looks_at = [due for due in self.looks_at if due > self.done]
            planning = IMPROVED if self.settings.relabel else FAITHFUL
            looked = (evaluate(agent, self.look_tasks, HELD_BACK_SEED, planning=planning) for agent in self.agents())
            self.success = [float(walked.success.mean()) for walked in looked]
            self.timed_from += time.monotonic() - self.timed_from - elapsed
        self.positives += report.found.sum(axis=1)
        self.negatives += report.failed.sum(axis=1)
        return [self._progress(k, row(report, k), elapsed, looks) for k in range(len(self.configs))]

    def _progress(self, k: int, report: Report, elapsed: float, looked: bool) -> Progress:
        per_update = self.settings.lanes * self.settings.rollout
        return Progress(
            steps=self.done * per_update,
            total=self.updates * per_update,
            seconds=time.monotonic() - self.began,
            steps_per_second=(self.done - self.untimed) * per_update / max(elapsed, 1e-9),
            success=self.success[k],
            looked=looked,
            known=int(report.known[-1]),
            counts=self.method.counts,
            overflow=int(report.overflow[-1]),
            positives=int(self.positives[k]),
            negatives=int(self.negatives[k]),
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
