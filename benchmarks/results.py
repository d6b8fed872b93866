"""Writes the tables of the README and of docs/ from the files in results/: python benchmarks/results.py."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from algebra_tables import lake_table, needed_table, poses_table, rare_table, suggest_table, worlds_table, worth_table
from attribute_tables import (
    MINIGRID,
    NOISE,
    PIXEL_ERRORS,
    PIXEL_SUCCESS,
    attribute_table,
    error_table,
    learnt_success_table,
)
from common import RESULTS, ROOT, replace_table
from generalisation_tables import (
    efficiency_table,
    exchange_table,
    generalisation_table,
    maps_table,
    mining_table,
    switches_table,
    traps_table,
    verdicts_table,
)
from ogbench_tables import puzzle_details, puzzle_spaces, puzzle_success
from reliability import reliability_table
from reproduction import LADDER, RECIPE, ladder_table, rates_table, recipes_table, samples_table
from speed_tables import (
    evaluations_table,
    games_table,
    lanes_table,
    peers_table,
    planning_table,
    random_table,
    tech_table,
    training_table,
    unstructured_table,
)
from unstated import UNSTATED, unstated_table
from update_tables import speed_tables
from viewer import viewer_table

from saplan.experiments.paper import PAPER
from saplan.experiments.statistics import bootstrap_interval, interquartile_mean
from saplan.experiments.tables import (
    ablation_table,
    by_group,
    code_of,
    comparable,
    detail_table,
    footnote,
    markdown_table,
    read_results,
    success_table,
    successes_of,
)
from saplan.storage.json_data import read_json
from saplan.training.store import ORACLE

AT_PAPERS_BUDGET, SMALL, SHIPPED = RESULTS / "paper", RESULTS / "small", RESULTS / "shipped"
README, DOCS = ROOT / "README.md", ROOT / "docs"
DETAILS = DOCS / "results-details.md"
STATED = {"switches": "50 M", "exchange": "40 M", "mining": "an unstated number"}
"""Training steps as the paper states them."""


def small_budgets() -> str:
    """The structured method at the small budgets."""
    rows, chosen = [], [row for row in read_results(SMALL) if row["variant"] == "default"]
    for (game, method, _, _), group in by_group(comparable(chosen, "the table of small budgets")).items():
        low, high = bootstrap_interval([successes_of(group)], interquartile_mean)
        success, steps = successes_of(group).mean(), f"{group[0]['steps_trained'] / 1e6:.1f} M"
        paper = f"{PAPER[method][game]:.1%} after {STATED[game]}"
        rows.append([game, steps, f"**{success:.1%}** ({low:.1%} to {high:.1%})", str(len(group)), paper])
    header = ["game", "training steps", "success (95 % interval)", "seeds", "the paper"]
    return markdown_table(header, rows) + footnote(chosen)


def methods() -> str:
    """All methods at the paper's budgets, one line per game, with the paper's figures after the dash."""
    found: dict[str, dict[str, str]] = {}
    chosen = comparable(read_results(AT_PAPERS_BUDGET), "the table of methods")
    for (game, method, _, _), group in by_group(chosen).items():
        text = f"{successes_of(group).mean():.1%}"
        if method != ORACLE:
            low, high = bootstrap_interval([successes_of(group)], interquartile_mean)
            text = f"**{text}** ({100 * low:.1f} to {high:.1%}) \u2013 {PAPER[method][game]:.1%}"
        found.setdefault(game, {})[method] = text
    names = list(dict.fromkeys(method for row in found.values() for method in row))
    rows = [[game, *(row.get(name, "") for name in names)] for game, row in found.items()]
    return markdown_table(["game", *names], rows) + footnote(chosen)


def row_times() -> str:
    """Time of the paper's structured row, with and without compiled programs from before."""
    rows = []
    for name, what in (("row-cold", "newly compiled"), ("row-warm", "compiled before")):
        result = read_json(RESULTS / f"{name}.json")
        first, last = (max(row[when] for row in result["rows"]) for when in ("compiled", "trained"))
        rows.append([what, f"{first:.0f} s", f"{last - first:.0f} s", f"**{result['wall_seconds']:.0f} s**"])
    header = ["programs", "until the first chunk of all runs", "training", "in all"]
    return markdown_table(header, rows) + made_by("row-cold", "row-warm")


