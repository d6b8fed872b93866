"""Markdown tables of trial results."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saplan.errors import InputError
from saplan.experiments.paper import paper_success
from saplan.experiments.statistics import (
    bootstrap_interval,
    decode_successes,
    difference_interval,
    interquartile_mean,
    steps_to,
)
from saplan.experiments.variants import VARIANTS
from saplan.games import GAMES, make_game
from saplan.methods.registry import METHODS, find_method
from saplan.storage.json_data import read_json
from saplan.training.store import ORACLE

Result = dict[str, Any]
"""The content of a result file."""


def read_results(out: Path) -> list[Result]:
    """All results of a directory, in the order of the tables."""
    found = [read_json(path) for path in sorted(out.glob("*.json"))]
    results = [row for row in found if isinstance(row, dict) and {"game", "method", "success", "tasks"} <= set(row)]
    return sorted(results, key=_order)


def _order(row: Result) -> tuple[int, ...]:
    def place(name: str, known: Iterable[str]) -> int:
        names = list(known)
        return names.index(name) if name in names else len(names)

    return (
        place(row["game"], GAMES), place(row["method"], [*METHODS, ORACLE]),
        place(row.get("variant", "default"), VARIANTS), row.get("budgeted_steps") or 0, row.get("seed") or 0,
    )  # fmt: skip


def by_group(results: Iterable[Result]) -> dict[tuple[str, str, str, int], list[Result]]:
    """Results by game, method, variant and budget; a group holds all seeds."""
    found: dict[tuple[str, str, str, int], list[Result]] = {}
    for row in results:
        key = row["game"], row["method"], row.get("variant", "default"), row.get("budgeted_steps") or 0
        found.setdefault(key, []).append(row)
    return found


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def code_of(row: Result) -> str:
    """The commit that trained an agent, or the version if no commit is known."""
    by = row.get("trained_by") or row.get("code") or {}
    return by.get("commit") or by.get("version") or "unknown"


KIND: dict[str, Callable[[Result], object]] = {
    "code": code_of,
    "hardware": lambda row: row.get("hardware"),
    "tasks": lambda row: row["tasks"],
    "task seed": lambda row: row.get("task_seed"),
}
"""Properties that must be equal if results are compared."""


def differing(results: Iterable[Result]) -> list[str]:
    """The properties that make results incomparable, in words: `code: 1a2b3c, 4d5e6f`."""
    rows = list(results)
    values = {name: sorted({str(of(row)) for row in rows}) for name, of in KIND.items()}
    return [f"{name}: {', '.join(each)}" for name, each in values.items() if len(each) > 1]


def mixed(results: Iterable[Result]) -> list[str]:
    """The properties that make the rows of a table incomparable, in words.

    Machine and tasks must be the same everywhere, the code within every method: a footnote names that of each method.
    The oracle is exempt: it is not trained.
    """
    by_method: dict[str, list[Result]] = {}
    for row in results:
        by_method.setdefault(row["method"], []).append(row)
    trained = {method: rows for method, rows in by_method.items() if method != ORACLE}
    everywhere = differing(row for rows in trained.values() for row in rows)
    within = [odd for rows in trained.values() for odd in differing(rows)]
    return list(dict.fromkeys(odd for odd in [*everywhere, *within] if odd in within or not odd.startswith("code: ")))


def comparable(results: Sequence[Result], what: str, strict: bool = True) -> Sequence[Result]:
    """The same results; if `strict`, `InputError` unless they may stand in one table."""
    odd = mixed(results)
    if odd and strict:
        raise InputError(f"{what} would compare results that differ in {'; '.join(odd)}")
    return results


def footnote(results: Sequence[Result]) -> str:
    """One line below a table: the code, machine and tasks of its rows, or why they are incomparable."""
    rows = [row for row in results if row["method"] != ORACLE] or list(results)
    if not rows:
        return ""
    if odd := mixed(rows):
        return f"\n\nThese rows are not comparable: they differ in {'; '.join(odd)}."
    tasks = f"{rows[0]['tasks']} tasks of seed {rows[0].get('task_seed')}"
    codes: dict[str, list[str]] = {}
    for row in rows:
        codes.setdefault(code_of(row), []).append(row["method"])
    first, *others = codes
    older = "".join(f" ({', '.join(dict.fromkeys(codes[code]))}: {code})" for code in others)
    return f"\n\nCode {first}{older}, {rows[0].get('hardware')}, {tasks}."


def successes_of(results: Sequence[Result]) -> np.ndarray:
    """The tasks that every result solved, one row per result."""
    return np.stack([decode_successes(row["successes"], row["tasks"]) for row in results])


def success_table(results: Iterable[Result], strict: bool = True, variant: str = "default") -> str:
    """The paper's table with its figures beside those of a variant, and the mean of each method over all games."""
    those = [row for row in results if row.get("variant", "default") == variant]
    chosen = comparable(those, "the table of success", strict)
    rows, by_method = [], dict[str, list[np.ndarray]]()
    for (game, method, _, _), group in by_group(chosen).items():
        successes = successes_of(group)
        if method != ORACLE:
            by_method.setdefault(method, []).append(successes)
        paper = paper_success(game, method)
        rows.append([
            game, method, "" if paper is None else f"{paper:.1%}", f"**{successes.mean():.1%}**",
            *_spread([successes]), str(len(group)) if method != ORACLE else "", millions(group[0].get("steps_trained")),
            _steps_needed(game, group),
        ])  # fmt: skip
    for method, strata in by_method.items():
        if len(strata) > 1 and len({len(successes) for successes in strata}) == 1:
            scores = np.mean([successes.mean() for successes in strata])
            rows.append(["all", method, "", f"**{scores:.1%}**", *_spread(strata), str(len(strata[0])), "", ""])
    header = ["game", "method", "paper", "mean", "interquartile mean", "95 % interval", "seeds", "steps",
              "steps to the paper's structured success"]  # fmt: skip
    if all(paper_success(row["game"], method) is None for row in chosen for method in METHODS):
        header, *rows = ([*row[:2], *row[3:-1]] for row in (header, *rows))  # without the paper's columns
    return markdown_table(header, rows) + footnote(chosen)


