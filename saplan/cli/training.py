"""`saplan train` and `saplan demo`."""

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from saplan.cli.options import (
    check_number,
    check_seconds,
    in_colour,
    number_of_devices,
    read_options,
    take_game,
    value_of,
)
from saplan.cli.threads import train_in_one_thread
from saplan.errors import InputError

Rules = TypeVar("Rules")
Numbers = TypeVar("Numbers")


@dataclass(frozen=True)
class Train(Generic[Rules, Numbers]):
    """Train an agent on a game without any task. The run directory holds configuration, metrics and agent.

    `--paper` starts from the paper's variant; the other options then change that.
    """

    game: Rules
    settings: Numbers
    method: str = "structured"
    """structured, unstructured or curriculum; each has its own settings."""
    steps: int | None = None
    """Environment steps in all; by default a tenth of the paper's on switches and exchange, and 25 M on mining."""
    seed: int = 0
    """Seed of all randomness."""
    out: Path | None = None
    """The run directory; by default runs/GAME-SEED, with the method's name unless it is structured."""
    eval_points: int = 5
    """How often to evaluate on held-back tasks: at the end, half-way, at a quarter, and so on."""
    save_every: float = 60.0
    """Seconds between two checkpoints. Ctrl-C and SIGTERM also save."""
    devices: str = "1"
    """Number of devices that share the lanes, or `all`."""
    log: str = ""
    """`tensorboard` also writes the metrics for TensorBoard, into RUN/tensorboard (extra `tensorboard`)."""
    attributes: str | None = None
    """Read ρ from observations, by `fitted:FILE` from `saplan fit-attributes`, instead of the game's own f. Tasks are
    still judged by the true attributes."""
    space: str = "declared"
    """The algebra of the attributes: `declared` by the game; `auto`, found from play before training, and asked for
    again by a scout that trains for a tenth of the steps; or a file that `saplan suggest --json` wrote."""
    resume: Path | None = None
    """Resume the run in this directory: `saplan train --resume RUN` is enough. Any other options must be those of the
    run."""


@dataclass(frozen=True)
class Resume:
    """Resume a run from its newest checkpoint, with the same result as if it had not stopped."""

    resume: Path
    """The run directory."""
    save_every: float = 60.0
    """Seconds between two checkpoints."""
    devices: str = "1"
    """Number of devices that share the lanes, or `all`."""
    log: str = ""
    """`tensorboard` also writes the metrics for TensorBoard, into RUN/tensorboard (extra `tensorboard`)."""


def train_command(arguments: list[str]) -> None:
    """`saplan train GAME`, or `saplan train --resume RUN`."""
    train_in_one_thread()
    if value_of("--resume", arguments, "") and arguments[0].startswith("-"):
        given = read_options(Resume, "train", arguments)
        out = given.resume
        check_seconds("--save-every", given.save_every)
        resume_run(out, None, given.save_every, given.devices, given.log)
    else:
        out = train_game(arguments)
    print(f"trained; the agent is in {out}: try `saplan evaluate {out}`")


def resume_run(out: Path, wanted: Any, save_every: float, devices: str, log: str) -> None:
    """Resumes a run with a progress bar."""
    from saplan.training.progress import ProgressBar
    from saplan.training.train import resume

    with contextlib.closing(ProgressBar()) as bar:
        count = number_of_devices(devices)
        resume(out, wanted=wanted, progress=bar, save_every=save_every, devices=count, log=log)


def train_game(arguments: list[str]) -> Path:
    """Trains from the arguments of `saplan train GAME`, whose options may name a run to resume."""
    name, rest = take_game("train", arguments)
    faithful = "--paper" in rest
    rest = [word for word in rest if word != "--paper"]

    from saplan.games import GAMES
    from saplan.methods.registry import find_method
    from saplan.methods.structured.settings import MISREADINGS, StructuredSettings
    from saplan.training.config import run_config
    from saplan.training.progress import ProgressBar
    from saplan.training.train import RunOptions, train_runs

    game, method = GAMES[name](), find_method(value_of("--method", rest, "structured"))
    usual = method.settings_for(game, faithful)
    if value_of("--attributes", rest, "") and isinstance(usual, StructuredSettings):
        usual = replace(usual, rare=MISREADINGS)
    default = Train(game=game, settings=usual, method=method.name)
    options = read_options(Train, f"train {name}", rest, (GAMES[name], method.settings), default)
    check_number("--seed", options.seed)
    check_number("--eval-points", options.eval_points)
    check_seconds("--save-every", options.save_every)
    given: Any = options.game
    if options.attributes is not None:
        given = fitted_game(given, options.attributes)
    if options.space != "declared" and options.resume is None:
        given = game_with_space(given, options)
    config = run_config(given, options.steps, options.seed, options.settings, method.name, options.eval_points)
    title = name if method.name == "structured" else f"{name}-{method.name}"
    out = options.resume or options.out or Path("runs") / f"{title}-{options.seed}"
    if options.resume is not None:
        # A found space is part of the run: it is not searched for again.
        given = None if options.space != "declared" else config
        resume_run(out, given, options.save_every, options.devices, options.log)
        return out
    with contextlib.closing(ProgressBar()) as bar:
        how = RunOptions(bar, options.save_every, devices=number_of_devices(options.devices), log=options.log)
        train_runs([config], [out], how)
    return out


def game_with_space(game: Any, options: Any) -> Any:
    """The game with the space that `--space` names."""
    if options.attributes is not None or options.method != "structured":
        raise InputError("--space needs the structured method and the game's own attributes")

    from saplan.training.config import run_config
    from saplan.training.space import AUTO, find_space, read_space

    if options.space != AUTO:
        return read_space(Path(options.space), game)
    steps = run_config(game, options.steps, options.seed, options.settings, options.method).steps
    return find_space(game, options.settings, steps, options.seed, print)


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
    """Train on switches, compare with the paper's figure, and execute one plan."""

    steps: int = 2_500_000
    """Environment steps: a twentieth of the paper's."""
    seed: int = 0
    """Seed of all randomness."""
    tasks: int = 1000
    """Test tasks."""


def demo_command(arguments: list[str]) -> None:
    """`saplan demo`."""
    train_in_one_thread()
    options = read_options(Demo, "demo", arguments)
    check_number("--seed", options.seed)

    from saplan.experiments.paper import PAPER
    from saplan.interpreter.program import without_compiling
    from saplan.render.narrate import narrate
    from saplan.training.evaluate import evaluate
    from saplan.training.progress import ProgressBar, patiently, waiting
    from saplan.training.train import train

    print(f"Training on switches, without any task, for {options.steps / 1e6:g} M steps (the paper: 50 M) ...")
    with contextlib.closing(ProgressBar()) as bar:
        agent = train("switches", options.steps, options.seed, eval_points=2, progress=bar)
    print(f"\nEvaluating on {options.tasks} tasks that it never saw, 150 steps each ...")
    with waiting("evaluating"):
        success = float(evaluate(agent, options.tasks).success.mean())
    print(f"success {success:.1%}   (paper: {PAPER['structured']['switches']:.1%} after 50 M steps)\n")
    with without_compiling():
        story = narrate(agent, "red=1 green=1 blue=1", options.seed, 150, in_colour(), anyway=True)
        for text in patiently(story, "planning"):
            print(text, flush=True)
