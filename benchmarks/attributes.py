"""Attributes learnt from labels: errors against the number of labels, what the geometry is worth, and tasks solved.

    python benchmarks/attributes.py errors --json results/attributes-errors.json
    python benchmarks/attributes.py success --json results/attributes-success.json

    python benchmarks/attributes.py write

The first two go on where they were if the file is there, and write it anew after every row. The last writes the tables
of docs/attributes.md from the files.
"""

import argparse
import functools
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from saplan.experiments.tables import code_of, table
from saplan.games import GAMES, Game, make_game
from saplan.perception.fit import fit_labels, measure_errors
from saplan.perception.geometry import GEOMETRIES, STRUCTURED
from saplan.perception.labels import draw_labels, game_labels
from saplan.perception.observation import Observer
from saplan.perception.regressor import RegressorSettings
from saplan.storage.json_data import read_json, write_json
from saplan.training.evaluate import evaluate
from saplan.training.provenance import provenance
from saplan.training.train import train

STEPS = {"switches": 2_500_000, "exchange": 4_000_000, "mining": 5_000_000}
"""As in the table of docs/results.md that trains on the true attributes."""
HERE = Path(__file__).resolve().parent.parent
ERRORS, SUCCESS = HERE / "results" / "attributes-errors.json", HERE / "results" / "attributes-success.json"
DOCUMENT, END = HERE / "docs" / "attributes.md", "<!-- end -->"
LABEL_SEED, TEST_SEED, TESTS = 1, 999, 50_000
SETTINGS = {"words": RegressorSettings(), "picture": RegressorSettings(hidden=16, batch=128, steps=3000)}


def fitted(game: Game[Any], sight: str, pairs: int, geometry: str, seed: int) -> Any:
    """f̂ from so many labels."""
    seen, rho = draw_labels(game, Observer(game, sight), pairs, LABEL_SEED + seed)
    return fit_labels(game_labels(game, sight, seen, rho), SETTINGS[sight], seed, geometry)


@functools.cache
def tests(name: str, sight: str) -> tuple[np.ndarray, np.ndarray]:
    """Pairs that errors are measured on, the same for all."""
    game = make_game(name)
    return draw_labels(game, Observer(game, sight), TESTS if sight == "words" else TESTS // 10, TEST_SEED)


def error_row(game: str, sight: str, pairs: int, geometry: str) -> dict[str, Any]:
    """What f̂ misreads after so many labels."""
    began = time.monotonic()
    regressor = fitted(make_game(game), sight, pairs, geometry, 0).regressor
    seconds = round(time.monotonic() - began, 1)
    return {**measure_errors(regressor, *tests(game, sight)), "pairs": pairs, "seconds": seconds}


def success_row(game: str, pairs: int, seed: int) -> dict[str, Any]:
    """Test tasks solved by an agent that never sees the true attributes, or with no labels sees nothing else."""
    rules = make_game(game)
    seen = fitted(rules, "words", pairs, STRUCTURED, seed).view(rules) if pairs else rules
    agent = train(seen, STEPS[game], seed, eval_points=0)
    return {"steps": STEPS[game], "tasks": 1000, "success": float(np.mean(evaluate(agent, 1000, 0).success))}


def error_table() -> str:
    """Errors by game and number of labels, the geometries side by side."""
    rows = read_json(ERRORS)["rows"]
    found = {(row["sight"], row["game"], row["pairs"], row["geometry"]): row for row in rows}
    lines = []
    for sight, game, pairs in dict.fromkeys(key[:3] for key in sorted(found, key=_order)):
        texts = []
        for geometry in GEOMETRIES:
            row = found.get((sight, game, pairs, geometry))
            texts.append("" if row is None else f"{row['mean_error']:.3%} / {row['any_error']:.2%}")
        own = found.get((sight, game, pairs, STRUCTURED))
        worst = "" if own is None else max(own["error"], key=own["error"].get)
        most = "" if own is None else f"{worst} {own['error'][worst]:.2%}"
        trust = "" if own is None else f"{own['calibration_error']:.4f}"
        lines.append([sight, game, f"{pairs:,}", *texts, most, trust])
    header = ["sight", "game", "labels", *(f"{name}: each / any" for name in GEOMETRIES), "worst coordinate",
              "confidence off by"]  # fmt: skip
    told = read_json(ERRORS)
    return table(header, lines) + f"\n\nCode {code_of(told)}, {told['hardware']}."


def _order(key: tuple[str, str, int, str]) -> tuple[Any, ...]:
    return -ord(key[0][0]), list(GAMES).index(key[1]), key[2]


def success_table() -> str:
    """Tasks solved with f̂, beside those solved with f by agents of the same budget."""
    rows = read_json(SUCCESS)["rows"]
    lines = []
    for game in GAMES:
        true = [row["success"] for row in rows if (row["game"], row["pairs"]) == (game, 0)]
        texts = []
        for pairs in (10_000, 100_000):
            each = [row["success"] for row in rows if (row["game"], row["pairs"]) == (game, pairs)]
            gap = f" ({100 * (np.mean(each) - np.mean(true)):+.1f})" if each else ""
            texts.append(f"**{np.mean(each):.1%}**{gap}: {', '.join(f'{x:.1%}' for x in each)}" if each else "")
        lines.append([game, f"{STEPS[game] / 1e6:g} M", f"{np.mean(true):.1%}", *texts])
    told = read_json(SUCCESS)
    made = f"\n\nCode {code_of(told)}, {told['hardware']}, 1,000 tasks of seed 0."
    return table(["game", "steps", "true f", "f̂, 10,000 labels", "f̂, 100,000 labels"], lines) + made


TABLES = {"errors": error_table, "success": success_table}


def begin(name: str) -> str:
    """The line that a table comes after."""
    return f"<!-- generated by benchmarks/attributes.py: {name} begin -->"


def write() -> None:
    """Replaces the generated parts of docs/attributes.md."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, made in TABLES.items():
        before, after = text.split(begin(name))[0], text.split(begin(name))[1].split(END, 1)[1]
        text = f"{before}{begin(name)}\n{made()}\n{END}{after}"
    DOCUMENT.write_text(text, encoding="utf-8")


def main() -> None:
    """Computes what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("errors", "success", "write"))
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--games", nargs="*", default=list(GAMES))
    parser.add_argument("--pairs", nargs="*", type=int)
    parser.add_argument("--geometries", nargs="*", default=list(GEOMETRIES))
    parser.add_argument("--sights", nargs="*", default=["words"])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if options.what == "write":
        write()
        return
    options.json = options.json or {"errors": ERRORS, "success": SUCCESS}[options.what]
    compute: Callable[..., dict[str, Any]]
    if options.what == "errors":
        compute, pairs = error_row, options.pairs or [1_000, 10_000, 100_000, 1_000_000]
        choices = {"sight": options.sights, "game": options.games, "pairs": pairs, "geometry": options.geometries}
    else:
        compute, pairs = success_row, options.pairs or [100_000, 10_000, 0]
        choices = {"pairs": pairs, "seed": range(options.seeds), "game": options.games}
    rows = json.loads(options.json.read_text())["rows"] if options.json.exists() else []
    for values in itertools.product(*choices.values()):
        wanted = dict(zip(choices, values, strict=True))
        if any(all(row[name] == value for name, value in wanted.items()) for row in rows):
            continue
        rows.append({**wanted, **compute(**wanted)})
        print({name: value for name, value in rows[-1].items() if not isinstance(value, dict)}, flush=True)
        write_json(options.json, {"rows": rows, **provenance()})


if __name__ == "__main__":
    main()
