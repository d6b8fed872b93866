"""Tables of docs/attributes.md from the result files of benchmarks/attributes.py."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attributes import STEPS
from common import RESULTS

from saplan.experiments.paper import PAPER_STEPS
from saplan.experiments.tables import code_of, markdown_table
from saplan.games import make_game
from saplan.perception.geometry import GEOMETRIES, STRUCTURED
from saplan.storage.json_data import read_json

ERRORS, SUCCESS = RESULTS / "attributes-errors.json", RESULTS / "attributes-success.json"
PIXEL_ERRORS, PIXEL_SUCCESS = RESULTS / "pixels-errors.json", RESULTS / "pixels-success.json"
NOISE, MINIGRID = RESULTS / "pixels-noise.json", RESULTS / "pixels-minigrid.json"


def made_by(path: Path, more: str = "") -> str:
    """The line below a table: the code and machine of its file."""
    result = read_json(path)
    return f"\n\nCode {code_of(result)}, {result['hardware']}{more}."


def error_table(path: Path = ERRORS) -> str:
    """Errors by game and number of labels, the geometries side by side."""
    rows = read_json(path)["rows"]
    found = {(row["game"], row.get("noise", 0.0), row["pairs"], row["geometry"]): row for row in rows}
    games = list(dict.fromkeys(row["game"] for row in rows))
    order = sorted(found, key=lambda key: (games.index(key[0]), *key[1:3]))
    noisy, lines = any(key[1] for key in order), []
    for game, noise, pairs in dict.fromkeys(key[:3] for key in order):
        each = [found.get((game, noise, pairs, geometry)) for geometry in GEOMETRIES]
        texts = ["" if row is None else f"{row['mean_error']:.3%} / {row['any_error']:.2%}" for row in each]
        own = found.get((game, noise, pairs, STRUCTURED))
        about = ["", ""]
        if own is not None:
            worst = max(own["error"], key=own["error"].get)
            about = [f"{worst} {own['error'][worst]:.2%}", f"{own['calibration_error']:.4f}"]
        lines.append([game, *([f"{noise:.0%}"] if noisy else []), f"{pairs:,}", *texts, *about])
    header = ["game", *(["wrong labels"] if noisy else []), "labels", *(f"{name}: each / any" for name in GEOMETRIES),
              "worst coordinate", "confidence off by"]  # fmt: skip
    return markdown_table(header, lines) + made_by(path)


def attribute_table(path: Path = PIXEL_ERRORS) -> str:
    """Errors of every attribute by number of labels, with the structured losses."""
    rows = [row for row in read_json(path)["rows"] if row["geometry"] == STRUCTURED]
    counts = sorted({row["pairs"] for row in rows})
    lines = []
    for game in dict.fromkeys(row["game"] for row in rows):
        at = {row["pairs"]: row["error"] for row in rows if row["game"] == game}
        for name in next(iter(at.values())):
            lines.append([game, name, *(f"{at[pairs][name]:.2%}" if pairs in at else "" for pairs in counts)])
    return markdown_table(["game", "attribute", *(f"{pairs:,} labels" for pairs in counts)], lines) + made_by(path)


def learnt_success_table(path: Path = SUCCESS, counts: Sequence[int] = (10_000, 100_000)) -> str:
    """Success with f̂ beside success with f, for agents of the same budget."""
    rows: list[dict[str, Any]] = read_json(path)["rows"]
    lines = []
    for game in PAPER_STEPS:
        each = {pairs: [row["success"] for row in rows if (row["game"], row["pairs"]) == (game, pairs)]
                for pairs in (0, *counts)}  # fmt: skip
        texts = []
        for pairs in counts:
            gap = f"{100 * (np.mean(each[pairs]) - np.mean(each[0])):+.1f}" if each[pairs] and each[0] else ""
            seeds = ", ".join(f"{success:.1%}" for success in each[pairs])
            texts.append(f"**{np.mean(each[pairs]):.1%}** ({gap}): {seeds}" if each[pairs] else "")
        steps = next((row["steps"] for row in rows if row["game"] == game), STEPS[game])
        lines.append([game, f"{steps / 1e6:g} M", f"{np.mean(each[0]):.1%}" if each[0] else "", *texts])
    header = ["game", "steps", "true f", *(f"f̂, {pairs:,} labels" for pairs in counts)]
    return markdown_table(header, lines) + made_by(path, f", {rows[0]['tasks']:,} tasks of seed 0")


def exact_shares() -> dict[str, float]:
    """The least share of pictures in which an attribute is right, by game, with most labels."""
    rows = [row for row in read_json(PIXEL_ERRORS)["rows"] if row["geometry"] == STRUCTURED]
    most = max(row["pairs"] for row in rows)
    return {
        row["game"]: 1 - max(row["error"][name] for name in make_game(row["game"]).space.names)
        for row in rows
        if row["pairs"] == most
    }
