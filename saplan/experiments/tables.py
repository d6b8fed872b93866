"""Tables in Markdown from the results of cells."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saplan.errors import InputError
from saplan.experiments.evaluation_report import PAPER
from saplan.experiments.statistics import (
    bootstrap_interval,
    difference_interval,
    from_text,
    interquartile_mean,
    steps_to,
)
from saplan.experiments.sweep import VARIANTS
from saplan.games import GAMES
from saplan.methods.registry import METHODS, find_method
from saplan.storage.json_data import read_json
from saplan.training.config import config_from_json
from saplan.training.provenance import differences
from saplan.training.store import ORACLE

Result = dict[str, Any]
PAPER_STEPS = {"switches": 50_000_000, "exchange": 40_000_000, "mining": 50_000_000}
"""The paper's budgets; for mining it states none, 50 M is that of switches."""


def read_results(out: Path) -> list[Result]:
    """All results of a directory, in order."""
    found = [read_json(path) for path in sorted(out.glob("*.json"))]
    cells = [row for row in found if isinstance(row, dict) and {"game", "method", "success", "tasks"} <= set(row)]
    return sorted(cells, key=_order)


def _order(row: Result) -> tuple[Any, ...]:
    methods, variants = [*METHODS, ORACLE], list(VARIANTS)
    place = list(GAMES).index(row["game"]) if row["game"] in GAMES else len(GAMES)
    variant = row.get("variant", "default")
    return (
        place, methods.index(row["method"]), variants.index(variant) if variant in variants else len(variants),
        row.get("budgeted_steps") or 0, row.get("seed") or 0,
    )  # fmt: skip


def groups(results: Iterable[Result]) -> dict[tuple[str, str, str, int], list[Result]]:
    """Results by game, method, variant and budget, the seeds together."""
    found: dict[tuple[str, str, str, int], list[Result]] = {}
    for row in results:
        key = row["game"], row["method"], row.get("variant", "default"), row.get("budgeted_steps") or 0
        found.setdefault(key, []).append(row)
    return found


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def code_of(row: Result) -> str:
    """The commit that trained an agent, or the version where no commit is known."""
    by = row.get("trained_by") or row.get("code") or {}
    return by.get("commit") or by.get("version") or "unknown"


KIND = {"code": code_of, "hardware": lambda row: row.get("hardware"), "tasks": lambda row: row["tasks"],
        "task seed": lambda row: row.get("task_seed")}  # fmt: skip
"""What results must share to be compared."""


def differing(results: Iterable[Result]) -> list[str]:
    """What keeps results from being compared, each in words: `code: 1a2b3c, 4d5e6f`."""
    rows = list(results)
    values = {name: sorted({str(of(row)) for row in rows}) for name, of in KIND.items()}
    return [f"{name}: {', '.join(each)}" for name, each in values.items() if len(each) > 1]


def comparable(results: Sequence[Result], what: str, strict: bool = True) -> Sequence[Result]:
    """The same results; `InputError` unless they are of one code, machine and set of tasks, or nothing is to be
    `strict` about. The oracle, which is not trained, may have been tried elsewhere.
    """
    odd = differing(row for row in results if row["method"] != ORACLE)
    if odd and strict:
        raise InputError(f"{what} would compare results that differ in {'; '.join(odd)}")
    return results


def footnote(results: Sequence[Result]) -> str:
    """One line below a table: which code, machine and tasks its rows are of, or what keeps them from being compared."""
    rows = [row for row in results if row["method"] != ORACLE] or list(results)
    if odd := differing(rows):
        return f"\n\nThese rows are not of one kind: they differ in {'; '.join(odd)}."
    tasks = f"{rows[0]['tasks']} tasks of seed {rows[0].get('task_seed')}"
    return f"\n\nCode {code_of(rows[0])}, {rows[0].get('hardware')}, {tasks}."


def successes_of(cells: Sequence[Result]) -> np.ndarray:
    """Which tasks every cell solved."""
    return np.stack([from_text(cell["successes"], cell["tasks"]) for cell in cells])


def success_table(results: Iterable[Result], strict: bool = True) -> str:
    """The paper's table with its figures beside ours, and what all games together say of a method."""
    default = [row for row in results if row.get("variant", "default") == "default"]
    chosen = comparable(default, "the table of success", strict)
    rows, by_method = [], dict[str, list[np.ndarray]]()
    for (game, method, _, _), cells in groups(chosen).items():
        successes = successes_of(cells)
        if method != ORACLE:
            by_method.setdefault(method, []).append(successes)
        rows.append([
            game, method, _share(PAPER.get(method, {}).get(game)), f"**{successes.mean():.1%}**", *_spread([successes]),
            str(len(cells)) if method != ORACLE else "", _millions(cells[0].get("steps_trained")),
            _steps_needed(game, cells),
        ])  # fmt: skip
    for method, strata in by_method.items():
        if len(strata) > 1 and len({len(successes) for successes in strata}) == 1:
            scores = np.mean([successes.mean() for successes in strata])
            rows.append(["all", method, "", f"**{scores:.1%}**", *_spread(strata), str(len(strata[0])), "", ""])
    header = ["game", "method", "paper", "mean", "interquartile mean", "95 % interval", "seeds", "steps",
              "steps to the paper's structured success"]  # fmt: skip
    if not any(row["game"] in games for row in chosen for games in PAPER.values()):
        header, rows = _without_paper(header), [_without_paper(row) for row in rows]
    return table(header, rows) + footnote(chosen)


