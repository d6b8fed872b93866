"""What the right algebra is worth: every game trained with its declared space, the found one and a wrong one.

    python benchmarks/worth.py --out runs/worth --json results/worth.json
    python benchmarks/worth.py --games switches mining arm tiles --jobs 1 --steps 1000000 --lanes 256 --hidden 128
        --minibatches 32 --tasks 400 --curve-tasks 100 --points 5 --seeds 2 --json results/worth-cpu.json

The found space is the one that `saplan suggest` finds in 200,000 steps of random play. The wrong one has ℤ for ℤ/q, ℝ
for S¹ and labels for D_n. Every case trains its seeds in one process, and all cases run side by side, which pays on an
accelerator; the second command, on one line, runs one after the other on one CPU core. Success on test tasks stands
beside the oracle's; the curve is success on other tasks during training. `OUT/CASE.json` is written as soon as a case
is done, and `--collect` joins the files that exist. With `--ship DIR` the first agents of arm and of tiles are saved as
they ship.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import make_parser, progress

from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Integer, Real
from saplan.experiments.result_file import write_result
from saplan.games import GAMES, make_game
from saplan.games.game import Game
from saplan.methods.oracle.agent import Oracle
from saplan.methods.registry import find_method
from saplan.perception.found_space import FoundAttribute, with_space
from saplan.perception.suggest import suggest_space
from saplan.storage.json_data import read_json, write_json
from saplan.training.config import run_config
from saplan.training.evaluate import evaluate
from saplan.training.provenance import code, command
from saplan.training.store import MANIFEST, load_agent, save_agent
from saplan.training.train import RunOptions, train_runs

SPACES = DECLARED, FOUND, WRONG, ORACLE = "declared", "found", "wrong", "oracle"
SHIPPED = ("arm", "tiles")
ENOUGH = 0.9
"""Success on the way to which steps are counted."""
CURVE_SEED = 1
"""Seed of the tasks during training; those of the final success have the seed 0."""
WRONG_CAPACITY = 64
"""Room for the changes of a wrong space: labels of three pieces have 48."""


def wrong_block(block: Block) -> Block:
    """A block without the structure of the right one."""
    if isinstance(block, Cyclic):
        return Integer()
    if isinstance(block, Circle):
        return Real(block.resolution, 0.0, block.period)
    if isinstance(block, Dihedral):
        return Categorical(tuple(map(block.format, range(block.size))))
    return block


def has_wrong(game: Game[Any]) -> bool:
    """Whether a game has a block that a poorer one can replace."""
    return any(wrong_block(block) != block for block in game.space.blocks)


def game_with(name: str, space: str, seed: int) -> Game[Any]:
    """A game with one of the spaces."""
    game = make_game(name)
    if space == DECLARED:
        return game
    if space == FOUND:
        return with_space(game, suggest_space(game, seed=seed))
    pairs = zip(game.space.names, game.space.blocks, strict=True)
    return with_space(game, tuple(FoundAttribute(one, (one,), wrong_block(block)) for one, block in pairs))


def cases_of(games: list[str]) -> list[str]:
    """Every game with every space that it has, and its oracle."""
    spaces = {name: (DECLARED, FOUND, *([WRONG] if has_wrong(make_game(name)) else []), ORACLE) for name in games}
    return [f"{name}-{space}" for name in games for space in spaces[name]]


def run_case(case: str, options: argparse.Namespace) -> None:
    """Trains the seeds of one case and evaluates them, or evaluates an oracle; writes the rows."""
    name, space = case.split("-")
    if space == ORACLE:
        success = evaluate(Oracle(make_game(name)), options.tasks).success.mean()
        rows = [{"game": name, "space": ORACLE, "success": round(float(success), 4), "commit": code()["commit"]}]
    else:
        rows = trained(name, space, options)
    write_json(options.out / f"{case}.json", rows)
    for row in rows:
        progress(f"{case}: {row}")


def trained(name: str, space: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """One row per seed of a game with a space."""
    game = game_with(name, space, options.first_seed)
    settings: Any = find_method("structured").settings_for(game, False)
    room = max(settings.capacity, WRONG_CAPACITY) if space == WRONG else settings.capacity
    sizes = {"lanes": options.lanes, "hidden": options.hidden, "minibatches": options.minibatches}
    settings = replace(settings, capacity=room, **sizes)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    outs = [(options.runs or options.out / "runs") / f"{name}-{space}-{seed}" for seed in seeds]
    configs = [run_config(game, options.steps, seed, settings, "structured", options.points, 0) for seed in seeds]
    train_runs(configs, outs, RunOptions(save_every=1e9), resume=True)
    if options.ship and space == DECLARED and name in SHIPPED:
        ship(outs[0], options.ship / name)
    rows: list[dict[str, Any]] = []
    for seed, out in zip(seeds, outs, strict=True):
        about = {"game": name, "space": space, "seed": seed, "blocks": str(game.space), "steps": options.steps,
                 "commit": code()["commit"]}  # fmt: skip
        rows.append({**about, **final(out, options)})
        write_json(options.out / f"{name}-{space}.json", rows)
    for row, out in zip(rows, outs, strict=True):
        for curve in curves(out, options):
            reached = [steps for steps, share in curve if share >= ENOUGH]
            row.update(curve=curve, steps_to_90=min(reached, default=None))
            write_json(options.out / f"{name}-{space}.json", rows)
    return rows


def ship(run: Path, place: Path) -> None:
    """Saves an agent in half precision, with the facts about its training in its manifest."""
    agent, config = load_agent(run)
    about = {**(read_json(run / MANIFEST).get("about") or {}), "command": command(config)}
    save_agent(place, agent, config, half=True, about=about)


def final(out: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Success of one run at its end, and the size of 𝓑."""
    agent: Any = load_agent(out)[0]
    return {
        "success": round(float(evaluate(agent, options.tasks).success.mean()), 4),
        "changes": int(agent.memory.size),
        "overflow": int(agent.memory.overflow),
        "curve": [],
        "steps_to_90": None,
    }


