"""Attributes learnt from labels: errors by number of labels and by geometry, and success with learnt attributes.

    python benchmarks/attributes.py errors --json results/attributes-errors.json
    python benchmarks/attributes.py success --json results/attributes-success.json

Both continue an existing file, and write it after every row.
"""

import functools
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import RESULTS, make_parser

from saplan.experiments.result_file import write_result
from saplan.experiments.tables import code_of, markdown_table
from saplan.games import Game, make_game
from saplan.perception.fit import fit_labels, measure_errors
from saplan.perception.fitted import FittedFile
from saplan.perception.geometry import GEOMETRIES, STRUCTURED
from saplan.perception.labels import draw_labels, game_labels
from saplan.perception.observation import Observer
from saplan.perception.regressor import RegressorSettings
from saplan.storage.json_data import read_json
from saplan.training.evaluate import evaluate
from saplan.training.train import train

STEPS = {"switches": 2_500_000, "exchange": 4_000_000, "mining": 5_000_000}
"""Training steps, as for the true attributes in docs/results.md."""
ERRORS, SUCCESS = RESULTS / "attributes-errors.json", RESULTS / "attributes-success.json"
LABEL_SEED, TEST_SEED, TESTS = 1, 999, 50_000
SETTINGS = {"words": RegressorSettings(), "picture": RegressorSettings(hidden=16, batch=128, steps=3000)}


def fitted(game: Game[Any], sight: str, pairs: int, geometry: str, seed: int) -> FittedFile:
    """f̂ from this many labels."""
    seen, rho = draw_labels(game, Observer(game, sight), pairs, LABEL_SEED + seed)
    return fit_labels(game_labels(game, sight, seen, rho), SETTINGS[sight], seed, geometry)


@functools.cache
def held_out_pairs(name: str, sight: str) -> tuple[np.ndarray, np.ndarray]:
    """The pairs that all errors are measured on."""
    game = make_game(name)
    return draw_labels(game, Observer(game, sight), TESTS if sight == "words" else TESTS // 10, TEST_SEED)


def error_row(game: str, sight: str, pairs: int, geometry: str) -> dict[str, Any]:
    """Errors of f̂ after this many labels."""
    began = time.monotonic()
    regressor = fitted(make_game(game), sight, pairs, geometry, 0).regressor
    seconds = round(time.monotonic() - began, 1)
    return {**measure_errors(regressor, *held_out_pairs(game, sight)), "pairs": pairs, "seconds": seconds}


def success_row(game: str, pairs: int, seed: int) -> dict[str, Any]:
    """Success of an agent with learnt attributes, or with the true ones if there are no labels."""
    rules = make_game(game)
    seen = fitted(rules, "words", pairs, STRUCTURED, seed).view(rules) if pairs else rules
    agent = train(seen, STEPS[game], seed, eval_points=0)
    return {"steps": STEPS[game], "tasks": 1000, "success": float(np.mean(evaluate(agent, 1000, 0).success))}


def error_table() -> str:
    """Errors by observation, game and number of labels, the geometries side by side."""
    result = read_json(ERRORS)
    found = {(row["sight"], row["game"], row["pairs"], row["geometry"]): row for row in result["rows"]}
    order = sorted(found, key=lambda key: (-ord(key[0][0]), list(STEPS).index(key[1]), key[2]))
    lines = []
    for sight, game, pairs in dict.fromkeys(key[:3] for key in order):
        rows = [found.get((sight, game, pairs, geometry)) for geometry in GEOMETRIES]
        texts = ["" if row is None else f"{row['mean_error']:.3%} / {row['any_error']:.2%}" for row in rows]
        own = found.get((sight, game, pairs, STRUCTURED))
        if own is None:
            lines.append([sight, game, f"{pairs:,}", *texts, "", ""])
            continue
        worst = max(own["error"], key=own["error"].get)
        confidence = f"{own['calibration_error']:.4f}"
        lines.append([sight, game, f"{pairs:,}", *texts, f"{worst} {own['error'][worst]:.2%}", confidence])
    header = ["observation", "game", "labels", *(f"{name}: each / any" for name in GEOMETRIES), "worst coordinate",
              "confidence off by"]  # fmt: skip
    return markdown_table(header, lines) + f"\n\nCode {code_of(result)}, {result['hardware']}."


def learnt_success_table() -> str:
    """Success with f̂ beside success with f, for agents of the same budget."""
    result = read_json(SUCCESS)
    each = {
        (game, pairs): [row["success"] for row in result["rows"] if (row["game"], row["pairs"]) == (game, pairs)]
        for game in STEPS
        for pairs in (0, 10_000, 100_000)
    }
    lines = []
    for game in STEPS:
        true, texts = np.mean(each[game, 0]), []
        for learnt in (each[game, 10_000], each[game, 100_000]):
            gap = f"{100 * (np.mean(learnt) - true):+.1f}" if learnt else ""
            seeds = ", ".join(f"{success:.1%}" for success in learnt)
            texts.append(f"**{np.mean(learnt):.1%}** ({gap}): {seeds}" if learnt else "")
        lines.append([game, f"{STEPS[game] / 1e6:g} M", f"{true:.1%}", *texts])
    header = ["game", "steps", "true f", "f̂, 10,000 labels", "f̂, 100,000 labels"]
    return markdown_table(header, lines) + f"\n\nCode {code_of(result)}, {result['hardware']}, 1,000 tasks of seed 0."


def main() -> None:
    """Computes the missing rows."""
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=("errors", "success"))
    parser.add_argument("--games", nargs="*", default=list(STEPS))
    parser.add_argument("--pairs", nargs="*", type=int)
    parser.add_argument("--geometries", nargs="*", default=list(GEOMETRIES), help="for errors")
    parser.add_argument("--sights", nargs="*", default=["words"], help="for errors")
    parser.add_argument("--seeds", type=int, default=3, help="for success")
    options = parser.parse_args()
    compute: Callable[..., dict[str, Any]]
    choices: dict[str, Any]
    if options.what == "errors":
        path, compute, pairs = options.json or ERRORS, error_row, options.pairs or [1_000, 10_000, 100_000, 1_000_000]
        choices = {"sight": options.sights, "game": options.games, "pairs": pairs, "geometry": options.geometries}
    else:
        path, compute, pairs = options.json or SUCCESS, success_row, options.pairs or [100_000, 10_000, 0]
        choices = {"pairs": pairs, "seed": range(options.seeds), "game": options.games}
    rows = read_json(path)["rows"] if path.exists() else []
    for values in itertools.product(*choices.values()):
        wanted = dict(zip(choices, values, strict=True))
        if any(all(row[name] == value for name, value in wanted.items()) for row in rows):
            continue
        rows.append({**wanted, **compute(**wanted)})
        print({name: value for name, value in rows[-1].items() if not isinstance(value, dict)}, flush=True)
        write_result(path, {"rows": rows})


if __name__ == "__main__":
    main()
