"""`saplan reproduce`."""

from dataclasses import dataclass
from pathlib import Path

from saplan.cli.options import number_of_devices, read
from saplan.errors import InputError, unknown_name


@dataclass(frozen=True)
class Reproduce:
    """Reproduce the paper: games × methods × seeds, each trained, evaluated, and written to a file of its own; then the
    tables and the figures. What is there is not computed again, and what was cut off goes on where it was.

    Without options: all games and methods, 5 seeds, the paper's budgets. `--quick` takes minutes on two cores.
    """

    out: Path = Path("reproduction")
    """Where results, runs, report.md and pictures go."""
    quick: bool = False
    """Half a million steps, 2 seeds and 150 tasks a cell: enough to see the order of the methods."""
    games: tuple[str, ...] = ()
    """Only these games."""
    methods: tuple[str, ...] = ()
    """Only these methods: structured, unstructured, curriculum, oracle. By default all that fit a game."""
    variants: tuple[str, ...] = ("default",)
    """Variants of training, `ablations` for all of them."""
    seeds: int | None = None
    """How many seeds, from 0 on."""
    steps: int | None = None
    """Environment steps per cell, in place of the paper's budget."""
    set: tuple[str, ...] = ()
    """Other settings, as NAME=NUMBER: `--set lanes=1024 minibatches=64` suits a GPU."""
    on: str = "here"
    """Where to compute: `here`, or `ray` for a Ray cluster, which is started if none is running."""
    devices: str = "1"
    """Devices that share the lanes of every run, or `all`."""
    draw: bool = False
    """Compute nothing: only write tables and figures of the results there are."""


def reproduce(arguments: list[str]) -> None:
    """`saplan reproduce`."""
    options = read(Reproduce, "reproduce", arguments)
    if options.on not in ("here", "ray"):
        raise unknown_name("place", options.on, ["here", "ray"])
    if options.steps is not None and not 1 <= options.steps < 2**40:
        raise InputError(f"--steps must be a number of environment steps, got {options.steps}")

    from saplan.experiments.reproduce import Wanted, check_numbers, report
    from saplan.experiments.reproduce import reproduce as compute
    from saplan.experiments.sweep import ABLATIONS, compute_all

    if options.draw:
        paths = report(options.out)
    else:
        variants = tuple(v for name in options.variants for v in (ABLATIONS if name == "ablations" else [name]))
        usual = Wanted()
        wanted = Wanted(
            options.games or usual.games, options.methods or None, variants, options.seeds, options.steps,
            options.quick, check_numbers(options.set), number_of_devices(options.devices),
        )  # fmt: skip
        how = compute_all
        if options.on == "ray":
            from saplan.experiments.ray_backend import compute_on_ray as how
        paths = compute(wanted, options.out, how)
    print(paths[0].read_text(encoding="utf-8"))
    print("written: " + ", ".join(str(path) for path in paths))
