"""Tables of docs/reproduction.md: the paper's recipe at its budgets beside ours, and the way between the two."""

import functools

import numpy as np
from common import RESULTS

from saplan.experiments.paper import PAPER, PAPER_STEPS
from saplan.experiments.statistics import bootstrap_interval, interquartile_mean, steps_to
from saplan.experiments.tables import (
    Result,
    ablation_table,
    by_group,
    comparable,
    footnote,
    markdown_table,
    mean_curve,
    read_results,
    successes_of,
)
from saplan.experiments.variants import GROUPS, VARIANTS

RECIPE, OURS, LADDER = RESULTS / "paper-recipe", RESULTS / "paper", RESULTS / "ladder"

WORDS = {"paper": "the paper's", "default": "our"}
LADDER_WORDS = {"default": "and calibrated heads: the default"}


@functools.cache
def cells() -> dict[tuple[str, str, str], list[Result]]:
    """Results at the paper's budgets by game, method and recipe, `paper` or `default`."""
    found: dict[tuple[str, str, str], list[Result]] = {}
    for variant, at in (("paper", RECIPE), ("default", OURS)):
        rows = [
            row
            for row in read_results(at)
            if row.get("variant", "default") == variant
            and row["method"] in PAPER
            and row["budgeted_steps"] == PAPER_STEPS[row["game"]]
        ]
        for (game, method, _, _), group in by_group(comparable(rows, f"the recipe {variant}")).items():
            found[game, method, variant] = group
    return found


def _share(group: list[Result] | None) -> str:
    """Mean success with its interval over seeds and tasks."""
    if not group:
        return ""
    successes = successes_of(group)
    low, high = bootstrap_interval([successes], interquartile_mean)
    return f"**{successes.mean():.1%}** ({100 * low:.1f} to {high:.1%}, {len(group)} seeds)"


def _recipes() -> list[str]:
    """The recipes that were measured at the paper's budgets."""
    return [variant for variant in WORDS if any(key[2] == variant for key in cells())]


def recipes_table() -> str:
    """The paper's Table 1: as printed, and by every recipe, with the points between."""
    lines = []
    for game in PAPER_STEPS:
        for method in PAPER:
            texts = []
            for variant in _recipes():
                group = cells().get((game, method, variant))
                gap = f"{100 * (successes_of(group).mean() - PAPER[method][game]):+.1f}" if group else ""
                texts += [_share(group), gap]
            lines.append([game, method, f"{PAPER[method][game]:.1%}", *texts])
    titles = [title for variant in _recipes() for title in (f"{WORDS[variant]} recipe", "points apart")]
    return markdown_table(["game", "method", "the paper", *titles], lines) + _footnotes()


def _footnotes() -> str:
    notes = []
    for variant in _recipes():
        rows = [row for key, group in cells().items() if key[2] == variant for row in group]
        notes.append(f"{WORDS[variant].capitalize()} recipe: c{footnote(rows).strip()[1:]}")
    return "\n\n" + " ".join(notes)


def samples_table() -> str:
    """Environment steps until the mean of all seeds reaches the paper's structured success, on held-back tasks."""
    lines = []
    for game in PAPER_STEPS:
        wanted = PAPER["structured"][game]
        texts = []
        for variant in _recipes():
            for method in PAPER:
                curve = mean_curve(cells().get((game, method, variant), []))
                needed = steps_to(*curve, wanted) if curve else None
                best = f"not reached ({curve[1].max():.0%})" if curve else ""
                texts.append(best if needed is None else f"{needed / 1e6:.2g} M")
        lines.append([f"{game}, {wanted:.1%}", *texts])
    titles = [f"{WORDS[variant]} recipe: {method}" for variant in _recipes() for method in PAPER]
    header = ["game, success", *titles]
    return markdown_table(header, lines) + _footnotes()


def rates_table() -> str:
    """Positive and negative examples per 1,000 steps, at the beginning and at the end of training, by recipe."""
    lines = []
    for game in PAPER_STEPS:
        for variant in _recipes():
            group = cells().get((game, "structured", variant))
            if not group:
                continue
            texts = []
            for kind in ("positives", "negatives"):
                early, late = zip(*(_rates(row, kind) for row in group), strict=True)
                texts += [f"{np.mean(early):.1f}", f"{np.mean(late):.1f}"]
            lines.append([game, WORDS[variant], *texts])
    header = ["game", "recipe", "positive, first tenth", "last tenth", "negative, first tenth", "last tenth"]
    return markdown_table(header, lines) + _footnotes()


def _rates(row: Result, kind: str) -> tuple[float, float]:
    """Examples per 1,000 steps in the first and in the last tenth of training."""
    points = [{"steps": 0, kind: 0}, *row["examples"]]
    total = points[-1]["steps"]
    early = [point for point in points if point["steps"] <= total / 10] or points[:2]
    early = early if len(early) > 1 else points[:2]
    late = [point for point in points if point["steps"] >= 0.9 * total]
    late = late if len(late) > 1 else points[-2:]

    def rate(some: list[Result]) -> float:
        return float(1000 * (some[-1][kind] - some[0][kind]) / (some[-1]["steps"] - some[0]["steps"]))

    return rate(early), rate(late)


def ladder_table() -> str:
    """From the paper's recipe to ours at small budgets, one improvement after the other."""
    order = {name: k for k, name in enumerate(GROUPS["ladder"])}
    rows = [row for row in read_results(LADDER) if row["variant"] in order]
    groups = by_group(comparable(rows, "the ladder"))
    steps = {game: budget for game, _, _, budget in groups}
    lines = []
    for name in order:
        texts = []
        for game in steps:
            group = groups.get((game, "structured", name, steps[game]))
            texts.append(_share(group))
        if any(texts):
            lines.append([LADDER_WORDS.get(name, VARIANTS[name].what), *texts])
    titles = (f"{game}, {budget / 1e6:g} M" for game, budget in steps.items())
    return markdown_table(["", *titles], lines) + footnote(rows)


def removals_table() -> str:
    """Ours without each of its parts, at small budgets."""
    return ablation_table(row for row in read_results(LADDER) if not row["variant"].startswith(("add-", "paper")))
