"""Attributes of MiniGrid read off pictures of 64 × 64 pixels: errors by number of labels and by geometry.

    python benchmarks/minigrid_pixels.py --json results/pixels-minigrid.json

The pictures are MiniGrid's own, without text, with the carried object below the map. The states are random: the agent
anywhere, the door open, closed or locked, every object on the map, carried or gone. It needs the extra `minigrid`, and
continues an existing file.
"""

import itertools
import sys
import time
from typing import Any

import gymnasium
import numpy as np
from common import RESULTS, ROOT, make_parser, progress

from saplan.algebra import Product
from saplan.algebra.marked import inner
from saplan.experiments.result_file import write_result
from saplan.perception.fit import fit_labels, measure_errors
from saplan.perception.geometry import GEOMETRIES
from saplan.perception.labels import Labels, Source
from saplan.perception.regressor import RegressorSettings
from saplan.storage.json_data import read_json

sys.path.insert(0, str(ROOT / "examples"))
from mini_grid import TASKS, Task

SIDE = 64
TESTS = 5000
SHAPES = ("key", "ball", "box")


def tile_side(env: Any) -> int:
    """Side of a tile, such that the map and one more row fit in a picture."""
    return min(SIDE // int(env.width), SIDE // (int(env.height) + 1))


def picture(env: Any, side: int) -> np.ndarray:
    """MiniGrid's picture of the map, with the carried object below it."""
    frame = env.grid.render(side, env.agent_pos, env.agent_dir)
    whole = np.zeros((SIDE, SIDE, 3), np.uint8)
    whole[: frame.shape[0], : frame.shape[1]] = frame
    if env.carrying is not None:
        tile = type(env.grid).render_tile(env.carrying, tile_size=side)
        whole[frame.shape[0] : frame.shape[0] + side, :side] = tile
    return whole


def scramble(env: Any, rng: np.random.Generator) -> None:
    """Brings an environment into a random state."""
    things = {k: thing for k, thing in enumerate(env.grid.grid) if thing is not None}
    objects = [k for k, thing in things.items() if thing.type in SHAPES]
    for thing in things.values():
        if thing.type == "door":
            was_locked = thing.is_locked
            thing.is_open = bool(rng.random() < 0.4)
            thing.is_locked = was_locked and not thing.is_open and bool(rng.random() < 0.5)
    if objects and rng.random() < 0.5:
        k = int(rng.choice(objects))
        row, column = divmod(k, env.width)
        env.carrying = things[k]
        env.grid.set(column, row, None)
        if things[k].type == "box" and rng.random() < 0.5:
            env.carrying = None  # opened: it is gone
    free = [k for k, thing in enumerate(env.grid.grid) if thing is None]
    row, column = divmod(int(rng.choice(free)), env.width)
    env.agent_pos, env.agent_dir = (column, row), int(rng.integers(4))


def draw_pictures(task: Task, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of random states, and their attributes."""
    env: Any = gymnasium.make(task.env).unwrapped
    env.gen_obs = lambda: None  # the environment's own view is not needed
    rng, side = np.random.default_rng(seed), 0
    seen, rho = np.zeros((count, SIDE, SIDE, 3), np.uint8), np.zeros((count, task.space.size), np.float32)
    for k in range(count):
        env.reset(seed=int(rng.integers(2**31)))
        scramble(env, rng)
        side = side or tile_side(env)
        seen[k], rho[k] = picture(env, side), task.attributes(None, {}, env)
    return seen, rho


def error_row(
    task: Task, seen: np.ndarray, rho: np.ndarray, geometry: str, tests: tuple[Any, Any], steps: int
) -> dict[str, Any]:
    """Errors of f̂ on pictures that it was not fitted on."""
    space = Product(task.space.names, tuple(map(inner, task.space.blocks)))
    env: Any = gymnasium.make(task.env).unwrapped
    env.reset(seed=0)
    settings = RegressorSettings(hidden=32, batch=128, rate=0.005, steps=steps, cell=tile_side(env))
    began = time.monotonic()
    regressor = fit_labels(Labels(seen, rho, Source(space)), settings, 0, geometry).regressor
    measured = measure_errors(regressor, *tests)
    return {**measured, "pairs": len(rho), "seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    """Computes the missing rows."""
    parser = make_parser(__doc__)
    parser.add_argument("--pairs", nargs="*", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--geometries", nargs="*", default=list(GEOMETRIES))
    parser.add_argument("--fit-steps", type=int, default=4000, help="gradient steps of f̂")
    options = parser.parse_args()
    path = options.json or RESULTS / "pixels-minigrid.json"
    rows = read_json(path)["rows"] if path.exists() else []
    for task in TASKS:
        tests = draw_pictures(task, TESTS, 999)
        seen, rho = draw_pictures(task, max(options.pairs), 1)
        progress(f"{task.env}: {len(rho)} pictures")
        for pairs, geometry in itertools.product(options.pairs, options.geometries):
            wanted = {"game": task.env, "pairs": pairs, "geometry": geometry}
            if any(all(row[name] == value for name, value in wanted.items()) for row in rows):
                continue
            rows.append({**wanted, **error_row(task, seen[:pairs], rho[:pairs], geometry, tests, options.fit_steps)})
            print({name: value for name, value in rows[-1].items() if not isinstance(value, dict)}, flush=True)
            write_result(path, {"rows": rows}, "minigrid")


if __name__ == "__main__":
    main()