def mean_and_each(values: Sequence[float]) -> str:
    """A mean in bold, and its values."""
    return f"**{np.mean(values):.1%}** ({', '.join(f'{value:.1%}' for value in values)})"


def made_by(*names: str) -> str:
    """One line below a table: the code and machine of each of its files."""
    made = []
    for name in names:
        path = RESULTS / f"{name}.json"
        if path.exists():
            file = read_json(path)
            made.append(f"`results/{name}.json`: code {code_of(file)}, {file.get('hardware', 'hardware not recorded')}")
    return "\n\n" + "; ".join(made) + "."


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a result file; empty if it does not exist."""
    path = RESULTS / f"{name}.json"
    return read_json(path)["rows"] if path.exists() else []


def composable() -> str:
    """The predecessor's games, beside the success that its authors report."""
    rows = [
        [row["game"], _millions(row["steps"]), mean_and_each(row["success"]), f"{row['reported']:.1%}"]
        for row in rows_of("composable")
    ]
    return markdown_table(["game", "steps", "unstructured", "the authors report"], rows) + made_by("composable")


def distance() -> str:
    """Success of the unstructured planner on exchange, by the largest distance of goals."""
    result = read_json(RESULTS / "distance-unstructured.json")
    found = result["by_distance"]
    header = ["goals up to this many changes away", *(str(row["farthest"]) for row in found)]
    line = [f"success on {result['tasks']} tasks", *(f"{row['success']:.1%}" for row in found)]
    return markdown_table(header, [line]) + made_by("distance-unstructured")


def edges() -> str:
    """Calibration and accuracy of the edge detectors of the shipped agents, one column per game."""
    runs = read_json(RESULTS / "benchmark-edges.json")["runs"]
    heads = [run["rules"]["heads"] for run in runs]
    infeasible = [head["calibrated"]["mean_infeasible"] for head in heads]
    rows = [
        ["held-out tasks that succeed", *(f"{run['task_success']:.1%} of {run['tasks']}" for run in runs)],
        ["held-out attempts", *(f"{run['attempts']['attempts']:,}" for run in runs)],
        ["expected calibration error of the calibrated head", *(f"{run['attempts']['ece']:.3f}" for run in runs)],
        ["mean output where a transition is feasible by the rules",
         *(f"{head['calibrated']['mean_feasible']:.3f}" for head in heads)],
        ["mean output where it is infeasible by the rules",
         *("none is inside the space" if mean is None else f"{mean:.3f}" for mean in infeasible)],
        ["feasible edges that the balanced head would not propose (below p_0)",
         *(f"{head['balanced']['dead']:.1%}" for head in heads)],
    ]  # fmt: skip
    return markdown_table(["", *(run["run"] for run in runs)], rows) + made_by("benchmark-edges")


def taxi() -> str:
    """Goals reached and edges learnt, by seed."""
    rows = rows_of("taxi")
    cells = [
        [str(row["seed"]), f"{row['success']:.1%}", f"{row['precision']:.3f}", f"{row['recall']:.3f}"] for row in rows
    ]
    return markdown_table(["seed", "goals reached", "precision of edges", "recall of edges"], cells) + made_by("taxi")


