"""The paper's figures from trial results, as PNG and PDF: readable in grey, with one colour per method."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from saplan.errors import InputError
from saplan.experiments.paper import paper_success
from saplan.experiments.statistics import steps_to
from saplan.experiments.tables import Result, by_group, mean_curve
from saplan.games import GAMES, Game, Mining, make_game, task_set
from saplan.games.scene import Scene
from saplan.methods.agent import DEFAULT_PLANNER
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.pricing import edge_outlook
from saplan.storage.files import make_directory, replace_file
from saplan.training.store import ORACLE

PICTURES = "pictures"
"""The directory of the figures, beside the results."""
DRAWN = ("default", "paper")
"""Variants with figures of their own."""
COLOURS = {"structured": "#0b6e4f", "unstructured": "#d1495b", "curriculum": "#3066be", ORACLE: "#555555"}
MARKERS = {"structured": "o", "unstructured": "s", "curriculum": "^"}
LINES = {"structured": "-", "unstructured": "--", "curriculum": "-."}


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """Writes a figure in both formats; equal data give equal bytes."""
    import matplotlib.pyplot as plt

    make_directory(folder)
    paths = [folder / f"{name}.png", folder / f"{name}.pdf"]
    png, pdf = io.BytesIO(), io.BytesIO()
    figure.savefig(png, format="png", dpi=130, metadata={"Software": None})
    figure.savefig(pdf, format="pdf", metadata={"CreationDate": None, "Producer": None, "Creator": None})
    for path, data in zip(paths, (png, pdf), strict=True):
        replace_file(path, data.getvalue())
    plt.close(figure)
    return paths


def panels(columns: int, rows: int = 1, width: float = 4.0, height: float = 3.6, **more: Any) -> tuple[Any, Any]:
    """A figure and its axes: a grid if there are several rows, else a list."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (width * columns, height * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **more)
    return figure, axes if rows > 1 else axes[0]


def _games_of(rows: Iterable[Result]) -> list[str]:
    """The games of these results, in their usual order."""
    found = {row["game"] for row in rows}
    return [name for name in GAMES if name in found]


def _named(name: str, variant: str) -> str:
    """The file of a figure."""
    return name if variant == "default" else f"{name}-{variant}"


def learning_curves(results: Iterable[Result], folder: Path, variant: str = "default") -> list[Path]:
    """Success on held-back tasks against environment steps.

    Lines are means, bands all seeds. A short vertical line marks the steps at which a method reaches the success that
    the paper reports for its model (thin dotted line).
    """
    rows = [row for row in results if row.get("variant", "default") == variant or row["method"] == ORACLE]
    games = _games_of(rows)
    figure, axes = panels(len(games), sharey=True)
    for axis, game in zip(axes, games, strict=True):
        wanted = paper_success(game)
        if wanted is not None:
            axis.axhline(100 * wanted, color="black", ls=":", lw=1)
        for (found, method, _, _), group in by_group(rows).items():
            if found == game and method == ORACLE:
                axis.axhline(100 * group[0]["success"], color=COLOURS[ORACLE], ls=(0, (6, 3)), lw=1.2, label=ORACLE)
            elif found == game:
                _draw_curve(axis, method, group, wanted)
        axis.set(title=game, xscale="log", xlabel="environment steps (millions)", ylim=(-2, 102))
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("tasks solved within 150 steps (%)")
    named = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if any(paper_success(game) is not None for game in games):
        named["the paper's structured model"] = axes[0].plot([], [], color="black", ls=":", lw=1)[0]
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=max(1, len(named)), fontsize=9)
    return save_figure(figure, folder, _named("curves", variant))