def curves(out: Path, options: argparse.Namespace) -> Iterator[list[list[float]]]:
    """Steps and success of one run on the way, with one more point each time, the last one first."""
    curve: list[list[float]] = []
    for point in sorted((out / "evaluations").iterdir(), key=lambda path: -int(path.name)):
        share = evaluate(load_agent(point)[0], options.curve_tasks, CURVE_SEED).success.mean()
        curve.insert(0, [int(point.name), round(float(share), 4)])
        yield curve


def place_of(row: dict[str, Any]) -> tuple[int, int, int]:
    """Where a row belongs: its game, its space and its seed."""
    return list(GAMES).index(row["game"]), SPACES.index(row["space"]), row.get("seed", 0)


def collect(options: argparse.Namespace) -> None:
    """Joins the rows of all cases that are done."""
    files = [options.out / f"{case}.json" for case in cases_of(options.games)]
    rows = [row for path in files if path.exists() for row in read_json(path)]
    if options.add and options.json and options.json.exists():
        new = set(map(place_of, rows))
        rows = sorted(
            [*(row for row in read_json(options.json)["rows"] if place_of(row) not in new), *rows], key=place_of
        )
    names = ("steps", "tasks", "curve_tasks", "points", "lanes", "hidden", "minibatches", "seeds")
    about = {name: getattr(options, name) for name in names}
    write_result(options.json or options.out / "worth.json", {**about, "rows": rows})
    for row in rows:
        print(row["game"], row["space"], row.get("seed", ""), row["success"], row.get("steps_to_90", ""),
              row.get("changes", ""))  # fmt: skip


def main() -> None:
    """Trains, evaluates, prints and writes."""
    parser = make_parser(__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/worth"))
    parser.add_argument("--runs", type=Path, help="directory of the runs, OUT/runs unless given")
    parser.add_argument("--games", nargs="*", default=list(GAMES), choices=list(GAMES))
    parser.add_argument("--cases", nargs="*", help="only these, such as arm-found")
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--lanes", type=int, default=1024)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--minibatches", type=int, default=64)
    parser.add_argument("--points", type=int, default=6, help="agents on the way whose success is measured")
    parser.add_argument("--jobs", type=int, help="cases side by side, all of them unless given")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--curve-tasks", type=int, default=200)
    parser.add_argument("--ship", type=Path, metavar="DIR", help="save the agents of arm and tiles here")
    parser.add_argument("--add", action="store_true", help="keep the other games and spaces of the result file")
    parser.add_argument("--collect", action="store_true", help="only join the files that exist")
    parser.add_argument("--only", metavar="CASE", help="run one case in this process")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.only:
        run_case(options.only, options)
        return
    failed = []
    if not options.collect:
        cases = options.cases or cases_of(options.games)
        again = [sys.executable, __file__, *sys.argv[1:], "--only"]
        # No process may reserve most of the device's memory, and an oracle needs no device.
        env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        alone = {**env, "JAX_PLATFORMS": "cpu"}

        def status(case: str) -> int:
            return subprocess.run([*again, case], env=alone if case.endswith(ORACLE) else env, check=False).returncode

        with ThreadPoolExecutor(options.jobs or len(cases)) as pool:
            failed = [case for case, wrong in zip(cases, pool.map(status, cases), strict=True) if wrong]
    collect(options)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
