"""Training runs: saved to disk as they proceed, and resumable after any interruption."""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saplan.errors import InputError, NotFiniteError, StoppedError, say
from saplan.games import Game
from saplan.methods.agent import Agent
from saplan.rl.settings import Settings
from saplan.training.checkpoint import Checkpoint
from saplan.training.config import RunConfig, is_ours, run_config
from saplan.training.loop import Loop
from saplan.training.progress import Progress, ProgressCallback, mean_progress, shown
from saplan.training.provenance import command, provenance
from saplan.training.run_directory import CONFIG, RunDirectory, begin_run, read_config, reopen_run
from saplan.training.store import save_agent
from saplan.training.tensorboard import TensorBoardLog, check_log

SAVE_EVERY = 60.0


@dataclass(frozen=True)
class RunOptions:
    """How a training runs; none of this is part of its configuration."""

    progress: ProgressCallback | None = None
    """Called after every chunk of updates."""
    save_every: float = SAVE_EVERY
    """Seconds between two checkpoints."""
    chunk: int | None = None
    """Updates per compiled program, which do not affect the result."""
    devices: int = 1
    """Devices that share the lanes (0: all that JAX finds), which affect the result by rounding alone."""
    log: str = ""
    """`tensorboard` also writes the metrics for TensorBoard, into the run directory."""


DEFAULT_OPTIONS = RunOptions()


def train(
    game: Game[Any] | str,
    steps: int | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    out: Path | str | None = None,
    eval_points: int = 5,
    eval_tasks: int | None = None,
    progress: ProgressCallback | bool | None = None,
    method: str = "structured",
    save_every: float = SAVE_EVERY,
    chunk: int | None = None,
    devices: int = 1,
    log: str = "",
) -> Agent:
    """Train an agent on a game without any task, and return it.

    `out` is a directory for the configuration, metrics, checkpoints and the agent. The agent is evaluated
    `eval_points` times on `eval_tasks` held-back tasks: at the end, half-way, at a quarter, and so on (0: never). By
    default there are up to 200 tasks, fewer in a training of less than 1.5 M steps.
    In a terminal or notebook a bar shows the progress; `progress=False` hides it, True shows it anywhere, and a
    function is called with it. See `RunOptions` for `save_every`, `chunk`, `devices` and `log`.
    """
    config = run_config(game, steps, seed, settings, method, eval_points, eval_tasks)
    outs = None if out is None else [out]
    with shown(progress) as callback:
        return train_runs([config], outs, RunOptions(callback, save_every, chunk, devices, log))[0]


def resume(
    out: Path | str,
    world: Game[Any] | None = None,
    wanted: RunConfig | None = None,
    progress: ProgressCallback | bool | None = None,
    save_every: float = SAVE_EVERY,
    chunk: int | None = None,
    devices: int = 1,
    log: str = "",
) -> Agent:
    """Resume a run from its newest intact checkpoint, train to the end and return the agent.

    On a CPU the result is the same, bit by bit, as without the interruption. A run in a `world` of your own needs that
    world. `wanted` is the configuration that the caller expects; a run with another one is left untouched. For
    `progress` see `train`.
    """
    config = read_config(Path(out), world) if wanted is None else wanted
    with shown(progress) as callback:
        return train_runs([config], [out], RunOptions(callback, save_every, chunk, devices, log), resume=True)[0]


def train_runs(
    configs: list[RunConfig],
    outs: Sequence[Path | str] | None,
    options: RunOptions = DEFAULT_OPTIONS,
    resume: bool = False,
) -> list[Agent]:
    """Train several agents side by side, whose configurations differ in their seeds alone.

    They share one program, which on a GPU takes little longer than for one agent. With `resume`, a directory may
    already hold its run, interrupted at any point: the runs then continue from the newest checkpoints that all of them
    have.
    """
    check_log(options.log)
    if options.log and not outs:
        raise InputError(f"a log needs a run directory to be written to: pass `out` with `log={options.log!r}`")
    with contextlib.ExitStack() as stack:
        runs = []
        for out, config in zip(outs or (), configs, strict=False):
            exists = resume and (Path(out) / CONFIG).exists()
            run = reopen_run(Path(out), config) if exists else begin_run(Path(out), config)
            stack.callback(run.close)
            run.check_newest()
            runs.append(run)
        loop = Loop(configs, options.chunk, options.devices)
        found = _newest_common(runs, loop.outline()) if resume else None
        if found:
            loop.restore(found)
            names = " ".join(str(run.path) for run in runs)
            log_warning(
                f"resuming {names} at {loop.done * loop.per_update} steps"
                if loop.done < loop.updates
                else f"{names}: all {loop.done * loop.per_update} steps are done, nothing is left to train"
            )
        for k, run in enumerate(runs):
            run.open_metrics(found[k].host.metrics_bytes if found else 0)
        steps = loop.done * loop.per_update
        logs = [TensorBoardLog(run.path, steps) for run in runs] if options.log else []
        for log in logs:
            stack.callback(log.close)
        return Training(loop, runs, options, logs).run()