def _draw_curve(axis: Any, method: str, group: list[Result], wanted: float | None) -> None:
    """Draws the learning curve of a method, and the steps at which it reaches the wanted success."""
    curve = mean_curve(group)
    if curve is None:
        return
    steps, success = curve
    each = np.array([[p["success"] for p in row["curve"] if p["steps"] in set(steps)] for row in group if row["curve"]])
    style = {"color": COLOURS[method], "marker": MARKERS[method], "ls": LINES[method]}
    axis.plot(steps / 1e6, 100 * success, label=method, ms=5, **style)
    band = (100 * each.min(axis=0), 100 * each.max(axis=0))
    axis.fill_between(steps / 1e6, *band, color=COLOURS[method], alpha=0.18, lw=0)
    needed = None if wanted is None else steps_to(steps, success, wanted)
    if wanted is not None and needed is not None and needed > steps[0]:
        axis.vlines(needed / 1e6, -2, 100 * wanted, color=COLOURS[method], lw=0.8)
        axis.annotate(f"{needed / 1e6:.2g} M", (needed / 1e6, 1), fontsize=8, color=COLOURS[method], ha="left")


def example_rates(results: Iterable[Result], folder: Path, variant: str = "default") -> list[Path]:
    """Positive examples from exploration and negative ones from failed executions, per 1,000 steps."""
    rows = [r for r in results if r["method"] == "structured" and r.get("variant") == variant and r.get("examples")]
    games = _games_of(rows)
    figure, axes = panels(len(games), height=3.2)
    for axis, game in zip(axes, games, strict=True):
        for row in (row for row in rows if row["game"] == game):
            steps = np.array([point["steps"] for point in row["examples"]], float)
            for kind, colour, line in (("positives", "#0b6e4f", "-"), ("negatives", "#d1495b", "--")):
                counts = np.array([point[kind] for point in row["examples"]], float)
                rate = 1000 * np.diff(counts, prepend=0) / np.diff(steps, prepend=0)
                label = kind[:-1] if row["seed"] == rows[0]["seed"] else None
                axis.plot(steps / 1e6, rate, line, color=colour, lw=1, alpha=0.8, label=label)
        axis.set(title=game, yscale="log", xlabel="environment steps (millions)")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("examples per 1,000 steps")
    axes[0].legend(*max((axis.get_legend_handles_labels() for axis in axes), key=lambda pair: len(pair[0])), fontsize=9)
    return save_figure(figure, folder, _named("examples", variant))


PLANS = 6
"""Number of executed plans to draw."""


def mining_support(agent: StructuredAgent, folder: Path) -> list[Path]:
    """The set S of mining, the strips where games start (black), the learnt probability of every transition over it,
    and executed plans.
    """
    game = agent.game
    assert isinstance(game, Mining)
    first, second = (np.linspace(0, high, 131) for high in (13.2, 8.0))
    amounts = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    inside = np.asarray(game.inside(jnp.asarray(amounts))).reshape(len(second), len(first))
    figure, axes = panels(3, 2, height=2.9, sharex=True, sharey=True)
    picture = None
    for axis, (name, delta) in zip(axes.flat, game.admissible(), strict=False):
        hammer = np.full((len(amounts), 1), 1.0 if delta[-1] < 0 else 0.0)
        rho = jnp.asarray(np.concatenate([amounts, hammer], axis=1), jnp.float32)
        entry = int(agent.memory.index(game.space, jnp.array(delta)))
        learnt = np.exp(np.asarray(edge_outlook(agent, rho, DEFAULT_PLANNER)[0]))[:, entry].reshape(inside.shape)
        shown = np.where(inside, learnt, np.nan)
        picture = axis.pcolormesh(
            first, second, shown, vmin=0, vmax=1, cmap="viridis", shading="nearest", rasterized=True
        )
        axis.set_title(name, fontsize=10)
    _draw_plans(agent, axes.flat[len(game.admissible())])
    starts = np.where(inside & (second <= game.foot)[:, None], 1.0, np.nan)
    for axis in axes.flat:
        axis.contour(first, second, inside, levels=[0.5], colors="black", linewidths=1)
        axis.contourf(first, second, starts, levels=[0.5, 1.5], colors="black", alpha=0.35)
        axis.set_aspect("equal")
    for axis in axes[-1]:
        axis.set_xlabel("m1")
    for axis in axes[:, 0]:
        axis.set_ylabel("m2")
    figure.colorbar(picture, ax=axes, label="learnt probability of success", shrink=0.8)
    return save_figure(figure, folder, "support")


