"""Tables and pictures of `docs/generalisation.md`, from `results/generalisation.json`.

python benchmarks/generalisation_tables.py        writes the pictures; `results.py` writes the tables
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from common import RESULTS, ROOT
from generalisation_jobs import BOX, HALF, OBJECTS, SEEDS, TRAINED, TRAPS, WORLDS

from saplan.experiments.figures import COLOURS, panels, save_figure
from saplan.experiments.paper import PAPER
from saplan.experiments.statistics import bootstrap_interval, decode_successes, steps_to
from saplan.experiments.tables import markdown_table
from saplan.games import task_set
from saplan.storage.json_data import read_json

FILE = RESULTS / "generalisation.json"
METHODS = {
    "structured": "structured", "without-rho": "structured, policy without ρ",
    "visited only": "structured, visited values only", "raw": "raw features",
    "integers": "ℤ/q as ℤ", "unstructured": "unstructured", "curriculum": "curriculum", "oracle": "oracle",
}  # fmt: skip
"""Lines of a table and of a picture, with their titles."""
STYLES = {"structured": ("-", "o"), "without-rho": ("-", "P"), "visited only": (":", "o"), "raw": ("--", "v"),
          "integers": ("-.", "D"), "unstructured": ("--", "s"), "curriculum": ("-.", "^"),
          "oracle": ((0, (6, 3)), "")}  # fmt: skip
PALETTE = {**COLOURS, "without-rho": "#3fa34d", "visited only": "#0b6e4f", "raw": "#e0912f", "integers": "#7b4ea3"}
COMPARED = ("structured", "unstructured")
"""The methods whose sample efficiency is compared."""
TITLES = {TRAINED: "1..3 (trained)", "12..16": "12..16, maps of 10 × 10", "maps 15": "maps of 15 × 15",
          "maps 20": "maps of 20 × 20"}  # fmt: skip


@cache
def result() -> dict[str, Any]:
    """The result file."""
    found: dict[str, Any] = read_json(FILE)
    return found


def points(game: str, method: str, world: str) -> list[dict[str, Any]]:
    """All seeds of a line at a point, none if some are missing; "visited only" is the structured agent so set."""
    variant, name = (method, "structured") if method == "visited only" else ("", method)
    wanted = f"{game}-{name}", world, variant
    found = [point for point in result()["points"] if (point["name"], point["point"], point["variant"]) == wanted]
    return found if method == "oracle" or len(found) == SEEDS else []


def solved(found: Sequence[dict[str, Any]]) -> np.ndarray:
    """The tasks that every seed solved, one row per seed."""
    return np.stack([decode_successes(point["successes"], point["tasks"]) for point in found])


def cell(found: Sequence[dict[str, Any]], bold: bool = False) -> str:
    """Mean success with its interval over seeds and tasks."""
    if not found:
        return ""
    successes = solved(found)
    mark = "**" if bold else ""
    text = f"{mark}{successes.mean():.1%}{mark}"
    if len(found) == 1:
        return text
    low, high = bootstrap_interval([successes], lambda scores: scores.mean(axis=(-2, -1)))
    return f"{text} ({100 * low:.1f} to {high:.1%})"


def success_by_world(game: str, worlds: Sequence[str], methods: Sequence[str] = tuple(METHODS)) -> str:
    """Success of every method in several worlds, with the budgets of steps."""
    rows, worlds = [], [world for world in worlds if points(game, "structured", world)]
    for method in methods:
        cells = [cell(points(game, method, world), method == "structured") for world in worlds]
        if any(cells):
            rows.append([METHODS[method], *cells])
    budgets = [str(points(game, "structured", world)[0]["budget"]) for world in worlds]
    head = [game, *(TITLES.get(world, world) for world in worlds)]
    return markdown_table(head, [*rows, ["steps per task", *budgets]])


def generalisation_table() -> str:
    """The short table for the README: both games with more objects, and maps twice as wide."""
    columns = [("switches", world) for world in (*OBJECTS, "maps 20")] + [("exchange", "6..8")]
    columns = [(game, world) for game, world in columns if points(game, "structured", world)]
    rows = []
    for method in ("structured", "unstructured", "curriculum"):
        row = [points(game, method, world) for game, world in columns]
        if any(row):
            rows.append([method, *(f"{solved(found).mean():.1%}" if found else "" for found in row)])
    titles = [f"{game} {TITLES.get(world, world)}" for game, world in columns]
    return markdown_table(["objects of each kind", *titles], rows) + footnote()


def switches_table() -> str:
    """Switches with more objects."""
    return success_by_world("switches", OBJECTS) + footnote()


def exchange_table() -> str:
    """Exchange with more objects."""
    return success_by_world("exchange", OBJECTS[:3]) + footnote()


def maps_table() -> str:
    """All games on larger maps, as success and as a share of that on the trained sizes."""
    rows = []
    for game, name in (("switches", "structured"), ("exchange", "structured"), ("mining", "left-out")):
        found = {world: points(game, name, world) for world in (TRAINED, "maps 15", "maps 20")}
        if not all(found.values()):
            continue
        means = {world: solved(each).mean() for world, each in found.items()}
        shares = [f"{means[world] / means[TRAINED]:.1%}" for world in ("maps 15", "maps 20")]
        budgets = " / ".join(str(each[0]["budget"]) for each in found.values())
        rows.append([game, *(cell(each) for each in found.values()), *shares, budgets])
    if not rows:
        return "Not measured yet."
    head = ["game", "7..10 (trained)", "15 × 15", "20 × 20", "share at 15", "share at 20", "steps per task"]
    return markdown_table(head, rows) + footnote()


def mining_table() -> str:
    """Goals inside and outside the part of S that training left out."""
    rows = []
    for name, title in (("left-out", "trained without the box"), ("plain", "trained everywhere")):
        found = [points("mining", name, world) for world in ("goals outside", "goals inside")]
        if all(found):
            outside, inside = (solved(each).mean() for each in found)
            rows.append([title, *(cell(each) for each in found), f"{inside / outside:.1%}"])
    return markdown_table(["mining", "goals outside", "goals inside", "inside / outside"], rows) + footnote()


def traps_table() -> str:
    """What happened in the worlds where structure must not carry over."""
    rows = []
    for world, easy in TRAPS.items():
        for game, name in (("exchange", "structured"), ("mining", "left-out"), ("mining", "hole")):
            found, usual = points(game, name, world), points(game, name, easy)
            if found and world in WORLDS[game]:
                rows.append([trap_title(game, name, world), *trap_cells(found), cell(found), cell(usual)])
    head = ["world", "tasks that met the trap", "failed attempts at it, per such task (most)", "steps spent on them",
            "success after meeting it", "success", "the same world without the trap"]  # fmt: skip
    return markdown_table(head, rows) + footnote()


def trap_title(game: str, name: str, world: str) -> str:
    """A world of the table in words."""
    titles = {"purse 5": "exchange, a purse that holds 5", "rates 10": "exchange, rates that change at 10",
              "hole": "mining, a hole in S"}  # fmt: skip
    return titles[world] + (" that training knew" if name == "hole" else " (never met in training)")


def trap_cells(found: Sequence[dict[str, Any]]) -> list[str]:
    """Tasks, attempts, steps and success of tasks that met a trap."""
    tasks = sum(point.get("trapped_tasks", 0) for point in found)
    attempts = sum(point.get("trapped", 0) for point in found)
    after = sum((point.get("trapped_success") or 0.0) * point.get("trapped_tasks", 0) for point in found)
    most = max(point.get("trapped_most", 0) for point in found)
    return [f"{tasks / sum(point['tasks'] for point in found):.1%}", f"{attempts / max(tasks, 1):.2f} ({most})",
            f"{trapped_share(found):.2%}", f"{after / max(tasks, 1):.1%}"]  # fmt: skip


def trapped_share(found: Sequence[dict[str, Any]]) -> float:
    """The share of all steps that were spent on changes that only the trap prevents."""
    return float(sum(point.get("trapped_steps", 0) for point in found) / sum(point["steps"] for point in found))


def verdicts_table() -> str:
    """What the project promised to show, beside what was measured."""
    inside, outside = (mean("mining", "left-out", world) for world in ("goals inside", "goals outside"))
    wanted: list[tuple[str, float, float | None]] = [
        ("switches, trained on 1..3: 6..8 objects", 0.97, mean("switches", "structured", "6..8")),
        ("switches, trained on 1..3: 12..16 objects", 0.90, mean("switches", "structured", "12..16")),
        ("exchange, trained on 1..3: 6..8 objects", 0.95, mean("exchange", "structured", "6..8")),
        ("mining: success inside the box, as a share of that outside", 0.80, ratio(inside, outside)),
    ]
    for game, name in (("switches", "structured"), ("exchange", "structured"), ("mining", "left-out")):
        share = ratio(mean(game, name, "maps 20"), mean(game, name, TRAINED))
        wanted.append((f"{game}: maps twice as wide, as a share of the trained sizes", 0.90, share))
    rows = []
    for what, least, figure in wanted:
        judged = ["not measured", ""] if figure is None else [f"{figure:.1%}", "met" if figure >= least else "missed"]
        rows.append([what, f"at least {least:.0%}", *judged])
    found = points("mining", "hole", "hole")
    if found:
        share = trapped_share(found)
        what = "mining, trained with the hole: steps spent on changes that it prevents"
        rows.append([what, "at most 1%", f"{share:.2%}", "met" if share <= 0.01 else "missed"])
    return markdown_table(["promise", "wanted", "measured", ""], rows) + footnote()


def mean(game: str, method: str, world: str) -> float | None:
    """Success of all seeds at a point; None if it was not measured."""
    found = points(game, method, world)
    return float(solved(found).mean()) if found else None


def ratio(part: float | None, whole: float | None) -> float | None:
    """One success as a share of another; None unless both were measured."""
    return part / whole if whole and part is not None else None


def efficiency_table() -> str:
    """Steps of training to the paper's success, and to half of the tasks, by the largest number of objects."""
    rows = []
    for most in (4, 8, 16):
        names = [f"efficiency-{method}-{most}" for method in COMPARED]
        if all(name in result()["efficiency"] for name in names):
            one, other = (result()["efficiency"][name] for name in names)
            enough = PAPER["structured"]["switches"]
            texts = [steps_text(one, enough), steps_text(other, enough)]
            rows.append([f"1..{most}", *texts, *(ratio_text(one, other, wanted) for wanted in (enough, HALF))])
    header = ["objects of a kind", *COMPARED, "ratio", f"ratio of the steps to {HALF:.0%}"]
    table = markdown_table(header, rows)
    curves = list(result()["efficiency"].values())
    if not curves:
        return table
    code = " and ".join(dict.fromkeys(f"code {one['code']['commit']} on {one['hardware']}" for one in curves))
    return f"{table}\n\n`results/generalisation.json`: {code}; {curves[0]['tasks']} tasks."