def minigrid() -> str:
    """Every goal of every environment, ours beside the opponent that is rewarded for it."""
    ours, paid = rows_of("minigrid"), rows_of("minigrid-ppo")
    cells = []
    for env in dict.fromkeys(row["env"] for row in ours):
        mine = [row for row in ours if row["env"] == env]
        theirs = [row for row in paid if row["env"] == env]
        for goal in mine[0]["goals"]:
            ppo = [row["goals"][goal] for row in theirs if goal in row["goals"]]
            reached = mean_and_each([row["goals"][goal] for row in mine])
            cells.append([env, f"`{goal}`", _millions(mine[0]["steps"]), reached, mean_and_each(ppo) if ppo else ""])
    header = ["environment", "goal", "steps", "ours", "PPO, rewarded for this goal"]
    return markdown_table(header, cells) + made_by("minigrid", "minigrid-ppo")


def craftax() -> str:
    """Every goal from shallow to deep by training steps, ours beside the opponent that is rewarded for it."""
    ours, paid = rows_of("craftax"), rows_of("craftax-ppo")
    budgets = sorted({row["steps"] for row in ours})
    cells = []
    for goal in ours[0]["goals"] if ours else ():
        mine = [[row["goals"][goal] for row in ours if row["steps"] == steps] for steps in budgets]
        theirs = [[r["success"] for r in paid if (r["goal"], r["steps"]) == (goal, steps)] for steps in budgets]
        cells.append([f"`{goal}`", *[mean_and_each(each) if each else "" for each in (*mine, *theirs)]])
    titles = [f"{who}, {steps / 1e6:.0f} M" for who in ("ours", "PPO, rewarded for this goal") for steps in budgets]
    return markdown_table(["goal", *titles], cells) + made_by("craftax", "craftax-ppo")


def _millions(steps: float) -> str:
    return f"{steps / 1e6:g} M"


__all__ = ["TABLES", "generalisation_table"]

TABLES: tuple[tuple[Path, str, Callable[[], str]], ...] = (
    (DETAILS, "paper's budgets", lambda: success_table(read_results(AT_PAPERS_BUDGET))),
    (DETAILS, "paper's budgets in detail", lambda: detail_table(read_results(AT_PAPERS_BUDGET))),
    (DETAILS, "small budgets in detail", lambda: detail_table(read_results(SMALL))),
    (DETAILS, "shipped", lambda: detail_table(read_results(SHIPPED))),
    (DETAILS, "row", row_times),
    (DETAILS, "ablations", lambda: ablation_table(read_results(SMALL))),
    (DETAILS, "unstructured table", unstructured_table),
    (DETAILS, "distance", distance),
    (DETAILS, "composable", composable),
    (DETAILS, "edges", edges),
    (DOCS / "results.md", "taxi", taxi),
    (DOCS / "results.md", "minigrid", minigrid),
    (DOCS / "results.md", "craftax", craftax),
    (DOCS / "speed.md", "games", games_table),
    (DETAILS, "planning", planning_table),
    (DOCS / "speed.md", "training", training_table),
    (DOCS / "speed.md", "lanes", lanes_table),
    (DOCS / "attributes.md", "attribute errors", error_table),
    (DOCS / "attributes.md", "success with learnt attributes", learnt_success_table),
    (DOCS / "reliability.md", "reliability", reliability_table),
    (DOCS / "viewer.md", "viewer", viewer_table),
    (DOCS / "ogbench.md", "puzzles", puzzle_success),
    (DOCS / "ogbench.md", "puzzles in detail", puzzle_details),
    (DOCS / "ogbench.md", "algebra of the puzzles", puzzle_spaces),
    (DOCS / "results.md", "methods in short", methods),
    (DOCS / "results.md", "small budgets in short", small_budgets),
    (README, "methods", methods),
)

BEYOND = DOCS / "generalisation.md"


def in_short() -> str:
    """The README's first table, with the sentence that says what it shows."""
    said = (
        "Structure carries over to worlds that training never saw. Agents that were trained with one to three objects\n"
        "of each kind act with up to sixteen (success; all methods with the same training):"
    )
    return f"{said}\n\n{generalisation_table()}"


