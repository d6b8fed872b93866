"""`saplan plot` and `saplan card`."""

from dataclasses import dataclass
from pathlib import Path

from saplan.cli.options import read_options, take_first
from saplan.cli.worlds import named_world
from saplan.errors import InputError


@dataclass(frozen=True)
class Plot:
    """Draw the training of a run from its metrics: success, attempts, changes, examples. RUN is a directory."""

    out: Path | None = None
    """The picture to write, .png, .pdf or .svg; by default RUN/training.png."""


def plot_command(arguments: list[str]) -> None:
    """`saplan plot RUN`."""
    run, rest = take_first("a run directory", "plot runs/switches-0", arguments)
    options = read_options(Plot, "plot RUN", rest)
    out = options.out or Path(run) / "training.png"
    if out.suffix not in (".png", ".pdf", ".svg"):
        raise InputError(f"--out must end in .png, .pdf or .svg, got {str(out)!r}")

    import io

    from saplan.experiments.run_plot import plot_run
    from saplan.storage.files import replace_file

    data = io.BytesIO()
    plot_run(run).savefig(data, format=out.suffix[1:], dpi=130)
    replace_file(out, data.getvalue())
    print(f"the figure is in {out}")


@dataclass(frozen=True)
class Card:
    """Write a model card beside an agent, RUN/README.md with pictures: what it was trained on, its success, how to use
    it. The directory can then be shared, and `saplan.load` reads it from a Hugging Face repository too.
    """

    tasks: int = 200
    """Tasks of the evaluation."""
    budget: int = 150
    """Steps allowed per task."""
    world: str | None = None
    """The world of a run that is not in one of our games, as `my_world.py:name`; the file is run."""


def card_command(arguments: list[str]) -> None:
    """`saplan card RUN`."""
    run, rest = take_first("a run directory", "card runs/switches-0", arguments)
    options = read_options(Card, "card RUN", rest)
    for option, value in (("--tasks", options.tasks), ("--budget", options.budget)):
        if not 1 <= value <= 100_000:
            raise InputError(f"{option} must lie in 1..100000, got {value}")
    if not Path(run).is_dir():
        raise InputError(f"no run directory {run!r}")

    from saplan.experiments.card import write_card

    first, *pictures = write_card(Path(run), options.tasks, options.budget, named_world(options.world))
    print(f"the card is in {first}" + (f", with {', '.join(path.name for path in pictures)}" if pictures else ""))