def reached(curve: dict[str, Any], wanted: float) -> float | None:
    """Steps at which the mean over seeds reaches a success."""
    steps = np.array([point["steps"] for point in curve["points"]], float)
    return steps_to(steps, np.array([np.mean(point["success"]) for point in curve["points"]]), wanted)


def ratio_text(one: dict[str, Any], other: dict[str, Any], wanted: float) -> str:
    """How many times the steps of the first curve the second one needs; at least, where it never gets there."""
    least, needed = (reached(curve, wanted) for curve in (one, other))
    if least is None:
        return ""
    # Where the first measurement is above the success already, it was reached before.
    over = "over " * (least == one["points"][0]["steps"] or needed is None)
    return f"{over}{(needed or other['points'][-1]['steps']) / least:.0f}"


def steps_text(curve: dict[str, Any], wanted: float) -> str:
    """Steps at which the mean over seeds reaches a success; without that, the best success."""
    points, needed = curve["points"], reached(curve, wanted)
    seeds = len(points[0]["success"])
    counted = f"{seeds} seed{'s' * (seeds > 1)}"
    if needed is not None:
        return f"**{needed / 1e6:.2f} M** steps ({counted})"
    best = max(np.mean(point["success"]) for point in points)
    return f"not within {points[-1]['steps'] / 1e6:.1f} M steps (best {best:.0%}, {counted})"


