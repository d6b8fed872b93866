"""Attributes learnt from labels: errors by number of labels and by geometry, and success with learnt attributes.

    python benchmarks/attributes.py errors --json results/attributes-errors.json
    python benchmarks/attributes.py success --json results/attributes-success.json
    python benchmarks/attributes.py errors --sights picture --json results/pixels-errors.json
    python benchmarks/attributes.py errors --sights picture --noise 0.1 0.3 --json results/pixels-noise.json
    python benchmarks/attributes.py success --sights picture --json results/pixels-success.json
    python benchmarks/attributes.py picture

The last one writes docs/pictures/pixels.png. The others continue an existing file, and write it after every row; if
several run at a time, each with other rows, they may share a file. Agents of several seeds share one f̂ and, on an
accelerator, one program. A policy whose attributes are read off pictures sees nothing but the pictures.

With `--keep DIRECTORY` every f̂ is stored there, and read from there if it is needed again with the same settings: the
agents then use the f̂ whose errors were measured, and do not wait for another fit.
"""

import contextlib
import fcntl
import functools
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from common import RESULTS, ROOT, make_parser, progress

from saplan.algebra import Block, Cyclic, Product, Real
from saplan.experiments.paper import PAPER_STEPS
from saplan.experiments.result_file import write_result
from saplan.games import make_game
from saplan.perception.fit import fit_labels, measure_errors
from saplan.perception.fitted import FittedFile, read_fitted, write_fitted
from saplan.perception.geometry import GEOMETRIES, STRUCTURED
from saplan.perception.labels import draw_labels, game_labels
from saplan.perception.observation import Observer
from saplan.perception.regressor import RegressorSettings
from saplan.storage.json_data import read_json
from saplan.training.config import run_config
from saplan.training.evaluate import evaluate
from saplan.training.progress import Progress
from saplan.training.train import RunOptions, train_runs

STEPS = {"switches": 2_500_000, "exchange": 4_000_000, "mining": 5_000_000}
"""Training steps, as for the true attributes in docs/results.md."""
UNNAMED = {"sight": "words", "noise": 0.0}
"""What older rows do not name."""
LABEL_SEED, NOISE_SEED, FIT_SEED, TEST_SEED = 1, 77, 0, 999
TESTS = {"words": 50_000, "picture": 10_000}
SETTINGS = {"words": RegressorSettings(), "picture": RegressorSettings(hidden=32, batch=256, rate=0.005, steps=4000)}


def noisy(space: Product, rho: np.ndarray, share: float) -> np.ndarray:
    """Labels of which every coordinate is off with this probability: by one, or by about one unit if it is a real."""
    rng = np.random.default_rng(NOISE_SEED)
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


