"""Training as a person asks for it: a run that leaves everything on disk, and can be gone on with after any end."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from saplan.errors import InputError, NotFiniteError, StoppedError, say
from saplan.games import GAMES, Game, make_game
from saplan.methods.registry import AnyAgent, find_method
from saplan.rl.settings import Settings
from saplan.training.checkpoint import Checkpoint
from saplan.training.config import ATTRIBUTES, MOST, RunConfig, is_ours
from saplan.training.loop import Loop
from saplan.training.progress import Progress, together
from saplan.training.provenance import code, hardware, versions
from saplan.training.run_directory import CONFIG, RunDirectory, begin_run, read_config, reopen_run
from saplan.training.store import save_agent

DEFAULT_STEPS = {"switches": 5_000_000, "exchange": 4_000_000, "mining": 25_000_000}
"""A tenth of the paper's budget where the paper states one."""
SAVE_EVERY = 60.0
"""Seconds between two checkpoints."""
Show = Callable[[Progress], None]


def train(
    game: Game[Any] | str,
    steps: int | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    out: Path | str | None = None,
    eval_points: int = 5,
    eval_tasks: int = 200,
    show: Show | None = None,
    method: str = "structured",
    save_every: float = SAVE_EVERY,
    chunk: int | None = None,
    devices: int = 1,
) -> AnyAgent:
    """Trains an agent on a game without any task, and returns it.

    `out` is a directory for the configuration, metrics, checkpoints and the agent; `eval_points` is how often the agent
    tries held-back tasks: at the end, half-way, at a quarter, and so on (0: never); `show` is called after every chunk;
    `chunk` is how many updates one compiled program makes, which changes nothing that is learnt;
    `devices` share the lanes (0: all that JAX sees), which changes what is learnt by rounding alone.
    """
    outs = None if out is None else [out]
    return train_seeds(
        game, steps, [seed], settings, outs, eval_points, eval_tasks, show, method, save_every, chunk, devices
    )[0]


def train_seeds(
    game: Game[Any] | str,
    steps: int | None,
    seeds: Sequence[int],
    settings: Settings | None = None,
    outs: Sequence[Path | str] | None = None,
    eval_points: int = 5,
    eval_tasks: int = 200,
    show: Show | None = None,
    method: str = "structured",
    save_every: float = SAVE_EVERY,
    chunk: int | None = None,
    devices: int = 1,
) -> list[AnyAgent]:
    """Trains one agent per seed side by side in one program, which on a GPU takes little longer than one agent."""
    configs = [run_config(game, steps, seed, settings, method, eval_points, eval_tasks) for seed in seeds]
    paths = None if outs is None else [Path(out) for out in outs]
    return train_runs(configs, paths, show, save_every, chunk, devices)


def train_runs(
    configs: list[RunConfig],
    outs: Sequence[Path] | None,
    show: Show | None = None,
    save_every: float = SAVE_EVERY,
    chunk: int | None = None,
    devices: int = 1,
    go_on: bool = False,
) -> list[AnyAgent]:
    """The same for configurations that differ in their seeds alone.

    With `go_on`, a directory may hold its run already, cut off wherever it was: the runs then go on from the newest
    checkpoints that all of them have.
    """
    with contextlib.ExitStack() as stack:
        runs = []
        for out, config in zip(outs or (), configs, strict=False):
            there = go_on and (out / CONFIG).exists()
            runs.append(reopen_run(out, config) if there else begin_run(out, config))
            stack.callback(runs[-1].close)
            runs[-1].check_config()
        loop = Loop(configs, chunk, devices)
        found = _newest_of_all(runs, loop.outline()) if go_on else None
        if found:
            loop.restore(found)
            complain(f"going on with {', '.join(str(run.path) for run in runs)} at {loop.done * loop.per_update} steps")
        for k, run in enumerate(runs):
            run.open_metrics(found[k].host["metrics_bytes"] if found else 0)
        return _carry_out(loop, runs, show, save_every)


def resume(
    out: Path | str,
    world: Game[Any] | None = None,
    wanted: RunConfig | None = None,
    show: Show | None = None,
    save_every: float = SAVE_EVERY,
    chunk: int | None = None,
    devices: int = 1,
) -> AnyAgent:
    """Resumes a run from its newest checkpoint that is whole, trains to the end and returns the agent.

    On a CPU the end is the same, bit by bit, as if it had never stopped. A run in a `world` of your own needs that
    world. `wanted` is what a person thinks the configuration is; a run of another one is not touched.
    """
    return resume_seeds([out], world, wanted, show, save_every, chunk, devices)[0]


def resume_seeds(
    outs: Sequence[Path | str],
    world: Game[Any] | None = None,
    wanted: RunConfig | None = None,
    show: Show | None = None,
    save_every: float = SAVE_EVERY,
    chunk: int | None = None,
    devices: int = 1,
) -> list[AnyAgent]:
    """The same for several runs that were trained side by side."""
    paths = [Path(out) for out in outs]
    configs = [wanted] if wanted is not None else [read_config(path, world) for path in paths]
    return train_runs(configs, paths, show, save_every, chunk, devices, go_on=True)