def footnote() -> str:
    """Code, machines and tasks of the result file."""
    found = result()
    trained = {about["code"]["source"]: about["hardware"] for about in found["trained"].values()}
    seeds = len({point["seed"] for point in found["points"]})
    by = " and ".join(f"source {source} on {hardware}" for source, hardware in trained.items())
    commits = ", ".join(dict.fromkeys(point["commit"] for point in found["points"]))
    where = f"evaluated by {commits} on {found['evaluated_on']}"
    tasks = f"{seeds} seeds, {found['tasks']} tasks of seed {found['task_seed']} a point"
    file = f"`results/generalisation.json`: agents trained by {by}, {where}"
    return f"\n\n{file}; {tasks}; 95 % intervals over seeds and tasks."


def draw_objects(game: str, worlds: Sequence[str]) -> None:
    """Success against the number of objects, the range of training shaded."""
    worlds = [world for world in worlds if points(game, "structured", world)]
    figure, (axis,) = panels(1, width=6.4)
    axis.axvspan(-0.4, 0.4, color="#0b6e4f", alpha=0.12, lw=0)
    axis.text(0, 4, "trained", ha="center", color="#0b6e4f")
    for method, title in METHODS.items():
        found = [points(game, method, world) for world in worlds]
        if not any(found):
            continue
        style, marker = STYLES[method]
        places = [k for k, each in enumerate(found) if each]
        success = [100 * solved(found[k]) for k in places]
        axis.plot(places, [s.mean() for s in success], ls=style, marker=marker, color=PALETTE[method], label=title)
        low, high = ([edge(s.mean(axis=1)) for s in success] for edge in (np.min, np.max))
        axis.fill_between(places, low, high, color=PALETTE[method], alpha=0.15, lw=0)
    axis.set_xticks(range(len(worlds)), [TITLES.get(world, world).replace(", ", "\n") for world in worlds])
    axis.set(title=game, ylim=(-2, 102), xlabel="objects of each kind", ylabel="tasks solved (%)")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save_figure(figure, ROOT / "docs/pictures", f"generalisation-{game}")