def _newest_common(runs: list[RunDirectory], outline: Any) -> list[Checkpoint] | None:
    """The newest checkpoints of the same update that all runs have, or None."""
    at_most: int | None = None
    while True:
        found = []
        for run in runs:
            newest, damaged = run.newest(outline, at_most)
            for line in damaged:
                log_warning(line)
            if newest is None:
                return None
            found.append(newest)
        at_most = min(one.updates for one in found)
        if all(one.updates == at_most for one in found):
            return found


class Training:
    """One loop and the directories that it saves to, none or one per seed."""

    def __init__(
        self, loop: Loop, runs: list[RunDirectory], options: RunOptions, logs: Sequence[TensorBoardLog] = ()
    ) -> None:
        """The loop may have been restored from checkpoints."""
        self.loop, self.runs, self.options, self.logs = loop, runs, options, logs

    def run(self) -> list[Agent]:
        """Train to the end, saving at intervals and on a request to stop."""
        loop = self.loop
        with _stop_requests(bool(self.runs)) as asked:
            saved = time.monotonic()
            if loop.done == 0:
                self._save()
            while loop.done < loop.updates:
                self._advance(asked)
                last = bool(asked) or loop.done == loop.updates
                if last or time.monotonic() - saved >= self.options.save_every:
                    self._try_to_save(last)
                    saved = time.monotonic()
                if asked and loop.done < loop.updates:
                    raise StoppedError(asked[0], f"stopped{self._resumable()}")
        agents = loop.agents()
        for run, agent in zip(self.runs, agents, strict=False):
            steps = loop.done * loop.per_update
            about = {"steps_trained": steps, "command": command(run.config), **provenance()}
            save_agent(run.path, agent, run.config, about=about)
        return agents

    def _advance(self, asked: list[int]) -> None:
        """Make one chunk of updates and report it."""
        try:
            each = self.loop.chunk(hurry=lambda: bool(asked))
        except NotFiniteError as error:
            raise NotFiniteError(f"training stopped: {error}{self._resumable()}") from None
        except InputError as error:  # the world failed
            raise InputError(f"training stopped: {error}{self._resumable()}") from error
        for run, progress in zip(self.runs, each, strict=False):
            run.log(vars(progress))
        for log, progress in zip(self.logs, each, strict=False):
            log.write(progress)
        if each[0].evaluated and not self.loop.eval_tasks:
            self._keep_agents(each[0])
        if self.options.progress is not None:
            self.options.progress(mean_progress(each))

    def _keep_agents(self, progress: Progress) -> None:
        for run, agent in zip(self.runs, self.loop.agents(), strict=False):
            save_agent(kept_agent(run.path, progress.steps), agent, run.config, half=True)

    def _save(self) -> None:
        for run, checkpoint in zip(self.runs, self.loop.checkpoints(), strict=False):
            run.save(checkpoint)

    def _try_to_save(self, last: bool) -> None:
        """Save; a failure is an error only if this is the `last` save."""
        try:
            self._save()
        except InputError as error:
            if last:
                raise InputError(f"{error}{self._resumable()}") from None
            log_warning(f"{error}; training continues{self._resumable()}")

    def _resumable(self) -> str:
        """The end of a sentence that says where the runs can be resumed."""
        saved = [run.saved for run in self.runs if run.saved is not None]
        if not saved:
            return "; nothing is saved"
        paths = " ".join(str(run.path) for run in self.runs)
        ours = is_ours(self.loop.game)
        again = f"saplan train --resume {paths}" if ours else f"saplan.resume({paths!r}, WORLD)"
        return f"; saved at {min(saved) * self.loop.per_update} steps (`{again}`)"


def kept_agent(run: Path, steps: int) -> Path:
    """The directory of an agent that is saved during training for a later evaluation."""
    return run / "evaluations" / str(steps)


@contextlib.contextmanager
def _stop_requests(enabled: bool) -> Iterator[list[int]]:
    """A list that receives SIGINT and SIGTERM. A second Ctrl-C raises `KeyboardInterrupt`."""
    asked: list[int] = []
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: Any) -> None:
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.append(number)
        log_warning("stopping after this chunk, which is saved")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def log_warning(text: str) -> None:
    """Print a line that does not end training."""
    say(text)