GENERALISATION: tuple[tuple[Path, str, Callable[[], str]], ...] = (
    (BEYOND, "generalisation on switches", switches_table),
    (BEYOND, "generalisation on exchange", exchange_table),
    (BEYOND, "generalisation on mining", mining_table),
    (BEYOND, "generalisation on larger maps", maps_table),
    (BEYOND, "traps", traps_table),
    (BEYOND, "sample efficiency", efficiency_table),
    (BEYOND, "verdicts", verdicts_table),
    (README, "generalisation", in_short),
)
"""Tables of a page that is written once `benchmarks/generalisation.py` has been run."""
if (RESULTS / "generalisation.json").exists():
    TABLES += GENERALISATION

PLANNING: tuple[tuple[Path, str, Callable[[], str]], ...] = (
    (DOCS / "planning.md", "peers", peers_table),
    (DOCS / "planning.md", "tech trees", tech_table),
    (DOCS / "planning.md", "random problems", random_table),
    (DOCS / "planning.md", "evaluations", evaluations_table),
)
TABLES += PLANNING

ALGEBRA: tuple[tuple[tuple[str, ...], str, Callable[[], str]], ...] = (
    (("suggest",), "suggest", suggest_table),
    (("suggest",), "transitions needed", needed_table),
    (("suggest",), "transitions by world", worlds_table),
    (("suggest", "suggest-from-start"), "rare values", rare_table),
    (("worth",), "worth", worth_table),
    (("worth-cpu",), "worth on one core", lambda: worth_table("worth-cpu")),
    (("worth-5m",), "worth after 5 M steps", lambda: worth_table("worth-5m")),
    (("poses", "poses-anywhere"), "poses", poses_table),
    (("frozen-lake",), "frozen lake", lake_table),
)
"""Tables of docs/algebra.md: the result files of each, its name and its function."""


def _algebra_table(files: tuple[str, ...], make: Callable[[], str]) -> Callable[[], str]:
    return lambda: make() + made_by(*files)


TABLES += tuple(
    (DOCS / "algebra.md", name, _algebra_table(files, make))
    for files, name, make in ALGEBRA
    if all((RESULTS / f"{file}.json").exists() for file in files)
)
TABLES += tuple((DOCS / "speed.md", name, make) for name, make in speed_tables())

ATTRIBUTES, REPRODUCTION = DOCS / "attributes.md", DOCS / "reproduction.md"
PAPERS: tuple[tuple[Path, Path, str, Callable[[], str]], ...] = (
    (AT_PAPERS_BUDGET, REPRODUCTION, "recipes", recipes_table),
    (AT_PAPERS_BUDGET, REPRODUCTION, "steps needed", samples_table),
    (AT_PAPERS_BUDGET, REPRODUCTION, "label rates", rates_table),
    (RECIPE, REPRODUCTION, "recipes in detail", lambda: detail_table(read_results(RECIPE))),
    (LADDER, REPRODUCTION, "ladder", ladder_table),
    (UNSTATED, REPRODUCTION, "unstated numbers", unstated_table),
    (PIXEL_ERRORS, ATTRIBUTES, "pixel errors", attribute_table),
    (PIXEL_ERRORS, ATTRIBUTES, "pixel losses", lambda: error_table(PIXEL_ERRORS)),
    (NOISE, ATTRIBUTES, "noisy labels", lambda: error_table(NOISE)),
    (MINIGRID, ATTRIBUTES, "minigrid errors", lambda: attribute_table(MINIGRID)),
    (MINIGRID, ATTRIBUTES, "minigrid losses", lambda: error_table(MINIGRID)),
    (PIXEL_SUCCESS, ATTRIBUTES, "success on pixels", lambda: learnt_success_table(PIXEL_SUCCESS, (100_000,))),
)
"""The paper's own recipe and attributes from pixels, where they were measured."""
TABLES += tuple((document, name, make) for made, document, name, make in PAPERS if made.exists())


if __name__ == "__main__":
    for document, name, make in TABLES:
        replace_table(document, name, make())
