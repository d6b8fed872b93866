"""Attributes learnt from labels: errors by number of labels and by geometry, and success with learnt attributes.

    python benchmarks/attributes.py errors --json results/attributes-errors.json
    python benchmarks/attributes.py success --json results/attributes-success.json
    python benchmarks/attributes.py errors --sights picture --json results/pixels-errors.json
    python benchmarks/attributes.py errors --sights picture --noise 0.1 0.3 --json results/pixels-noise.json
    python benchmarks/attributes.py success --sights picture --json results/pixels-success.json
    python benchmarks/attributes.py picture

The last one writes docs/pictures/pixels.png. The others continue an existing file, and write it after every row. Agents
of several seeds share one f̂ and, on an accelerator, one program. A policy whose attributes are read off pictures sees
nothing but the pictures.
"""

import functools
import itertools
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from common import RESULTS, ROOT, make_parser
from PIL import Image

from saplan.algebra import Block, Cyclic, Product, Real
from saplan.experiments.paper import PAPER_STEPS
from saplan.experiments.result_file import write_result
from saplan.games import Game, make_game
from saplan.perception.fit import fit_labels, measure_errors
from saplan.perception.fitted import FittedFile
from saplan.perception.geometry import GEOMETRIES, STRUCTURED
from saplan.perception.labels import draw_labels, game_labels
from saplan.perception.observation import Observer
from saplan.perception.regressor import RegressorSettings
from saplan.storage.json_data import read_json
from saplan.training.config import run_config
from saplan.training.evaluate import evaluate
from saplan.training.train import train_runs

STEPS = {"switches": 2_500_000, "exchange": 4_000_000, "mining": 5_000_000}
"""Training steps, as for the true attributes in docs/results.md."""
UNNAMED = {"sight": "words", "noise": 0.0}
"""What older rows do not name."""
LABEL_SEED, NOISE_SEED, TEST_SEED, TESTS = 1, 77, 999, 50_000
SETTINGS = {"words": RegressorSettings(), "picture": RegressorSettings(hidden=32, batch=256, rate=0.005, steps=4000)}


