"""`saplan label` and `saplan fit-attributes`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from saplan.cli.options import check_number, read_options, take_first, take_game
from saplan.errors import InputError

Rules = TypeVar("Rules")
Numbers = TypeVar("Numbers")


@dataclass(frozen=True)
class Label(Generic[Rules]):
    """Write pairs of observations and attributes to a file, from states all over a game, to learn attributes from."""

    game: Rules
    pairs: int = 100_000
    """Number of pairs."""
    out: Path | None = None
    """The file; by default labels/GAME.safetensors."""
    observation: str = "words"
    """Kind of observation: `words` or `picture`."""
    seed: int = 0
    """Seed of the states."""


def label_command(arguments: list[str]) -> None:
    """`saplan label GAME`."""
    name, rest = take_game("label", arguments)

    from saplan.games import GAMES
    from saplan.perception.labels import check_bytes, draw_labels, game_labels, write_labels
    from saplan.perception.observation import Observer
    from saplan.training.progress import Counter

    options = read_options(Label, f"label {name}", rest, (GAMES[name],), Label(game=GAMES[name]()))
    check_number("--seed", options.seed)
    if not 1 <= options.pairs <= 10_000_000:
        raise InputError(f"--pairs must lie in 1..10000000, got {options.pairs}")
    out = options.out or Path("labels") / f"{name}.safetensors"
    observer = Observer(options.game, options.observation)
    check_bytes(options.pairs * (observer.size + 4 * options.game.space.size))
    count = Counter("pairs", options.pairs)
    observations, rho = draw_labels(options.game, observer, options.pairs, options.seed, count)
    count.close()
    write_labels(out, game_labels(options.game, options.observation, observations, rho))
    print(f"{out} holds {len(rho)} pairs: try `saplan fit-attributes {out}`")


@dataclass(frozen=True)
class FitAttributes(Generic[Numbers]):
    """Learn to read attributes from observations. FILE holds labelled pairs, as `saplan label` writes them."""

    settings: Numbers
    out: Path | None = None
    """The file to write; by default the name of the labels with `-fitted` appended."""
    geometry: str = "structured"
    """The loss: `structured` (each block's own geometry), `squared` (of plain numbers) or `one-hot` (cross-entropy)."""
    tests: float = 0.1
    """Share of the pairs held out to measure errors, 5,000 at most."""
    seed: int = 0
    """Seed of all randomness."""


def fit_attributes_command(arguments: list[str]) -> None:
    """`saplan fit-attributes FILE`."""
    name, rest = take_first("a file of labels", "fit-attributes labels/switches.safetensors", arguments)
    file = Path(name)

    from saplan.perception.fit import check_fit, fit_labels
    from saplan.perception.fitted import write_fitted
    from saplan.perception.labels import read_labels
    from saplan.perception.regressor import RegressorSettings
    from saplan.training.progress import Counter

    default = FitAttributes(settings=RegressorSettings())
    options = read_options(FitAttributes, "fit-attributes FILE", rest, (RegressorSettings,), default)
    check_number("--seed", options.seed)
    if not 0 <= options.tests <= 0.5:
        raise InputError(f"--tests must lie in 0..0.5, got {options.tests}")
    labels = read_labels(file)
    check_fit(labels, options.settings, options.geometry)
    out = options.out or file.with_name(f"{file.stem}-fitted.safetensors")
    count = Counter("steps", options.settings.steps)
    tests = min(5000, round(options.tests * len(labels.rho)))
    fitted = fit_labels(labels, options.settings, options.seed, options.geometry, count, tests)
    count.close()
    write_fitted(out, fitted)
    if tests:
        print(fit_report(fitted.about["test"], tests))
    print(f"the attributes are in {out}: try `saplan train {labels.source.game or 'GAME'} --attributes fitted:{out}`")


def fit_report(measured: dict[str, Any], tests: int) -> str:
    """The errors of fitted attributes on held-out pairs, as text."""
    lines = [f"errors on {tests} held-out pairs:"]
    for name, error in measured["error"].items():
        lines.append(f"  {name:<16} {error:8.3%}   off by {measured['absolute_error'][name]:.3f} on average")
    lines.append(f"  {'any of them':<16} {measured['any_error']:8.3%}")
    return "\n".join([*lines, f"confidence is off by {measured['calibration_error']:.3f} on average"])
