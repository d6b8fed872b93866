"""The paper's table and figures: which trials to run, and the report of their results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax

from saplan.errors import InputError, unknown_name
from saplan.experiments.figures import PICTURES, draw_all
from saplan.experiments.paper import PAPER_STEPS
from saplan.experiments.sweep import CLAIMS, RUNS, EvalBudget, Sweep, Trial, misfit, run_trials
from saplan.experiments.tables import ablation_table, detail_table, read_results, success_table
from saplan.experiments.variants import ABLATIONS, VARIANTS
from saplan.games import GAMES
from saplan.methods.registry import METHODS
from saplan.methods.structured.agent import StructuredAgent
from saplan.storage.files import replace_file
from saplan.storage.links import refuse_links
from saplan.training.store import MANIFEST, ORACLE, load_agent, open_agent

OWN = (RUNS, CLAIMS, PICTURES, "report.md", ".report.md.new")
"""Files that a reproduction writes besides results. None of them may be a link."""
TITLES = {"default": "## Success", "paper": "## Success of the paper's variant"}
QUICK_STEPS = 500_000
QUICK_SEEDS, SEEDS = 2, 5
ALL_METHODS = (*METHODS, ORACLE)


@dataclass(frozen=True)
class SweepPlan:
    """The trials of a reproduction."""

    games: Sequence[str] = tuple(PAPER_STEPS)
    """By default those of the paper."""
    methods: Sequence[str] | None = None
    """None: for every game, all that fit it."""
    variants: Sequence[str] = ("default",)
    seeds: int | None = None
    steps: int | None = None
    """Per trial; by default the paper's budget, and its largest budget for a game that the paper does not have."""
    quick: bool = False
    """Enough to see the order of the methods: half a million steps, 2 seeds, 150 tasks."""
    numbers: tuple[tuple[str, int | float], ...] = ()
    """Settings that differ from the defaults."""
    devices: int = 1
    eval_points: int | None = None
    """Points of a learning curve."""
    eval_tasks: int | None = None
    """Tasks per point."""
    train_only: bool = False

    def trials(self) -> list[Trial]:
        """All trials, one seed of everything before the next."""
        for kind, names, known in (
            ("game", self.games, GAMES), ("method", self.methods or (), ALL_METHODS),
            ("variant", self.variants, VARIANTS),
        ):  # fmt: skip
            for name in names:
                if name not in known:
                    raise unknown_name(kind, name, known)
        seeds = (QUICK_SEEDS if self.quick else SEEDS) if self.seeds is None else self.seeds
        if not 1 <= seeds <= 1000:
            raise InputError(f"--seeds must lie in 1..1000, got {seeds}")
        methods = {game: self._methods(game) for game in self.games}
        trained = [
            Trial(game, method, seed, self._steps(game), variant, self.numbers)
            for seed in range(seeds)
            for variant in self.variants
            for game in self.games
            for method in methods[game]
            if method != ORACLE and _makes_sense(game, method, variant)
        ]
        for trial in trained:
            trial.config()  # raises errors before anything is trained
        return [Trial(game, ORACLE, 0, 0) for game in self.games if ORACLE in methods[game]] + trained

    def _methods(self, game: str) -> list[str]:
        """The methods of a game; `InputError` if a method was named that does not fit it."""
        if self.methods is None:
            return [method for method in ALL_METHODS if misfit(game, method) is None]
        for method in self.methods:
            if (reason := misfit(game, method)) is not None:
                raise InputError(f"{reason}; leave out `{method}`, or name other --games")
        return list(self.methods)

    def _steps(self, game: str) -> int:
        if self.steps:
            return self.steps
        return QUICK_STEPS if self.quick else PAPER_STEPS.get(game, max(PAPER_STEPS.values()))

    def eval_budget(self) -> EvalBudget:
        """The evaluations of every trial; on an accelerator, seeds train together."""
        together = jax.default_backend() != "cpu"
        tasks, points, at_each = (150, 3, 50) if self.quick else (1000, 7, 200)
        points = points if self.eval_points is None else self.eval_points
        at_each = at_each if self.eval_tasks is None else self.eval_tasks
        return EvalBudget(tasks, points, at_each, together, self.devices, train_only=self.train_only)


def _makes_sense(game: str, method: str, variant: str) -> bool:
    """Whether a variant changes anything: ablations concern the structured model, and some only certain games."""
    if method != "structured" and variant in set(ABLATIONS) - {"paper"}:
        return False
    games = VARIANTS[variant].games
    return games is None or game in games


Runner = Callable[[Sweep, Sequence[Trial], EvalBudget], list[Trial]]
"""Computes missing results and returns the trials that are still missing."""


def reproduce(plan: SweepPlan, out: Path, run: Runner = run_trials) -> list[Path]:
    """Computes the trials without results, then writes tables and figures of all results in the directory."""
    refuse_links(out, OWN)
    trials = plan.trials()
    missing = run(Sweep(out), trials, plan.eval_budget())
    if plan.train_only:
        return []
    if missing:
        names = ", ".join(trial.name for trial in missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise InputError(f"{len(missing)} of {len(trials)} trials are not done ({names}): run the same command again")
    return write_report(out)


def write_report(out: Path) -> list[Path]:
    """Writes tables and figures from the results of a directory, and returns their paths."""
    refuse_links(out, OWN)
    results = read_results(out)
    if not results:
        raise InputError(f"{out} holds no results yet: run `saplan reproduce --out {out}` first")
    parts, variants = ["# Results"], {row.get("variant", "default") for row in results}
    for variant, title in TITLES.items():
        if variant in variants:
            parts += [title, success_table(results, strict=False, variant=variant)]
    if variants & set(ABLATIONS) - set(TITLES):
        parts += ["## Ablations", ablation_table(results, strict=False)]
    parts += ["## Details", detail_table(results, strict=False)]
    pictures = draw_all(results, out / PICTURES, _mining_agent(out))
    parts += ["## Pictures", *(f"![{path.stem}](pictures/{path.name})" for path in pictures if path.suffix == ".png")]
    replace_file(out / "report.md", ("\n\n".join(parts) + "\n").encode())
    return [out / "report.md", *pictures]


def _mining_agent(out: Path) -> StructuredAgent | None:
    """A structured agent of mining: from these results if its run is there, else the shipped one."""
    runs = sorted((out / RUNS).glob(f"mining-structured-default-*/{MANIFEST}"))
    agent = load_agent(runs[-1].parent)[0] if runs else open_agent("mining")[0]
    return agent if isinstance(agent, StructuredAgent) else None


def parse_settings(words: Sequence[str]) -> tuple[tuple[str, int | float], ...]:
    """Settings from words such as `lanes=1024`. Each method takes those that it has."""
    known = {name: value for method in METHODS.values() for name, value in vars(method.settings()).items()}
    found: list[tuple[str, int | float]] = []
    for word in words:
        name, _, value = word.partition("=")
        if name not in known:
            raise unknown_name("setting", name, known)
        try:
            found.append((name, int(value) if isinstance(known[name], int) else float(value)))
        except ValueError:
            raise InputError(f"{word!r}: write settings as {name}=NUMBER") from None
    return tuple(found)