def _spread(strata: Sequence[np.ndarray]) -> tuple[str, str]:
    if len(strata[0]) < 2:
        return "", ""
    low, high = bootstrap_interval(strata, interquartile_mean)
    scores = np.stack([successes.mean(axis=1) for successes in strata], axis=-1)
    return f"{interquartile_mean(scores):.1%}", f"{low:.1%} to {high:.1%}"


def _steps_needed(game: str, group: list[Result]) -> str:
    """The steps at which the mean learning curve first reaches the paper's structured success."""
    curve, wanted = mean_curve(group), paper_success(game)
    if curve is None or wanted is None:
        return ""
    needed = steps_to(*curve, wanted)
    if needed is None:
        return "not reached"
    return f"{'at most ' if needed <= curve[0][0] else ''}{needed / 1e6:.2g} M"


def mean_curve(group: list[Result]) -> tuple[np.ndarray, np.ndarray] | None:
    """Steps and mean success at the evaluation points that all seeds with a curve share; None if there are none."""
    curves = [{point["steps"]: point["success"] for point in row["curve"]} for row in group if row.get("curve")]
    steps = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
    if not steps:
        return None
    return np.array(steps, float), np.array([np.mean([curve[at] for curve in curves]) for at in steps])


def ablation_table(results: Iterable[Result], strict: bool = True) -> str:
    """The loss without each part of the model, against the default with the same code, machine, budget and tasks."""
    structured = [row for row in results if row["method"] == "structured"]
    budgets = {
        (row["game"], row["budgeted_steps"])
        for row in structured
        if row["variant"] not in ("default", "paper", "paper-q")
    }
    chosen = [row for row in structured if (row["game"], row["budgeted_steps"]) in budgets]
    groups: dict[tuple[str, str], list[Result]] = {}
    for (game, _, variant, _), group in by_group(comparable(chosen, "the table of ablations", strict)).items():
        groups.setdefault((game, variant), group)
    steps = {game: next(at for g, at in budgets if g == game) for game in GAMES if any(game == g for g, _ in budgets)}
    rows = []
    for name, changed in VARIANTS.items():
        default = {game: groups.get((game, "default")) if name != "default" else None for game in steps}
        texts = [_against(groups[game, name], default[game]) if (game, name) in groups else "" for game in steps]
        if any(texts):
            rows.append([changed.what, *texts])
    titles = (f"{game}, {millions(at)}" for game, at in steps.items())
    return markdown_table(["variant", *titles], rows) + (footnote(chosen) if chosen else "")


def _against(group: list[Result], default: list[Result] | None) -> str:
    """Mean and seeds, or the difference from the default in points with its 95 % interval over seeds and tasks."""
    successes = successes_of(group)
    if default is None:
        return f"{successes.mean():.1%} ({len(group)} seeds)"
    usual = successes_of(default)
    low, high = difference_interval(successes, usual)
    points = 100 * (successes.mean() - usual.mean())
    return f"{successes.mean():.1%} ({points:+.1f}: {100 * low:+.1f} to {100 * high:+.1f})"


def detail_table(results: Iterable[Result], strict: bool = True) -> str:
    """Every group of trained results with its seeds, causes of failure, settings and hardware."""
    rows = []
    for (game, method, variant, _), group in by_group(results).items():
        if method == ORACLE:
            continue
        comparable(group, f"the row {game}, {method}, {variant}", strict)
        causes = {cause: sum(row["failures"][cause] for row in group) for cause in group[0]["failures"]}
        steps = [row["mean_steps"] for row in group if row["mean_steps"]]
        rows.append([
            game, method, variant, millions(group[0]["steps_trained"]),
            f"**{np.mean([row['success'] for row in group]):.1%}**",
            ", ".join(f"{row['success']:.1%} ({row['seed']})" for row in group),
            f"{np.mean(steps):.0f}" if steps else "",
            ", ".join(f"{count} {cause}" for cause, count in causes.items())
            + f" (of {sum(row['tasks'] for row in group)})",
            _settings(group[0]), group[0]["hardware"], code_of(group[0]),
        ])  # fmt: skip
    header = ["game", "method", "variant", "steps", "success", "per seed", "steps to goal", "failed tasks by cause",
              "settings", "on", "code"]  # fmt: skip
    return markdown_table(header, rows)


def _settings(row: Result) -> str:
    """The settings that differ from the defaults of the method and the variant."""
    variant, config = VARIANTS.get(row["variant"]), row["config"]
    # The rules of a result are the defaults of its game, and its settings may be those of an older version.
    paper = variant is not None and variant.paper
    usual = vars(find_method(row["method"]).settings_for(make_game(row["game"]), paper))
    known = variant.settings if variant else {}
    given = config["settings"].items()
    other = {name: value for name, value in given if name in usual and name not in known and usual[name] != value}
    return ", ".join(f"{name} {value}" for name, value in other.items()) or "the defaults"


def millions(steps: int | None) -> str:
    """Steps as `2.5 M`, or nothing."""
    return f"{steps / 1e6:.1f} M" if steps else ""