def _draw_plans(agent: StructuredAgent, axis: Any) -> None:
    """Draws the paths of tasks in the plane, from a dot to the box of the goal."""
    states, goals = task_set(agent.game, PLANS, 3)
    executor = agent.executor(states, goals, DEFAULT_PLANNER)
    path, under_way = [executor.rho.copy()], ~executor.done
    for _ in executor.moves(150, 0):
        path.append(np.where(under_way[:, None], executor.rho, path[-1]))
        under_way = ~executor.done
    for k in range(PLANS):
        points = np.stack([rho[k] for rho in path])
        line = axis.plot(points[:, 0], points[:, 1], lw=1.2)[0]
        axis.plot(*points[0, :2], "o", ms=4, color=line.get_color())
        (left, low), (right, high) = np.asarray(goals.low)[k, :2], np.asarray(goals.high)[k, :2]
        lost = not executor.result.success[k]
        axis.fill_between([left, right], low, high, fc="0.85" if lost else "none", ec=line.get_color(), lw=1.2)
    axis.set_title("executed plans (grey: not reached)", fontsize=10)


SHAPES = {"object": "o", "switch": "D", "deposit": "^", "store": "P", "dump": "v"}


def schemas(folder: Path) -> list[Path]:
    """A map of each game, its attributes and its transitions."""
    figure, axes = panels(len(GAMES), height=5.0)
    for axis, name in zip(axes, GAMES, strict=True):
        _draw_schema(axis, make_game(name))
    return save_figure(figure, folder, "schemas")


def _draw_schema(axis: Any, game: Game[Any]) -> None:
    from matplotlib.colors import is_color_like

    try:
        scene = game.scene(game.reset(jax.random.key(5)))
    except InputError:  # the game has no scene
        scene = Scene(1, 1, frozenset(), (0, 0), (), ())
    for row, column in scene.walls:
        axis.fill_between([column - 0.5, column + 0.5], row - 0.5, row + 0.5, color="0.35", lw=0)
    for thing in scene.things:
        colour = {"grey": "0.5", "yellow": "#e0b000"}.get(thing.colour, thing.colour)
        colour = colour if is_color_like(colour) else "0.5"
        axis.plot(thing.column, thing.row, SHAPES.get(thing.shape, "o"), ms=9, color=colour, mec="black", mew=0.6)
        axis.annotate(thing.colour[0], (thing.column, thing.row), fontsize=6, ha="center", va="center", color="white")
    axis.plot(scene.agent[1], scene.agent[0], "*", ms=13, color="black")
    axis.set(xlim=(-0.5, scene.width - 0.5), ylim=(scene.height - 0.5, -0.5), aspect="equal", title=game.name)
    axis.set_xticks(np.arange(scene.width) - 0.5, [])
    axis.set_yticks(np.arange(scene.height) - 0.5, [])
    axis.grid(color="0.85", lw=0.6)
    space = game.space
    changes = [space.format_delta(jnp.array(delta)) for _, delta in game.admissible()]
    kinds = " × ".join(dict.fromkeys(block.symbol for block in space.blocks))
    text = "\n".join([f"{', '.join(space.names)}  ({kinds})", "", *changes])
    axis.set_xlabel(text, fontsize=7.5, loc="left", labelpad=8)


def draw_all(results: list[Result], folder: Path, mining_agent: StructuredAgent | None) -> list[Path]:
    """Every figure that the results allow."""
    paths = schemas(folder)
    for variant in DRAWN:
        rows = [row for row in results if row.get("variant", "default") == variant]
        if any(row.get("curve") for row in rows):
            paths += learning_curves(results, folder, variant)
        if any(row.get("examples") and row["method"] == "structured" for row in rows):
            paths += example_rates(results, folder, variant)
    if mining_agent is not None:
        paths += mining_support(mining_agent, folder)
    return paths