def draw_mining() -> None:
    """Goals in the plane of both minerals, by the share of seeds that reached them; the box was left out."""
    known = {"left-out": "trained without the box", "plain": "trained everywhere"}
    titles = {name: title for name, title in known.items() if points("mining", name, "goals inside")}
    figure, axes = panels(len(titles), width=5.4, sharey=True)
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        for world in ("goals outside", "goals inside"):
            found = points("mining", name, world)
            _, goals = task_set(WORLDS["mining"][world], found[0]["tasks"], result()["task_seed"])
            middle = (np.asarray(goals.low)[:, :2] + np.asarray(goals.high)[:, :2]) / 2
            shade = axis.scatter(*middle.T, c=100 * solved(found).mean(axis=0), cmap="viridis", s=6, vmin=0, vmax=100)
        corners = np.array([[0, 1], [2, 1], [2, 3], [0, 3], [0, 1]])
        axis.plot(*np.array(BOX)[corners].T, color="#d1495b", lw=1.6)
        axis.set(title=title, xlabel="m1", aspect="equal")
    axes[0].set_ylabel("m2")
    figure.colorbar(shade, ax=axes, label="seeds that reach the goal (%)", shrink=0.8)
    save_figure(figure, ROOT / "docs/pictures", "generalisation-mining")


if __name__ == "__main__":
    draw_objects("switches", OBJECTS)
    draw_objects("exchange", OBJECTS[:3])
    draw_mining()
    for path in (ROOT / "docs/pictures").glob("generalisation-*.pdf"):
        path.unlink()
