"""Success beyond what training saw: more objects, larger maps, a part of S that training left out.

    python benchmarks/generalisation.py train --out runs/generalisation --jobs objects
    python benchmarks/generalisation.py train --out runs/generalisation --jobs mining efficiency
    python benchmarks/generalisation.py evaluate --out runs/generalisation --json results/generalisation.json

`train` needs an accelerator: every job trains five seeds in one program and one process, several jobs at a time.
`evaluate` runs on the CPU and adds every finished point to the lines of `points.jsonl` in the same directory, so that
it can be interrupted; with `--json` it writes the points so far as a result file.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from common import make_parser, progress

from saplan.experiments.result_file import write_result
from saplan.experiments.statistics import encode_successes
from saplan.games import Game, Mining, make_game
from saplan.games.grid import MapRules
from saplan.games.mining import in_box
from saplan.methods.ablations import FULL, ablated
from saplan.methods.agent import PlannerSettings
from saplan.methods.base import Learner
from saplan.methods.oracle import Oracle
from saplan.methods.registry import find_method
from saplan.methods.structured.learner import Structured, StructuredKnowledge
from saplan.methods.targets import Rollout
from saplan.training.config import RunConfig
from saplan.training.evaluate import evaluate
from saplan.training.loop import Loop
from saplan.training.provenance import provenance
from saplan.training.store import load_agent, save_agent
from saplan.training.transfer import transfer

SEEDS, TASKS, TASK_SEED = 5, 500, 7_000
BOX = (4.5, 5.0, 7.5, 8.0)
"""An eighth of S: amounts of both minerals, least and greatest."""
PAPER_SUCCESS = 0.893
"""The paper's success on switches."""
PAPER_BUDGET = 150
BYTES = 15 * 2**20
"""Largest file of packed agents."""


@dataclass(frozen=True)
class Job:
    """Agents of one method in one world, one per seed."""

    game: Game[Any]
    method: str = "structured"
    algebra: str = FULL
    steps: int = 15_000_000
    lanes: int = 1024
    left_out: bool = False
    """Whether training takes no notice of what happens in the box."""
    efficiency: bool = False
    """Whether success is followed during training, and the agents are not kept."""


def _jobs() -> dict[str, dict[str, Job]]:
    few = {name: make_game(name, most=3) for name in ("switches", "exchange")}
    objects = {f"{name}-{method}": Job(game, method) for name, game in few.items()
               for method in ("structured", "unstructured", "curriculum")}  # fmt: skip
    objects |= {f"{name}-raw": Job(game, algebra="raw") for name, game in few.items()}
    objects["switches-integers"] = Job(few["switches"], algebra="integers")
    long: dict[str, Any] = {"steps": 30_000_000, "lanes": 2048}
    mining = {"mining-plain": Job(Mining(), **long), "mining-left-out": Job(Mining(), left_out=True, **long),
              "mining-hole": Job(Mining(hole=BOX), **long)}  # fmt: skip
    efficiency = {
        f"efficiency-{method}-{most}": Job(up_to(most), method, steps=32_000_000, efficiency=True)
        for most in (4, 8, 16)
        for method in ("structured", "unstructured")
    }
    return {"objects": objects, "mining": mining, "efficiency": efficiency}


def up_to(most: int) -> Game[Any]:
    """Switches with 1 to `most` objects of a kind; many of them need large maps."""
    return make_game("switches", most=most, maps=MapRules(smallest=10) if most > 8 else MapRules())


JOBS = _jobs()
ALL_JOBS = {name: job for group in JOBS.values() for name, job in group.items()}