@functools.lru_cache(maxsize=2)
def drawn(name: str, sight: str, pairs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a game, which are drawn once; fewer pairs are the first of more."""
    game = make_game(name)
    return draw_labels(game, Observer(game, sight), pairs, seed)


def fitted(
    name: str,
    sight: str,
    pairs: int,
    geometry: str = STRUCTURED,
    noise: float = 0.0,
    most: int = 0,
    keep: Path | None = None,
) -> FittedFile:
    """f̂ from this many labels, the first of the `most` that are drawn at once; it is kept if there is a directory."""
    settings, known = SETTINGS[sight], None
    if keep is not None:
        numbers = "-".join(f"{value:g}" for value in asdict(settings).values())
        known = keep / f"{name}-{sight}-{pairs}-{geometry}-{noise:g}-{numbers}.safetensors"
        if known.exists():
            return read_fitted(known)
    seen, rho = (x[:pairs] for x in drawn(name, sight, max(pairs, most), LABEL_SEED))
    game = make_game(name)
    labels = game_labels(game, sight, seen, noisy(game.space, rho, noise))
    found = fit_labels(labels, settings, FIT_SEED, geometry)
    if known is not None:
        write_fitted(known, found)
    return found


def error_row(
    game: str,
    sight: str,
    pairs: int,
    geometry: str,
    noise: float,
    tests: int,
    most: int = 0,
    keep: Path | None = None,
) -> dict[str, Any]:
    """Errors of f̂ after this many labels, on labels without noise, with all that repeats the row."""
    began = time.monotonic()
    drawn(game, sight, max(pairs, most), LABEL_SEED)
    ready = time.monotonic()
    regressor = fitted(game, sight, pairs, geometry, noise, most, keep).regressor
    seconds = round(time.monotonic() - ready, 1)
    errors = measure_errors(regressor, *drawn(game, sight, tests, TEST_SEED))
    return {
        **errors, "tests": tests, "pairs": pairs, "settings": asdict(SETTINGS[sight]),
        "seeds": {"labels": LABEL_SEED, "noise": NOISE_SEED, "fit": FIT_SEED, "tests": TEST_SEED},
        "drawing_seconds": round(ready - began, 1), "seconds": seconds,
    }  # fmt: skip


def success_rows(
    game: str, sight: str, pairs: int, seeds: Sequence[int], tasks: int, steps: int | None, keep: Path | None = None
) -> Iterator[dict[str, Any]]:
    """Success of agents with learnt attributes, or with the true ones if there are no labels, one row per seed."""
    rules, steps = make_game(game), steps or STEPS[game]
    began = time.monotonic()
    world = fitted(game, sight, pairs, keep=keep).view(rules) if pairs else rules
    fitting = round(time.monotonic() - began, 1)
    configs = [run_config(world, steps, seed, None, "structured", 0) for seed in seeds]
    jobs = [[config] for config in configs] if jax.default_backend() == "cpu" else [configs]

    def tell(done: Progress) -> None:
        progress(f"{game}, {pairs} labels: {done.steps:,} steps after {time.monotonic() - began:.0f} s")

    agents = [agent for job in jobs for agent in train_runs(job, None, RunOptions(tell))]
    training = round(time.monotonic() - began - fitting, 1)
    for seed, agent in zip(seeds, agents, strict=True):
        yield {
            "game": game, "sight": sight, "pairs": pairs, "seed": seed, "steps": steps, "tasks": tasks,
            "success": float(np.mean(evaluate(agent, tasks, 0).success)), "fitting_seconds": fitting,
            "training_seconds": training, "settings": asdict(SETTINGS[sight]) if pairs else None,
            "seeds": {"labels": LABEL_SEED, "fit": FIT_SEED, "tasks": 0},
        }  # fmt: skip


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keeps other processes that write to the same directory waiting."""
    path.parent.mkdir(parents=True, exist_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a result file, which may not exist yet."""
    rows: list[dict[str, Any]] = read_json(path)["rows"] if path.exists() else []
    return rows


def write_picture(path: Path, side: int = 5) -> None:
    """Writes an enlarged picture of every game as f̂ sees it."""
    from PIL import Image  # the measurements do without it

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
    parser.add_argument("--tests", type=int, help="for errors: pairs that errors are measured on")
    parser.add_argument("--seeds", type=int, default=3, help="for success")
    parser.add_argument("--tasks", type=int, default=1000, help="for success")
    parser.add_argument("--steps", type=int, help="for success: training steps")
    parser.add_argument("--fit-steps", type=int, help="gradient steps of f̂")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="where every f̂ is stored, and found again")
    options = parser.parse_args()
    if options.what == "picture":
        write_picture(ROOT / "docs" / "pictures" / "pixels.png")
        return
    if options.fit_steps:
        SETTINGS.update({sight: replace(known, steps=options.fit_steps) for sight, known in SETTINGS.items()})
    path = options.json or RESULTS / f"attributes-{options.what}.json"

    def missing(**wanted: Any) -> bool:
        rows = [{**UNNAMED, **row} for row in rows_of(path)]
        return not any(all(row[name] == value for name, value in wanted.items()) for row in rows)

    def add(row: dict[str, Any]) -> None:
        print({name: value for name, value in row.items() if not isinstance(value, dict)}, flush=True)
        with alone(path):
            write_result(path, {"rows": [*rows_of(path), row]})

    if options.what == "errors":
        counts = options.pairs or [1_000, 10_000, 100_000, *([1_000_000] if options.sights == ["words"] else [])]
        for sight, game, noise, pairs, geometry in itertools.product(
            options.sights, options.games, options.noise, counts, options.geometries
        ):
            wanted = {"sight": sight, "game": game, "noise": noise, "pairs": pairs, "geometry": geometry}
            if missing(**wanted):
                tests = options.tests or TESTS[sight]
                add({**wanted, **error_row(**wanted, tests=tests, most=max(counts), keep=options.keep)})
        return
    for pairs, sight, game in itertools.product(
        [100_000, 10_000, 0] if options.pairs is None else options.pairs, options.sights, options.games
    ):
        seeds = [seed for seed in range(options.seeds) if missing(sight=sight, game=game, pairs=pairs, seed=seed)]
        if seeds:
            for row in success_rows(game, sight, pairs, seeds, options.tasks, options.steps, options.keep):
                add(row)


if __name__ == "__main__":
    main()