def noisy(space: Product, rho: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Labels of which every coordinate is off with this probability: by one, or by about one unit if it is a real."""
    rng = np.random.default_rng(NOISE_SEED + seed)
    wrong = rng.random(rho.shape) < share
    off = np.where(rng.random(rho.shape) < 0.5, -1.0, 1.0)
    columns = [_moved(block, rho[:, k], off[:, k], rng) for k, block in enumerate(space.blocks)]
    return np.where(wrong, np.stack(columns, axis=1), rho).astype(np.float32)


def _moved(block: Block, values: np.ndarray, off: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    moved: np.ndarray = np.where(values + off < 0, values + 1, values + off)
    if isinstance(block, Real):
        moved = np.clip(values + block.resolution * rng.normal(size=len(values)), block.low, block.high)
    elif isinstance(block, Cyclic):
        moved = (values + off) % block.q
    return moved


def fitted(game: Game[Any], sight: str, pairs: int, geometry: str, seed: int, noise: float = 0.0) -> FittedFile:
    """f̂ from this many labels."""
    seen, rho = draw_labels(game, Observer(game, sight), pairs, LABEL_SEED + seed)
    return fit_labels(
        game_labels(game, sight, seen, noisy(game.space, rho, noise, seed)), SETTINGS[sight], seed, geometry
    )


@functools.cache
def held_out_pairs(name: str, sight: str) -> tuple[np.ndarray, np.ndarray]:
    """The pairs that all errors are measured on."""
    game = make_game(name)
    return draw_labels(game, Observer(game, sight), TESTS if sight == "words" else TESTS // 5, TEST_SEED)


def error_row(game: str, sight: str, pairs: int, geometry: str, noise: float) -> dict[str, Any]:
    """Errors of f̂ after this many labels, on labels without noise."""
    began = time.monotonic()
    regressor = fitted(make_game(game), sight, pairs, geometry, 0, noise).regressor
    seconds = round(time.monotonic() - began, 1)
    return {**measure_errors(regressor, *held_out_pairs(game, sight)), "pairs": pairs, "seconds": seconds}


def success_rows(
    game: str, sight: str, pairs: int, seeds: range, tasks: int, steps: int | None
) -> list[dict[str, Any]]:
    """Success of agents with learnt attributes, or with the true ones if there are no labels, one row per seed."""
    rules, steps = make_game(game), steps or STEPS[game]
    began = time.monotonic()
    world = fitted(rules, sight, pairs, STRUCTURED, 0).view(rules) if pairs else rules
    fitting = round(time.monotonic() - began, 1)
    configs = [run_config(world, steps, seed, None, "structured", 0) for seed in seeds]
    jobs = [[config] for config in configs] if jax.default_backend() == "cpu" else [configs]
    agents = [agent for job in jobs for agent in train_runs(job, None)]
    training = round(time.monotonic() - began - fitting, 1)
    return [
        {
            "game": game, "sight": sight, "pairs": pairs, "seed": seed, "steps": steps, "tasks": tasks,
            "success": float(np.mean(evaluate(agent, tasks, 0).success)), "fitting_seconds": fitting,
            "training_seconds": training,
        }
        for seed, agent in zip(seeds, agents, strict=True)
    ]  # fmt: skip


def write_picture(path: Path, side: int = 5) -> None:
    """Writes an enlarged picture of every game as f̂ sees it."""
    games = [make_game(name) for name in PAPER_STEPS]
    seen = [np.asarray(Observer(game, "picture")(game.anywhere(jax.random.key(3)))) for game in games]
    parted = [np.pad(one, ((0, 0), (0, 4), (0, 0)), constant_values=255) for one in seen]
    whole = np.concatenate(parted, axis=1)[:, :-4]
    Image.fromarray(whole.repeat(side, axis=0).repeat(side, axis=1)).save(path, optimize=True)


def main() -> None:
    """Computes the missing rows."""
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=("errors", "success", "picture"))
    parser.add_argument("--games", nargs="*", default=list(PAPER_STEPS))
    parser.add_argument("--pairs", nargs="*", type=int)
    parser.add_argument("--geometries", nargs="*", default=list(GEOMETRIES), help="for errors")
    parser.add_argument("--sights", nargs="*", default=["words"], choices=["words", "picture"])
    parser.add_argument("--noise", nargs="*", type=float, default=[0.0], help="for errors: share of wrong labels")
    parser.add_argument("--seeds", type=int, default=3, help="for success")
    parser.add_argument("--tasks", type=int, default=1000, help="for success")
    parser.add_argument("--steps", type=int, help="for success: training steps")
    parser.add_argument("--fit-steps", type=int, help="gradient steps of f̂")
    options = parser.parse_args()
    if options.what == "picture":
        write_picture(ROOT / "docs" / "pictures" / "pixels.png")
        return
    if options.fit_steps:
        SETTINGS.update({sight: replace(known, steps=options.fit_steps) for sight, known in SETTINGS.items()})
    path = options.json or RESULTS / f"attributes-{options.what}.json"
    rows = read_json(path)["rows"] if path.exists() else []

    def missing(**wanted: Any) -> bool:
        return not any(all({**UNNAMED, **row}[name] == value for name, value in wanted.items()) for row in rows)

    def add(found: list[dict[str, Any]]) -> None:
        rows.extend(found)
        for row in found:
            print({name: value for name, value in row.items() if not isinstance(value, dict)}, flush=True)
        write_result(path, {"rows": rows})

    if options.what == "errors":
        counts = options.pairs or [1_000, 10_000, 100_000, *([1_000_000] if options.sights == ["words"] else [])]
        for sight, game, noise, pairs, geometry in itertools.product(
            options.sights, options.games, options.noise, counts, options.geometries
        ):
            wanted = {"sight": sight, "game": game, "noise": noise, "pairs": pairs, "geometry": geometry}
            if missing(**wanted):
                add([{**wanted, **error_row(**wanted)}])
        return
    for pairs, sight, game in itertools.product(
        [100_000, 10_000, 0] if options.pairs is None else options.pairs, options.sights, options.games
    ):
        if missing(sight=sight, game=game, pairs=pairs):
            add(success_rows(game, sight, pairs, range(options.seeds), options.tasks, options.steps))


if __name__ == "__main__":
    main()
