"""The training of one run as a figure, from its metrics."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from saplan.errors import InputError
from saplan.training.metrics import read_metrics
from saplan.training.run_directory import METRICS

GOOD, BAD, PLAIN = "#0b6e4f", "#d1495b", "#3066be"


def plot_run(run: Path | str) -> Any:
    """Figure of a run's training: success on tasks, attempts, distinct changes, and examples for the edge detector.

    Returns a matplotlib figure, which notebooks show and `figure.savefig(FILE)` writes.
    """
    from matplotlib.figure import Figure

    if "ipykernel" in sys.modules:
        import matplotlib.pyplot  # noqa: F401 (teaches notebooks to show figures)
    path = Path(run) / METRICS
    if not path.is_file():
        raise InputError(f"{run} holds no metrics (no {METRICS} in it): name the directory of a training run")
    rows = read_metrics(path)
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    steps = np.array([row["steps"] for row in rows]) / 1e6
    _draw_success(axes[0, 0], rows)
    _draw_attempts(axes[0, 1], steps, rows)
    counts = str(rows[-1].get("counts", "|𝓑|"))
    axes[1, 0].step(steps, [row["known"] for row in rows], where="post", color=PLAIN)
    axes[1, 0].set(title=f"distinct changes, {counts}".replace("𝓑", "B"), ylim=(0, None))
    _draw_examples(axes[1, 1], rows)
    for axis in axes.flat:
        axis.grid(alpha=0.3)
    for axis in axes[1]:
        axis.set_xlabel("environment steps (millions)")
    figure.suptitle(str(run))
    return figure


def _draw_success(axis: Any, rows: list[dict[str, Any]]) -> None:
    points = [
        (row["steps"] / 1e6, 100 * row["success"]) for row in rows if row["evaluated"] and row["success"] is not None
    ]
    if points:
        axis.plot(*zip(*points, strict=True), "o-", color=GOOD)
    else:
        axis.text(0.5, 0.5, "not evaluated during training", ha="center", transform=axis.transAxes)
    axis.set(title="held-back tasks solved (%)", ylim=(-2, 102))


def _draw_attempts(axis: Any, steps: np.ndarray, rows: list[dict[str, Any]]) -> None:
    axis.plot(steps, [100 * row.get("attempt_success", np.nan) for row in rows], color=GOOD)
    axis.set(title="attempts that succeed (%); dashed: their steps", ylim=(-2, 102))
    other = axis.twinx()
    other.plot(steps, [row.get("attempt_steps", np.nan) for row in rows], "--", color=PLAIN)
    other.set_ylim(bottom=0)


def _draw_examples(axis: Any, rows: list[dict[str, Any]]) -> None:
    """Examples per 1,000 steps, over stretches of equal length so that the lines are smooth."""
    chosen = [rows[k] for k in np.unique(np.linspace(0, len(rows) - 1, 40).astype(int))]
    steps = np.array([row["steps"] for row in chosen], float)
    for kind, colour, line in (("positives", GOOD, "-"), ("negatives", BAD, "--")):
        counts = np.array([row[kind] for row in chosen], float)
        axis.plot(
            steps / 1e6, 1000 * np.diff(counts, prepend=0) / np.diff(steps, prepend=0), line, color=colour, label=kind
        )
    axis.set(title="examples for the detector per 1,000 steps", yscale="symlog", ylim=(0, None))
    axis.legend(fontsize=9)