def _without_paper(row: list[str]) -> list[str]:
    """A row of the table of success without the paper's figures."""
    return [*row[:2], *row[3:-1]]


def _spread(strata: Sequence[np.ndarray]) -> tuple[str, str]:
    if len(strata[0]) < 2:
        return "", ""
    low, high = bootstrap_interval(strata, interquartile_mean)
    scores = np.stack([successes.mean(axis=1) for successes in strata], axis=-1)
    return f"{interquartile_mean(scores):.1%}", f"{low:.1%} to {high:.1%}"


def _steps_needed(game: str, cells: list[Result]) -> str:
    """Where the mean learning curve first reaches the success that the paper reports of its model."""
    curve = mean_curve(cells)
    if curve is None or game not in PAPER["structured"]:
        return ""
    needed = steps_to(*curve, PAPER["structured"][game])
    if needed is None:
        return "not reached"
    return f"{'at most ' if needed <= curve[0][0] else ''}{needed / 1e6:.2g} M"


def mean_curve(cells: list[Result]) -> tuple[np.ndarray, np.ndarray] | None:
    """Steps and mean success at the looks that all seeds have in common; None if there are none."""
    curves = [{point["steps"]: point["success"] for point in cell.get("curve", ())} for cell in cells]
    steps = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
    if not steps:
        return None
    return np.array(steps, float), np.array([np.mean([curve[at] for curve in curves]) for at in steps])


def ablation_table(results: Iterable[Result], strict: bool = True) -> str:
    """What is lost without each part of the model, against the default of the same code, machine, budget and tasks."""
    structured = [row for row in results if row["method"] == "structured"]
    budgets = {(row["game"], row["budgeted_steps"]) for row in structured if row["variant"] not in ("default", "paper")}
    chosen = [row for row in structured if (row["game"], row["budgeted_steps"]) in budgets]
    cells = groups(comparable(chosen, "the table of ablations", strict))
    games = [game for game in GAMES if any(game == key[0] for key in budgets)]
    rows = []
    for name, variant in VARIANTS.items():
        texts = []
        for game in games:
            found = [rows for (g, _, v, _), rows in cells.items() if (g, v) == (game, name)]
            plain = [rows for (g, _, v, _), rows in cells.items() if (g, v) == (game, "default")]
            texts.append(_against(found[0], plain[0] if plain and name != "default" else None) if found else "")
        if any(texts):
            rows.append([variant.what, *texts])
    steps = {game: next(at for g, at in budgets if g == game) for game in games}
    titles = (f"{game}, {_millions(steps[game])}" for game in games)
    return table(["variant", *titles], rows) + (footnote(chosen) if chosen else "")


def _against(cells: list[Result], plain: list[Result] | None) -> str:
    """Mean and seeds; against the default the difference in points with its 95 % interval over seeds and tasks."""
    successes = successes_of(cells)
    if plain is None:
        return f"{successes.mean():.1%} ({len(cells)} seeds)"
    usual = successes_of(plain)
    low, high = difference_interval(successes, usual)
    points = 100 * (successes.mean() - usual.mean())
    return f"{successes.mean():.1%} ({points:+.1f}: {100 * low:+.1f} to {100 * high:+.1f})"


def detail_table(results: Iterable[Result], strict: bool = True) -> str:
    """Every group of cells with its seeds, causes of failure, settings and hardware."""
    rows = []
    for (game, method, variant, _), cells in groups(results).items():
        if method == ORACLE:
            continue
        comparable(cells, f"the row {game}, {method}, {variant}", strict)
        causes = {cause: sum(cell["failures"][cause] for cell in cells) for cause in cells[0]["failures"]}
        steps = [cell["mean_steps"] for cell in cells if cell["mean_steps"]]
        rows.append([
            game, method, variant, _millions(cells[0]["steps_trained"]),
            f"**{np.mean([cell['success'] for cell in cells]):.1%}**",
            ", ".join(f"{cell['success']:.1%} ({cell['seed']})" for cell in cells),
            f"{np.mean(steps):.0f}" if steps else "",
            ", ".join(f"{count} {cause}" for cause, count in causes.items())
            + f" (of {sum(cell['tasks'] for cell in cells)})",
            _settings(cells[0]), cells[0]["hardware"], code_of(cells[0]),
        ])  # fmt: skip
    header = ["game", "method", "variant", "steps", "success", "per seed", "steps to goal", "failed tasks by cause",
              "settings", "on", "code"]  # fmt: skip
    return table(header, rows)


def _settings(row: Result) -> str:
    config = config_from_json(row["config"], Path("a result"))
    usual = find_method(config.method).settings_for(config.game, row["variant"] == "paper")
    known = VARIANTS[row["variant"]].settings if row["variant"] in VARIANTS else {}
    other = {name: value for name, value in differences(config.settings, usual).items() if name not in known}
    return ", ".join(f"{name} {value}" for name, value in other.items()) or "the defaults"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _millions(steps: int | None) -> str:
    return f"{steps / 1e6:.1f} M" if steps else ""
