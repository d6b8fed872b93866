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

LADDER_WORDS = {"default": "and calibrated heads: the default"}


@functools.cache
def cells() -> dict[tuple[str, str, str], list[Result]]:
    """Results by game, method and recipe, `paper` or `default`."""
    found: dict[tuple[str, str, str], list[Result]] = {}
    for variant, at in (("paper", RECIPE), ("default", OURS)):
        rows = [row for row in read_results(at) if row.get("variant", "default") == variant and row["method"] in PAPER]
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


def recipes_table() -> str:
    """The paper's Table 1 three times: as printed, by its recipe, and by ours."""
    lines = []
    for game in PAPER_STEPS:
        for method in PAPER:
            group = cells().get((game, method, "paper"))
            gap = f"{100 * (successes_of(group).mean() - PAPER[method][game]):+.1f}" if group else ""
            ours = _share(cells().get((game, method, "default")))
            lines.append([game, method, f"{PAPER[method][game]:.1%}", _share(group), gap, ours])
    header = ["game", "method", "the paper", "the paper's recipe", "points apart", "our recipe"]
    return markdown_table(header, lines) + _footnotes()


def _footnotes() -> str:
    notes = []
    for variant, words in (("paper", "The paper's recipe"), ("default", "Our recipe")):
        rows = [row for key, group in cells().items() if key[2] == variant for row in group]
        notes.append(f"{words}: {footnote(rows).strip()[0].lower()}{footnote(rows).strip()[1:]}" if rows else "")
    return "\n\n" + " ".join(note for note in notes if note)


def samples_table() -> str:
    """Environment steps until the mean of all seeds reaches the paper's structured success, on held-back tasks."""
    lines = []
    for game in PAPER_STEPS:
        wanted = PAPER["structured"][game]
        texts = []
        for variant in ("paper", "default"):
            for method in PAPER:
                curve = mean_curve(cells().get((game, method, variant), []))
                needed = steps_to(*curve, wanted) if curve else None
                best = f"not reached ({curve[1].max():.0%})" if curve else ""
                texts.append(best if needed is None else f"{needed / 1e6:.2g} M")
        lines.append([f"{game}, {wanted:.1%}", *texts])
    header = ["game, success", *(f"{recipe}: {method}" for recipe in ("the paper's", "ours") for method in PAPER)]
    return markdown_table(header, lines) + _footnotes()


def rates_table() -> str:
    """Positive and negative examples per 1,000 steps, at the beginning and at the end of training, by recipe."""
    lines = []
    for game in PAPER_STEPS:
        for variant, words in (("paper", "the paper's"), ("default", "ours")):
            group = cells().get((game, "structured", variant))
            if not group:
                continue
            texts = []
            for kind in ("positives", "negatives"):
                early, late = zip(*(_rates(row, kind) for row in group), strict=True)
                texts += [f"{np.mean(early):.1f}", f"{np.mean(late):.1f}"]
            lines.append([game, words, *texts])
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
