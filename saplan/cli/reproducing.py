"""`saplan reproduce`."""

from dataclasses import dataclass
from pathlib import Path

from saplan.cli.options import number_of_devices, read_options
from saplan.errors import InputError, unknown_name


@dataclass(frozen=True)
class Reproduce:
    """Reproduce the paper: train and evaluate every game × method × seed, then write the tables and the figures.

    Every trial has a result file. Finished trials are not computed again, and interrupted ones resume. Without options:
    the paper's games, all methods, 5 seeds, the paper's budgets. `--quick` takes minutes on two cores.
    """

    out: Path = Path("reproduction")
    """Directory for results, runs, report.md and pictures."""
    quick: bool = False
    """Half a million steps, 2 seeds and 150 tasks per trial: enough to see the order of the methods."""
    games: tuple[str, ...] = ()
    """These games, in place of the paper's."""
    methods: tuple[str, ...] = ()
    """Only these methods: structured, unstructured, curriculum, oracle. By default all that fit a game."""
    variants: tuple[str, ...] = ("default",)
    """Variants of training; `ladder` (from the paper's to ours), `removals` and `ablations` stand for several."""
    seeds: int | None = None
    """Number of seeds, counted from 0."""
    steps: int | None = None
    """Environment steps per trial, instead of the paper's budget."""
    set: tuple[str, ...] = ()
    """Other settings, as NAME=NUMBER: `--set lanes=1024 minibatches=64` suits a GPU."""
    on: str = "here"
    """Where to compute: `here`, or `ray` for a Ray cluster, which is started if none is running."""
    devices: str = "1"
    """Number of devices that share the lanes of every run, or `all`."""
    eval_points: int | None = None
    """Points of every learning curve: at the end, half-way, at a quarter, ... (7, or 3 with --quick)."""
    eval_tasks: int | None = None
    """Held-back tasks per point (200, or 50 with --quick)."""
    train_only: bool = False
    """Only train; the same command without this evaluates, on any machine that has the directory."""
    draw: bool = False
    """Compute nothing: only write tables and figures of the existing results."""


def reproduce_command(arguments: list[str]) -> None:
    """`saplan reproduce`."""
    options = read_options(Reproduce, "reproduce", arguments)
    if options.on not in ("here", "ray"):
        raise unknown_name("place", options.on, ["here", "ray"])
    if options.steps is not None and not 1 <= options.steps < 2**40:
        raise InputError(f"--steps must be a number of environment steps, got {options.steps}")
    for name, number, most in (("points", options.eval_points, 64), ("tasks", options.eval_tasks, 10_000)):
        if number is not None and not 1 <= number <= most:
            raise InputError(f"--eval-{name} must lie in 1..{most}, got {number}")

    from saplan.experiments.reproduce import SweepPlan, parse_settings, reproduce, write_report
    from saplan.experiments.sweep import run_trials
    from saplan.experiments.variants import GROUPS

    if options.draw:
        paths = write_report(options.out)
    else:
        variants = tuple(v for name in options.variants for v in GROUPS.get(name, [name]))
        plan = SweepPlan(
            options.games or SweepPlan().games, options.methods or None, variants, options.seeds, options.steps,
            options.quick, parse_settings(options.set), number_of_devices(options.devices), options.eval_points,
            options.eval_tasks, options.train_only,
        )  # fmt: skip
        run = run_trials
        if options.on == "ray":
            from saplan.experiments.ray_backend import run_trials_on_ray as run
        paths = reproduce(plan, options.out, run)
    if options.train_only:
        print(f"the trained agents are in {options.out}: the same command without --train-only evaluates them")
        return
    print(paths[0].read_text(encoding="utf-8"))
    print("written: " + ", ".join(str(path) for path in paths))