def run_config(
    game: Game[Any] | str,
    steps: int | None,
    seed: int,
    settings: Settings | None,
    method: str,
    eval_points: int = 5,
    eval_tasks: int = 200,
) -> RunConfig:
    """The configuration of a run, with defaults for what is not given."""
    game = make_game(game) if isinstance(game, str) else game
    settings = find_method(method).settings_for(game, False) if settings is None else settings
    steps = DEFAULT_STEPS.get(game.name, 5_000_000) if steps is None else steps
    free = [name for name, alone in zip(game.space.names, game.space.exogenous, strict=True) if alone]
    if free and method != "structured":
        raise InputError(f"{free[0]} changes by itself, which only the structured method can leave out of its plans")
    for name, value in (("steps", steps), ("seed", seed), ("eval-points", eval_points), ("eval-tasks", eval_tasks)):
        if value > MOST[name.replace("-", "_")]:
            raise InputError(f"{name} must be at most {MOST[name.replace('-', '_')]}, got {value}")
    per_update = settings.lanes * settings.rollout
    if steps < per_update:
        raise InputError(f"steps must be at least lanes × rollout = {per_update}, got {steps}")
    return RunConfig(game, settings, steps, seed, method, eval_points, eval_tasks)


def _newest_of_all(runs: list[RunDirectory], outline: Any) -> list[Checkpoint] | None:
    """The newest checkpoints of the same update that all runs have; None if there is none."""
    at_most: int | None = None
    while True:
        found = []
        for run in runs:
            newest, wrong = run.newest(outline, at_most)
            for line in wrong:
                complain(line)
            if newest is None:
                return None
            found.append(newest)
        at_most = min(one.updates for one in found)
        if all(one.updates == at_most for one in found):
            return found


def _carry_out(loop: Loop, runs: list[RunDirectory], show: Show | None, save_every: float) -> list[AnyAgent]:
    """Trains to the end, saving on the way and when asked to stop."""
    with _stop_requests(bool(runs)) as asked:
        saved = time.monotonic()
        if loop.done == 0:
            _save(loop, runs)
        while loop.done < loop.updates:
            try:
                each = loop.chunk(hurry=lambda: bool(asked))
            except NotFiniteError as error:
                raise NotFiniteError(f"training stopped: {error}{_standing(loop, runs)}") from None
            except InputError as error:  # the world failed
                raise InputError(f"training stopped: {error}{_standing(loop, runs)}") from error
            for run, progress in zip(runs, each, strict=False):
                run.log(vars(progress))
            if each[0].evaluated and not loop.eval_tasks:
                for run, agent in zip(runs, loop.agents(), strict=False):
                    save_agent(kept_agent(run.path, each[0].steps), agent, run.config, half=True)
            if show is not None:
                show(together(each))
            finished = loop.done == loop.updates
            if finished or asked or time.monotonic() - saved >= save_every:
                try:
                    _save(loop, runs)
                except InputError as error:
                    if finished or asked:
                        raise InputError(f"{error}{_standing(loop, runs)}") from None
                    complain(f"{error}; training goes on{_standing(loop, runs)}")
                saved = time.monotonic()
            if asked and not finished:
                raise StoppedError(asked[0], f"stopped{_standing(loop, runs)}")
    agents = loop.agents()
    for run, agent in zip(runs, agents, strict=False):
        about = {"steps_trained": loop.done * loop.per_update, "command": command(run.config), "hardware": hardware(),
                 "code": code(), "versions": versions()}  # fmt: skip
        save_agent(run.path, agent, run.config, about=about)
    return agents


def kept_agent(run: Path, steps: int) -> Path:
    """Where an agent is kept that is to be tried later."""
    return run / "evaluations" / str(steps)


def _save(loop: Loop, runs: list[RunDirectory]) -> None:
    for run, checkpoint in zip(runs, loop.checkpoints(), strict=False):
        run.save(checkpoint.updates, checkpoint.learner, checkpoint.host, checkpoint.world)


def _standing(loop: Loop, runs: list[RunDirectory]) -> str:
    """Where the runs can be gone on with, as the end of a sentence."""
    saved = [run.saved for run in runs if run.saved is not None]
    if not saved:
        return "; nothing is saved"
    paths = " ".join(str(run.path) for run in runs)
    again = f"saplan train --resume {paths}" if is_ours(loop.game) else f"saplan.resume({paths!r}, WORLD)"
    return f"; saved at {min(saved) * loop.per_update} steps (`{again}`)"


@contextlib.contextmanager
def _stop_requests(wanted: bool) -> Iterator[list[int]]:
    """A list that gets the signal when a person or the system asks to stop. A second Ctrl-C stops at once."""
    asked: list[int] = []
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: Any) -> None:
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.append(number)
        complain("stopping and saving after the present chunk")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def complain(text: str) -> None:
    """Tells a person something that does not end training."""
    say(text)


def command(config: RunConfig) -> str:
    """The command line that trains this again (rules other than the defaults are in the manifest)."""
    words = [f"saplan train {config.game.name} --steps {config.steps} --seed {config.seed}"]
    if config.game.name not in GAMES:
        words = [f"saplan.train(WORLD, {config.steps}, {config.seed}), where WORLD is {config.game.name}, and settings"]
    if config.game.misread:
        words.append(f"--attributes fitted:{ATTRIBUTES}")
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
