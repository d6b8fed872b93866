"""The paper's table and figures, on anyone's machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from saplan.errors import InputError, unknown_name
from saplan.experiments.figures import PICTURES, draw_all
from saplan.experiments.sweep import (
    ABLATIONS,
    CLAIMS,
    RUNS,
    VARIANTS,
    EvalBudget,
    Reproduction,
    Trial,
    compute_all,
    misfit,
    on_accelerator,
)
from saplan.experiments.tables import PAPER_STEPS, ablation_table, detail_table, read_results, success_table
from saplan.games import GAMES
from saplan.methods.registry import METHODS
from saplan.methods.structured.agent import StructuredAgent
from saplan.rl.settings import Settings
from saplan.storage.files import replace_file
from saplan.storage.links import refuse_links
from saplan.training.store import MANIFEST, ORACLE, load_agent, open_agent

OWN = (RUNS, CLAIMS, PICTURES, "report.md", ".report.md.new")
"""What a reproduction writes besides results. No link may stand in their place."""
QUICK_STEPS = 500_000
QUICK_SEEDS, SEEDS = 2, 5
ALL_METHODS = (*METHODS, ORACLE)


@dataclass(frozen=True)
class Wanted:
    """What is to be reproduced."""

    games: Sequence[str] = field(default_factory=lambda: tuple(GAMES))
    methods: Sequence[str] | None = None
    """None: for every game, all that fit it."""
    variants: Sequence[str] = ("default",)
    seeds: int | None = None
    steps: int | None = None
    """Per cell; by default the paper's budget of the game, and for a game that the paper does not have its largest."""
    quick: bool = False
    """Enough to see the order of the methods: half a million steps, 2 seeds, 150 tasks."""
    numbers: tuple[tuple[str, int | float], ...] = ()
    devices: int = 1

    def cells(self) -> list[Trial]:
        """Every cell, the quickest insight first: one seed of everything before the next."""
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
        found = [Trial(game, ORACLE, 0, 0) for game in self.games if ORACLE in methods[game]]
        for seed in range(seeds):
            for variant in self.variants:
                for game in self.games:
                    for method in methods[game]:
                        cell = Trial(game, method, seed, self.steps or self._budget(game), variant, self.numbers)
                        if method != ORACLE and self._makes_sense(cell):
                            found.append(cell)
        for cell in found:
            if cell.method != ORACLE:
                cell.config()  # complains of what does not fit before anything is trained
        return found

    def _methods(self, game: str) -> list[str]:
        """The methods of a game; `InputError` if one that was asked for by name does not fit it."""
        if self.methods is None:
            return [method for method in ALL_METHODS if misfit(game, method) is None]
        for method in self.methods:
            if (reason := misfit(game, method)) is not None:
                raise InputError(f"{reason}; leave out `{method}`, or name other --games")
        return list(self.methods)

    def _budget(self, game: str) -> int:
        return QUICK_STEPS if self.quick else PAPER_STEPS.get(game, max(PAPER_STEPS.values()))

    def _makes_sense(self, cell: Trial) -> bool:
        """Ablations take away parts of the structured model; some make no difference to some games."""
        if cell.method != "structured" and cell.variant in set(ABLATIONS) - {"paper"}:
            return False
        return VARIANTS[cell.variant].concerns(cell.game)

    def eval_budget(self) -> EvalBudget:
        """How closely to look."""
        together = on_accelerator()
        if self.quick:
            return EvalBudget(150, 3, 50, together, self.devices)
        return EvalBudget(together=together, devices=self.devices)


Compute = Callable[[Reproduction, Sequence[Trial], EvalBudget], list[Trial]]
"""Computes what is missing and returns what is missing still."""


def reproduce(wanted: Wanted, out: Path, compute: Compute = compute_all) -> list[Path]:
    """Computes the cells that have no result yet, then writes tables and figures of all results there are."""
    refuse_links(out, OWN)
    reproduction, cells = Reproduction(out), wanted.cells()
    missing = compute(reproduction, cells, wanted.eval_budget())
    if missing:
        names = ", ".join(cell.name for cell in missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise InputError(f"{len(missing)} of {len(cells)} cells are not done yet ({names}): run the same command again")
    return report(out)


def report(out: Path) -> list[Path]:
    """Tables and figures from the results of a directory."""
    refuse_links(out, OWN)
    results = read_results(out)
    if not results:
        raise InputError(f"{out} holds no results yet: run `saplan reproduce --out {out}` first")
    parts = ["# Results", "## Success", success_table(results, strict=False)]
    if any(row.get("variant") in ABLATIONS for row in results):
        parts += ["## Ablations", ablation_table(results, strict=False)]
    parts += ["## Details", detail_table(results, strict=False)]
    pictures = draw_all(results, out / PICTURES, _mining_agent(out))
    parts += ["## Pictures", *(f"![{path.stem}](pictures/{path.name})" for path in pictures if path.suffix == ".png")]
    replace_file(out / "report.md", ("\n\n".join(parts) + "\n").encode())
    return [out / "report.md", *pictures]


def _mining_agent(out: Path) -> StructuredAgent | None:
    """A structured agent of mining: of these results if its run is there, else the one that ships with the package."""
    runs = sorted((out / RUNS).glob(f"mining-structured-default-*/{MANIFEST}"))
    agent = load_agent(runs[-1].parent)[0] if runs else open_agent("mining")[0]
    return agent if isinstance(agent, StructuredAgent) else None


def check_numbers(words: Sequence[str]) -> tuple[tuple[str, int | float], ...]:
    """Settings that all methods have, written as NAME=NUMBER."""
    known = vars(Settings())
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
