"""Attributes learnt from labels: errors against the number of labels, what the geometry is worth, and tasks solved.

    python benchmarks/attributes.py errors --json results/attributes-errors.json
    python benchmarks/attributes.py success --json results/attributes-success.json

Both go on where they were if the file is there, and write it anew after every row.
"""

import argparse
import functools
import itertools
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from saplan.experiments.evaluate import evaluate
from saplan.experiments.fit import examine, fit_labels
from saplan.experiments.label import draw_labels
from saplan.experiments.train import hardware, train
from saplan.games import GAMES, Game, make_game
from saplan.games.sight import Sight
from saplan.model.geometry import GEOMETRIES, STRUCTURED
from saplan.model.regressor import RegressorSettings
from saplan.runs.attributes import game_labels
from saplan.runs.config import write_json

STEPS = {"switches": 2_500_000, "exchange": 4_000_000, "mining": 5_000_000}
"""As in the table of docs/results.md that trains on the true attributes."""
LABEL_SEED, TEST_SEED, TESTS = 1, 999, 50_000
SETTINGS = {"words": RegressorSettings(), "picture": RegressorSettings(hidden=16, batch=128)}


def fitted(game: Game[Any], sight: str, pairs: int, geometry: str, seed: int) -> Any:
    """f̂ from so many labels."""
    seen, rho = draw_labels(game, Sight(game, sight), pairs, LABEL_SEED + seed)
    return fit_labels(game_labels(game, sight, seen, rho), SETTINGS[sight], seed, geometry)


@functools.cache
def tests(name: str, sight: str) -> tuple[np.ndarray, np.ndarray]:
    """Pairs that errors are measured on, the same for all."""
    game = make_game(name)
    return draw_labels(game, Sight(game, sight), TESTS if sight == "words" else TESTS // 10, TEST_SEED)


def error_row(game: str, sight: str, pairs: int, geometry: str) -> dict[str, Any]:
    """What f̂ misreads after so many labels."""
    began = time.monotonic()
    regressor = fitted(make_game(game), sight, pairs, geometry, 0).regressor
    seconds = round(time.monotonic() - began, 1)
    return {**examine(regressor, *tests(game, sight)), "pairs": pairs, "seconds": seconds}


def success_row(game: str, pairs: int, seed: int) -> dict[str, Any]:
    """Test tasks solved by an agent that never sees the true attributes."""
    rules = make_game(game)
    agent = train(fitted(rules, "words", pairs, STRUCTURED, seed).view(rules), STEPS[game], seed, looks=0)
    return {"steps": STEPS[game], "tasks": 1000, "success": float(np.mean(evaluate(agent, 1000, 0).success))}


def main() -> None:
    """Computes what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("errors", "success"))
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--games", nargs="*", default=list(GAMES))
    parser.add_argument("--pairs", nargs="*", type=int)
    parser.add_argument("--geometries", nargs="*", default=list(GEOMETRIES))
    parser.add_argument("--sights", nargs="*", default=["words"])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    compute: Callable[..., dict[str, Any]]
    if options.what == "errors":
        compute, pairs = error_row, options.pairs or [1_000, 10_000, 100_000, 1_000_000]
        choices = {"sight": options.sights, "game": options.games, "pairs": pairs, "geometry": options.geometries}
    else:
        compute, pairs = success_row, options.pairs or [100_000, 10_000]
        choices = {"pairs": pairs, "seed": range(options.seeds), "game": options.games}
    rows = json.loads(options.json.read_text())["rows"] if options.json.exists() else []
    versions = {"python": platform.python_version(), "jax": jax.__version__}
    for values in itertools.product(*choices.values()):
        wanted = dict(zip(choices, values, strict=True))
        if any(all(row[name] == value for name, value in wanted.items()) for row in rows):
            continue
        rows.append({**wanted, **compute(**wanted)})
        print({name: value for name, value in rows[-1].items() if not isinstance(value, dict)}, flush=True)
        write_json(options.json, {"rows": rows, "hardware": hardware(), "versions": versions})


if __name__ == "__main__":
    main()