class LeftOut(Structured):
    """The structured method, to which nothing is known that happened inside the box."""

    def play(self, game: Game[Any], settings: Any, learner: Learner[StructuredKnowledge], key: Any) -> Rollout:
        """A rollout whose steps inside the box are unusable, as after the end of a game."""
        rollout = super().play(game, settings, learner, key)
        steps = rollout.trajectory
        amounts = jnp.stack([steps.rho, steps.after])[..., : len(BOX) // 2]
        out = jnp.any(in_box(amounts, BOX), axis=0)
        hidden = {name: getattr(steps, name) & ~out for name in ("changed", "success", "failure", "lost")}
        return Rollout.of(replace(steps, **hidden, game_over=steps.game_over | out), rollout.lanes)


def configs_of(job: Job, steps: int | None, seeds: int, lanes: int | None) -> list[RunConfig]:
    """The configurations of a job, which differ in their seeds."""
    game = ablated(job.game, job.algebra)
    settings = replace(find_method(job.method).settings_for(game, False), lanes=lanes or job.lanes)
    return [RunConfig(game, settings, steps or job.steps, seed, job.method, 0, 0) for seed in range(seeds)]


def train_job(name: str, options: argparse.Namespace) -> None:
    """Trains the seeds of a job side by side, and saves the agents or follows their success."""
    job, began = ALL_JOBS[name], time.time()
    loop = Loop(configs_of(job, options.steps, options.seeds, options.lanes))
    if job.left_out:
        loop.method = LeftOut()
    points: list[dict[str, Any]] = []
    follows = Follow(job.game, options.tasks) if job.efficiency else None
    while loop.done < loop.updates and not (follows and follows.settled):
        seconds = time.time() - began
        if seconds > options.seconds:
            progress(f"{name}: out of time at {loop.done * loop.per_update} steps")
            break
        loop.chunk()
        if follows and follows.due(loop.done * loop.per_update):
            points.append(follows.measure(loop))
            progress(f"{name}: {points[-1]}")
    steps = loop.done * loop.per_update
    about = {"job": name, "steps_trained": steps, "seconds": round(time.time() - began), **provenance()}
    if follows:
        result = {**about, "budget": follows.budget, "points": points}
        (options.out / f"{name}.json").write_text(json.dumps(result))
    else:
        for agent, config in zip(loop.agents(), loop.configs, strict=True):
            save_agent(options.out / name / str(config.seed), agent, config, half=True, about=about)
    progress(f"{name}: {steps} steps in {time.time() - began:.0f} s")


class Follow:
    """Success during training, on tasks whose budget is scaled with the oracle's need."""

    def __init__(self, game: Game[Any], tasks: int) -> None:
        """Measure from a quarter of a million steps on, then at every doubling."""
        self.tasks, self.next, self.settled = min(tasks, 100), 250_000, False
        self.budget = budget_for(game, up_to(4))

    def due(self, steps: int) -> bool:
        """Whether success is to be measured now."""
        return steps >= self.next

    def measure(self, loop: Loop) -> dict[str, Any]:
        """Success of every seed now; settled once all have the paper's."""
        steps = loop.done * loop.per_update
        self.next = round(self.next * 2**0.5)
        success = [float(evaluate(a, self.tasks, TASK_SEED + 1, self.budget).success.mean()) for a in loop.agents()]
        self.settled = min(success) >= PAPER_SUCCESS
        return {"steps": steps, "success": success}


@cache
def budget_for(game: Game[Any], trained: Game[Any]) -> int:
    """The paper's budget of steps, scaled with the steps that the oracle needs here and in the trained game."""
    need, usual = (evaluate(Oracle(one), 200, TASK_SEED + 2, 2000).steps.mean() for one in (game, trained))
    return max(PAPER_BUDGET, round(float(PAPER_BUDGET * need / usual)))


POINTS: dict[str, dict[str, dict[str, Any]]] = {
    "switches": {
        "1..3": {"most": 3},
        "4..5": {"fewest": 4, "most": 5},
        "6..8": {"fewest": 6, "most": 8},
        "12..16": {"fewest": 12, "most": 16, "maps": MapRules(10, 10)},
        "maps 15": {"most": 3, "maps": MapRules(15, 15)},
        "maps 20": {"most": 3, "maps": MapRules(20, 20)},
    },
    "exchange": {
        "1..3": {"most": 3},
        "4..5": {"fewest": 4, "most": 5},
        "6..8": {"fewest": 6, "most": 8},
        "maps 15": {"most": 3, "maps": MapRules(15, 15)},
        "maps 20": {"most": 3, "maps": MapRules(20, 20)},
    },
    "mining": {
        "trained": {},
        "hole": {"hole": BOX},
        "maps 15": {"maps": MapRules(15, 15)},
        "maps 20": {"maps": MapRules(20, 20)},
    },
}
VARIANTS = {"": PlannerSettings(), "visited only": PlannerSettings(beyond=False)}
"""How plans are made; the second line is drawn for the structured method alone."""


def measure(task: tuple[Path, str, int, str, str, int]) -> dict[str, Any]:
    """One agent at one point."""
    out, name, seed, point, variant, tasks = task
    agent = load_agent(out / name / str(seed))[0] if name.partition("-")[2] != "oracle" else None
    kind = name.partition("-")[0]
    game = make_game(kind, **POINTS[kind][point])
    trained = make_game(kind, **POINTS[kind][next(iter(POINTS[kind]))])
    budget, began = budget_for(game, trained), time.time()
    agent = Oracle(game) if agent is None else transfer(agent, game)
    result = evaluate(agent, tasks, TASK_SEED, budget, VARIANTS[variant])
    return {
        "name": name, "seed": seed, "point": point, "variant": variant, "tasks": tasks, "budget": budget,
        "success": float(result.success.mean()), "successes": encode_successes(result.success),
        "steps": float(result.steps.mean()), "failed_steps": sum(a.steps for a in result.attempts if not a.success),
        "seconds": round(time.time() - began, 1),
    }  # fmt: skip


def plan_of(options: argparse.Namespace) -> list[tuple[Path, str, int, str, str, int]]:
    """The points that are still to be measured, the most wanted first."""
    done = {(p["name"], p["seed"], p["point"], p["variant"]) for p in points_in(options.out)}
    wanted = []
    for name in [*ALL_JOBS, *(f"{kind}-oracle" for kind in POINTS)]:
        kind, _, method = name.partition("-")
        if kind not in POINTS or not name.startswith(tuple(options.only)):
            continue
        for point in POINTS[kind]:
            for variant in VARIANTS if method == "structured" else ("",):
                for seed in range(1 if method == "oracle" else options.seeds):
                    there = method == "oracle" or (options.out / name / str(seed)).is_dir()
                    if there and (name, seed, point, variant) not in done:
                        wanted.append((options.out, name, seed, point, variant, options.tasks))
    return wanted


def points_in(out: Path) -> list[dict[str, Any]]:
    """The points measured so far."""
    file = out / "points.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def evaluate_command(options: argparse.Namespace) -> None:
    """Measures what is missing in several processes, and writes the result file."""
    unpack(options.out)
    wanted, began = plan_of(options), time.time()
    progress(f"{len(wanted)} points to measure")
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for found in pool.imap_unordered(measure, wanted):
            with (options.out / "points.jsonl").open("a") as file:
                file.write(json.dumps(found) + "\n")
            progress(f"{found['name']} {found['seed']} {found['point']} {found['variant']}: {found['success']:.3f} "
                     f"({found['budget']} steps, {found['seconds']} s)")  # fmt: skip
            if time.time() - began > options.seconds:
                pool.terminate()
                break
    about = {"task_seed": TASK_SEED, "points": points_in(options.out)}
    write_result(options.json, about)


def train_command(options: argparse.Namespace) -> None:
    """Trains the jobs, some at a time, each in a process of its own, and packs the agents."""
    names = [name for group in options.jobs for name in JOBS.get(group, {group: None})]
    again = [sys.executable, __file__, *sys.argv[1:], "--only"]
    env, failed = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, []
    running: dict[str, subprocess.Popen[bytes]] = {}
    waiting = list(names)
    while waiting or running:
        while waiting and len(running) < options.processes:
            name = waiting.pop(0)
            running[name] = subprocess.Popen([*again, name], env=env)
        time.sleep(1)
        for name in [name for name, process in running.items() if process.poll() is not None]:
            if running.pop(name).returncode:
                failed.append(name)
    pack(options.out, [name for name in names if name not in failed and not ALL_JOBS[name].efficiency])
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def pack(out: Path, names: list[str]) -> None:
    """One compressed file per job, and none larger than can be sent back."""
    for name in names:
        if (out / name).is_dir():
            with tarfile.open(out / f"{name}.tar.xz", "w:xz", preset=1) as file:
                file.add(out / name, name)
            size = (out / f"{name}.tar.xz").stat().st_size
            progress(f"{name}.tar.xz: {size / 2**20:.1f} MiB{' TOO LARGE' if size > BYTES else ''}")


def unpack(out: Path) -> None:
    """Unpacks the agents of jobs that have no directory yet."""
    for path in out.glob("*.tar.xz"):
        if not (out / path.name.removesuffix(".tar.xz")).is_dir():
            with tarfile.open(path) as file:
                file.extractall(out, filter="data")


def main() -> None:
    """Runs the part that the command line names."""
    parser = make_parser(__doc__)
    parser.add_argument("part", choices=("train", "evaluate"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), help=f"of {', '.join([*JOBS, *ALL_JOBS])}")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, help="instead of those of the jobs")
    parser.add_argument("--lanes", type=int, help="instead of those of the jobs")
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--processes", type=int, default=5, help="at a time")
    parser.add_argument("--seconds", type=float, default=540, help="after which a part ends with what it has")
    parser.add_argument("--only", nargs="*", default=[""], help="names of jobs, or how they begin")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.part == "evaluate":
        jax.config.update("jax_platforms", "cpu")
        evaluate_command(options)
    elif options.only != [""]:
        train_job(options.only[0], options)
    else:
        train_command(options)


if __name__ == "__main__":
    main()
