"""`saplan train` and `saplan demo`."""

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from saplan.cli.options import check_number, check_seconds, in_colour, number_of_devices, read, take_game, value_of
from saplan.errors import InputError

Rules = TypeVar("Rules")
Numbers = TypeVar("Numbers")


@dataclass(frozen=True)
class Train(Generic[Rules, Numbers]):
    """Train an agent on a game, without any task; leaves a run directory with configuration, metrics and agent.

    `--paper` starts from the paper's variant; the other options then change that.
    """

    game: Rules
    settings: Numbers
    method: str = "structured"
    """structured, unstructured or curriculum; each has settings of its own."""
    steps: int | None = None
    """Environment steps, all of them counted; by default a tenth of the paper's on switches and
    exchange, and 25 M on mining."""
    seed: int = 0
    """Seed of everything random."""
    out: Path | None = None
    """The run directory; by default runs/GAME-SEED, with the method's name where it is another."""
    eval_points: int = 5
    """How often to try held-back tasks: at the end, half-way, at a quarter, and so on."""
    save_every: float = 60.0
    """Seconds between two checkpoints. Ctrl-C and SIGTERM save, too."""
    devices: str = "1"
    """Devices that share the lanes, or `all`."""
    attributes: str | None = None
    """Read ρ off what is seen, by `fitted:FILE` from `saplan fit-attributes`, in place of the game's own f. Tasks are
    still judged by the true attributes."""
    resume: Path | None = None
    """Go on with the run in this directory: `saplan train --resume RUN` is enough. Options that are given as well must
    be those of the run."""


@dataclass(frozen=True)
class Resume:
    """Go on with a run from its newest checkpoint, as if it had never stopped."""

    resume: Path
    """The run directory."""
    save_every: float = 60.0
    """Seconds between two checkpoints."""
    devices: str = "1"
    """Devices that share the lanes, or `all`."""


def train(arguments: list[str]) -> None:
    """`saplan train GAME`, or `saplan train --resume RUN`."""
    if value_of("--resume", arguments, "") and arguments[0].startswith("-"):
        given = read(Resume, "train", arguments)
        out = given.resume
        check_seconds("--save-every", given.save_every)
        go_on(out, None, given.save_every, given.devices)
    else:
        out = train_anew(arguments)
    print(f"trained; the agent is in {out}: try `saplan evaluate {out}`")


def go_on(out: Path, wanted: Any, save_every: float, devices: str) -> None:
    """Goes on with a run."""
    from saplan.render.progress_bar import ProgressBar
    from saplan.training.train import resume

    with contextlib.closing(ProgressBar()) as shower:
        resume(out, wanted=wanted, progress=shower, save_every=save_every, devices=number_of_devices(devices))


def train_anew(arguments: list[str]) -> Path:
    """`saplan train GAME`, whose options may also name a run to go on with."""
    name, rest = take_game("train", arguments)
    faithful = "--paper" in rest
    rest = [word for word in rest if word != "--paper"]

    from saplan.games import GAMES
    from saplan.methods.registry import find_method
    from saplan.methods.structured.settings import MISREADINGS, StructuredSettings
    from saplan.render.progress_bar import ProgressBar
    from saplan.training.config import run_config
    from saplan.training.train import RunOptions, train_runs

    game, method = GAMES[name](), find_method(value_of("--method", rest, "structured"))
    usual = method.settings_for(game, faithful)
    if value_of("--attributes", rest, "") and isinstance(usual, StructuredSettings):
        usual = replace(usual, rare=MISREADINGS)
    default = Train(game=game, settings=usual, method=method.name)
    options = read(Train, f"train {name}", rest, (GAMES[name], method.settings), default)
    check_number("--seed", options.seed)
    check_number("--eval-points", options.eval_points)
    check_seconds("--save-every", options.save_every)
    given: Any = options.game
    if options.attributes is not None:
        given = fitted_game(given, options.attributes)
    config = run_config(given, options.steps, options.seed, options.settings, method.name, options.eval_points)
    title = name if method.name == "structured" else f"{name}-{method.name}"
    out = options.resume or options.out or Path("runs") / f"{title}-{options.seed}"
    if options.resume is not None:
        go_on(out, config, options.save_every, options.devices)
        return out
    with contextlib.closing(ProgressBar()) as shower:
        devices = number_of_devices(options.devices)
        train_runs([config], [out], RunOptions(shower, options.save_every, devices=devices))
    return out


def fitted_game(game: Any, attributes: str) -> Any:
    """The game with the attributes that `--attributes` names."""
    kind, _, path = attributes.partition(":")
    if kind != "fitted" or not path:
        raise InputError(f"--attributes must be fitted:FILE, got {attributes!r}")

    from saplan.perception.fitted import read_fitted

    try:
        return read_fitted(Path(path)).view(game)
    except InputError as error:
        raise InputError(f"{path}: {error}" if path not in str(error) else str(error)) from None


@dataclass(frozen=True)
class Demo:
    """Train on switches, compare with the paper's figure, and carry out one plan."""

    steps: int = 2_500_000
    """Environment steps: a twentieth of the paper's."""
    seed: int = 0
    """Seed of everything random."""
    tasks: int = 1000
    """Test tasks."""


def demo(arguments: list[str]) -> None:
    """`saplan demo`."""
    options = read(Demo, "demo", arguments)
    check_number("--seed", options.seed)

    from saplan.experiments.evaluation_report import PAPER
    from saplan.render.narrate import narrate
    from saplan.render.progress_bar import ProgressBar
    from saplan.training.evaluate import evaluate as run_tasks
    from saplan.training.train import train as train_agent

    print(f"Training on switches, without any task, for {options.steps / 1e6:g} M steps (the paper: 50 M) ...")
    shower = ProgressBar()
    agent = train_agent("switches", options.steps, options.seed, eval_points=2, progress=shower)
    shower.close()
    print(f"\nTrying {options.tasks} tasks it never saw, 150 steps each ...")
    success = float(run_tasks(agent, options.tasks).success.mean())
    print(f"success {success:.1%}   (paper: {PAPER['structured']['switches']:.1%} after 50 M steps)\n")
    for text in narrate(agent, "red=1 green=1 blue=1", options.seed, 150, in_colour(), anyway=True):
        print(text, flush=True)
