"""Learning curves of all methods on all games, success on held-back tasks against environment steps, in one picture.

    python benchmarks/curves.py                          # trains what is missing, then draws
    python benchmarks/curves.py mining:curriculum        # only this cell, without drawing
    python benchmarks/curves.py --draw                   # only draws

A cell is one method on one game, all its seeds in one program; its result is results/curves-GAME-METHOD.json: success
when half the steps were made, a quarter, and so on, and, of the finished agents, success on the fixed test tasks. Where
there is no such file, agents that benchmarks/results.py trained one by one are drawn.
"""

import argparse
import platform
import time
from dataclasses import asdict, replace
from pathlib import Path

import jax
import numpy as np

from saplan.baselines.methods import METHODS
from saplan.baselines.oracle import Oracle
from saplan.experiments.evaluate import causes_of_failure, evaluate
from saplan.experiments.summary import PAPER
from saplan.experiments.train import Loop, hardware
from saplan.games import GAMES, make_game
from saplan.runs.config import RunConfig, read_json, write_json

HERE = Path(__file__).resolve().parent.parent
RESULTS, PICTURE = HERE / "results", HERE / "docs" / "pictures" / "curves.png"
COLOURS = {"structured": "#0b6e4f", "unstructured": "#d1495b", "curriculum": "#3066be", "oracle": "#666666"}
MARKERS = {"structured": "o", "unstructured": "s", "curriculum": "^"}


def cell_path(game: str, method: str) -> Path:
    """Where a cell's result lies."""
    return RESULTS / f"curves-{game}-{method}.json"


def train_cell(name: str, method: str, options: argparse.Namespace) -> None:
    """Trains all seeds of one method on one game, looking at held-back tasks on the way; saves what is known so far."""
    game, steps = make_game(name), int(options.steps)
    numbers = {key: int(value) for key, _, value in (one.partition("=") for one in options.set)}
    settings = replace(METHODS[method].settings_for(game, False), **numbers)
    configs = [RunConfig(game, settings, steps, seed, method) for seed in options.seeds]
    per_update = settings.lanes * settings.rollout
    loop, points, began = Loop(configs, steps // per_update, options.looks, options.look_tasks), [], time.monotonic()
    while loop.done < loop.updates:
        due = len(loop.looks_at)
        each = loop.chunk()
        if len(loop.looks_at) < due:
            points.append({"steps": each[0].steps, "success": [one.success for one in each]})
            known = ", ".join(str(one.known) for one in each)
            print(
                f"{name} {method}: {points[-1]}, {each[0].counts} {known}, {time.monotonic() - began:.0f} s", flush=True
            )
            cell = {
                "game": name, "method": method, "seeds": options.seeds, "steps_trained": each[0].steps,
                "points": points, "tests": [], "tasks": options.tasks, "look_tasks": options.look_tasks,
                "counts": each[0].counts, "known": [one.known for one in each],
                "overflow": [one.overflow for one in each], "seconds": time.monotonic() - began,
                "settings": asdict(settings), "hardware": hardware(),
                "versions": {"python": platform.python_version(), "jax": jax.__version__},
            }  # fmt: skip
            write_json(cell_path(name, method), cell)
    for agent in loop.agents():
        walked = evaluate(agent, options.tasks)
        test = {"success": float(walked.success.mean()), "failures": causes_of_failure(agent, walked, 150)}
        cell["tests"].append(test)
        print(f"{name} {method}: {test} on the test tasks", flush=True)
    write_json(cell_path(name, method), cell)


def oracle_cell(name: str, options: argparse.Namespace) -> None:
    """What the oracle reaches on the test tasks."""
    walked = evaluate(Oracle(make_game(name)), options.tasks)
    success = float(walked.success.mean())
    print(f"{name} oracle: {success}", flush=True)
    cell = {
        "game": name, "method": "oracle", "success": success, "tasks": options.tasks,
        "mean_steps": float(walked.steps[walked.success].mean()),
    }  # fmt: skip
    write_json(cell_path(name, "oracle"), cell)


def curve_of(game: str, method: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Steps, and success at them by seed: of the cell, or else of single agents that benchmarks/results.py trained."""
    if cell_path(game, method).exists():
        points = read_json(cell_path(game, method))["points"]
        return np.array([p["steps"] for p in points]), np.array([p["success"] for p in points])
    agents = [read_json(path)["points"] for path in sorted(RESULTS.glob(f"{game}-{method}-default-*.json"))]
    agents = [points for points in agents if len(points) > 1]
    if not agents:
        return None
    common = sorted(set.intersection(*({p["steps"] for p in points} for points in agents)))
    success = [[next(p["success"] for p in points if p["steps"] == at) for points in agents] for at in common]
    return np.array(common), np.array(success)


def draw() -> None:
    """One panel per game."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(GAMES), figsize=(12, 4), sharey=True, layout="constrained")
    for panel, game in zip(panels, GAMES, strict=True):
        for method in METHODS:
            curve = curve_of(game, method)
            if curve is None:
                continue
            steps, success = curve[0] / 1e6, 100 * curve[1]
            panel.plot(steps, success.mean(axis=1), MARKERS[method] + "-", color=COLOURS[method], label=method)
            panel.fill_between(steps, success.min(axis=1), success.max(axis=1), color=COLOURS[method], alpha=0.2, lw=0)
            panel.axhline(100 * PAPER[method][game], color=COLOURS[method], ls=":", lw=1)
        if cell_path(game, "oracle").exists():
            best = 100 * read_json(cell_path(game, "oracle"))["success"]
            panel.axhline(best, color=COLOURS["oracle"], ls="--", lw=1.2, label="oracle")
        panel.set(title=game, xscale="log", xlabel="environment steps (millions)", ylim=(-2, 102))
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("tasks solved within 150 steps (%)")
    panels[0].legend(loc="upper left", fontsize=8, title="dotted: the paper's figure", title_fontsize=7)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=130)
    print(PICTURE.relative_to(HERE))


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="*", metavar="GAME:METHOD", help="by default all that are missing")
    parser.add_argument("--draw", action="store_true", help="only draw")
    parser.add_argument("--steps", type=float, default=10e6)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--looks", type=int, default=6)
    parser.add_argument("--look-tasks", type=int, default=300)
    parser.add_argument("--tasks", type=int, default=1000, help="test tasks")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=NUMBER", help="other settings")
    options = parser.parse_args()
    if not options.draw:
        wanted = options.cells or [f"{game}:{method}" for game in GAMES for method in (*METHODS, "oracle")]
        for cell in wanted:
            game, _, method = cell.partition(":")
            path = cell_path(game, method)
            if not path.exists() and curve_of(game, method) is None:
                path.parent.mkdir(exist_ok=True)
                if method == "oracle":
                    oracle_cell(game, options)
                else:
                    train_cell(game, method, options)
    if not options.cells:
        draw()


if __name__ == "__main__":
    main()
