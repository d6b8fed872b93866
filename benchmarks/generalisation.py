"""Success beyond what training saw: more objects, larger maps, a part of S that training left out, and traps.

    python benchmarks/generalisation.py train --out runs/generalisation
    python benchmarks/generalisation.py evaluate --out runs/generalisation --json results/generalisation.json

`train` trains every job in a process of its own, several jobs at a time; on an accelerator the seeds of a job share one
program. Two CPU cores train all jobs in hours with `--lanes 256 --steps 6000000 --processes 2`.
`evaluate` runs on the CPU and adds every finished point to the lines of `points.jsonl` in the same directory, so that
it can be interrupted; with `--json` it writes the points so far as a result file, and with `--add` it keeps the others
of that file. Where sample efficiency was trained on an accelerator, `follow` measures the agents that the training kept
on its way, the latest first; on a CPU the training measures them itself and ends as soon as all have the paper's
success.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import cpu_name, make_parser, progress
from generalisation_jobs import (
    ALL_JOBS,
    HALF,
    JOBS,
    OBJECTS,
    SEEDS,
    TASK_SEED,
    TASKS,
    TRAINED,
    TRAPS,
    WORLDS,
    LeftOut,
    configs_of,
    up_to,
)

from saplan.experiments.paper import PAPER
from saplan.experiments.result_file import write_result
from saplan.experiments.statistics import encode_successes
from saplan.games import Game
from saplan.games.wrapper import GameWrapper
from saplan.methods.agent import PlannerSettings
from saplan.methods.executor import EvalResult
from saplan.methods.oracle.agent import Oracle
from saplan.storage.json_data import read_json
from saplan.training.evaluate import evaluate
from saplan.training.loop import Loop
from saplan.training.provenance import code, provenance
from saplan.training.store import load_agent, save_agent
from saplan.training.transfer import oracle_need, transfer

FIRST_LOOK, FOLLOWED_TASKS = 250_000, 100
"""Steps after which success is measured first during training, and the tasks of every measurement."""
ENOUGH = PAPER["structured"]["switches"]
"""The success that the paper reports."""
KEPT = "at"
"""The directory of agents kept during a training on an accelerator, by their steps."""
BUDGET, LONGEST = 150, 1000
"""The paper's steps per task, and those of the oracle when its need is measured."""
ORACLE = "oracle"
VARIANTS = {"": PlannerSettings(), "visited only": PlannerSettings(beyond=False)}
"""How plans are made. The second one is measured for the structured method alone."""


WHOLE = ("structured", "without-rho")
"""Agents that are measured everywhere."""
URGENT = {"6..8": 0, "12..16": 0, "goals inside": 0, "goals outside": 0, "maps 15": 2, "no purse": 2, "no change": 2}
"""Points that are measured first, and last."""


def train_job(name: str, options: argparse.Namespace) -> None:
    """Trains the seeds of a job side by side, and saves the agents or follows their success."""
    job, began = ALL_JOBS[name], time.time()
    configs = configs_of(job, options.steps, options.seeds, options.lanes)
    # One program for all seeds pays on an accelerator; on a CPU a program per seed is faster.
    groups = [[config] for config in configs] if jax.default_backend() == "cpu" else [configs]
    loops = [Loop(group) for group in groups]
    if job.left_out:
        for loop in loops:
            loop.method = LeftOut()
    follows = Follow(name, options) if job.efficiency else None
    while loops[0].done < loops[0].updates and not (follows and follows.settled):
        late = time.time() - began > options.seconds
        for loop in loops:
            loop.chunk()
        if follows:
            follows.look(loops, late)
        if late:
            progress(f"{name}: out of time at {loops[0].done * loops[0].per_update} steps")
            break
    steps = loops[0].done * loops[0].per_update
    about = {"job": name, "steps_trained": steps, "lanes": configs[0].settings.lanes,
             "seconds": round(time.time() - began), **provenance()}  # fmt: skip
    if not follows:
        agents = [agent for loop in loops for agent in loop.agents()]
        for agent, config in zip(agents, configs, strict=True):
            save_agent(options.out / name / str(config.seed), agent, config, half=True, about=about)
    progress(f"{name}: {steps} steps in {time.time() - began:.0f} s")


class Follow:
    """Success during training, on tasks whose budget is scaled with the oracle's need."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        """Look first after `FIRST_LOOK` steps, then whenever they have grown by a factor of √2."""
        self.name, self.options, self.next, self.settled = name, options, FIRST_LOOK, False
        self.curve = Curve(name, options) if jax.default_backend() == "cpu" else None

    def look(self, loops: list[Loop], last: bool) -> None:
        """Measure the success of every seed if it is due, or keep the agents for `follow`."""
        steps = loops[0].done * loops[0].per_update
        if steps < self.next and loops[0].done < loops[0].updates and not last:
            return
        self.next = round(self.next * 2**0.5)
        agents = [one for loop in loops for one in loop.agents()]
        if self.curve is not None:
            self.settled = self.curve.add(steps, [self.curve.measure(agent) for agent in agents])
            return
        for agent, config in zip(agents, [config for loop in loops for config in loop.configs], strict=True):
            place = self.options.out / self.name / KEPT / str(steps) / str(config.seed)
            save_agent(place, agent, config, half=True, about=provenance())


class Curve:
    """The success of a job's agents by the steps of their training, as `NAME.json` keeps it."""

    def __init__(self, name: str, options: argparse.Namespace, about: Any = None) -> None:
        """Begin without a point; `about` says where agents were trained that are measured elsewhere."""
        game = ALL_JOBS[name].game
        self.file, self.tasks, self.about = options.out / f"{name}.json", min(options.tasks, FOLLOWED_TASKS), about
        self.budget = budget_for(game, up_to(4))
        self.points: list[dict[str, Any]] = []

    def measure(self, agent: Any) -> float:
        """Success of an agent."""
        return float(evaluate(agent, self.tasks, TASK_SEED + 1, self.budget).success.mean())

    def add(self, steps: int, success: list[float]) -> bool:
        """Write one more point; whether all seeds have the paper's success there."""
        self.points = sorted([*self.points, {"steps": steps, "success": success}], key=lambda point: point["steps"])
        result = {"tasks": self.tasks, "budget": self.budget, "points": self.points, **(self.about or provenance())}
        self.file.write_text(json.dumps(result))
        progress(f"{self.file.stem}: {self.points[-1] if self.about is None else {steps: success}}")
        return min(success) >= ENOUGH


def follow_command(options: argparse.Namespace) -> None:
    """Measures the agents that a training on an accelerator kept, job by job, the latest first.

    Earlier ones do not matter any more once two in a row, on average over the seeds, solve less than half of the tasks.
    """
    began = time.time()
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for name, job in ALL_JOBS.items():
            kept = options.out / name / KEPT
            if not job.efficiency or not kept.is_dir() or not name.startswith(tuple(options.only)):
                continue
            about = read_json(kept / os.listdir(kept)[0] / "0" / "manifest.json")["about"]
            curve = Curve(name, options, about)
            for steps in sorted((int(place.name) for place in kept.iterdir()), reverse=True):
                seeds = sorted((kept / str(steps)).iterdir())
                curve.add(steps, pool.map(kept_success, [(curve.tasks, curve.budget, place) for place in seeds], 1))
                if time.time() - began > options.seconds:
                    return
                if len(curve.points) > 1 and all(mean(point) < HALF for point in curve.points[:2]):
                    break


def mean(point: dict[str, Any]) -> float:
    """Success of all seeds on average."""
    return float(np.mean(point["success"]))


def kept_success(task: tuple[int, int, Path]) -> float:
    """Success of one agent that was kept."""
    tasks, budget, place = task
    return float(evaluate(load_agent(place)[0], tasks, TASK_SEED + 1, budget).success.mean())


def budget_for(game: Game[Any], trained: Game[Any]) -> int:
    """The paper's budget of steps, scaled with the steps that the oracle needs here and in the trained game."""
    need, usual = (oracle_need(one, 200, TASK_SEED + 2, LONGEST) for one in (game, trained))
    return max(BUDGET, round(BUDGET * need / usual))


def oracle_steps(world: tuple[str, str]) -> float:
    """The mean steps of the tasks that the oracle solves in a world."""
    kind, point = world
    return oracle_need(WORLDS[kind][point], 200, TASK_SEED + 2, LONGEST)


def read_needs(out: Path, pool: Any, wanted: list[tuple[Path, str, int, str, str, int]]) -> dict[str, float]:
    """The oracle's steps in all worlds of these points, measured where the file does not have them yet."""
    file = out / "oracle-steps.json"
    known: dict[str, float] = json.loads(file.read_text()) if file.exists() else {}
    kinds = dict.fromkeys(name.partition("-")[0] for _, name, *_ in wanted)
    worlds = dict.fromkeys([*((kind, TRAINED) for kind in kinds), *((w[1].partition("-")[0], w[3]) for w in wanted)])
    # Other goals in the same world do not change its budget.
    worlds = {world: None for world in worlds if not isinstance(WORLDS[world[0]][world[1]], GameWrapper)}
    missing = [world for world in worlds if " ".join(world) not in known]
    known |= {" ".join(world): steps for world, steps in zip(missing, pool.map(oracle_steps, missing, 1), strict=True)}
    file.write_text(json.dumps(known))
    return known


def measure(task: tuple[Path, str, int, str, str, int, int]) -> dict[str, Any]:
    """One agent at one point."""
    out, name, seed, point, variant, tasks, budget = task
    kind, _, method = name.partition("-")
    game, began = WORLDS[kind][point], time.time()
    agent = Oracle(game) if method == ORACLE else transfer(load_agent(out / name / str(seed))[0], game)
    result = evaluate(agent, tasks, TASK_SEED, budget, VARIANTS[variant])
    return {
        "name": name, "seed": seed, "point": point, "variant": variant, "tasks": tasks, "budget": budget,
        "success": float(result.success.mean()), "successes": encode_successes(result.success),
        "steps": int(result.steps.sum()), **failures(game, result, without(kind, point)),
        "seconds": round(time.time() - began, 1), "commit": code()["commit"],
    }  # fmt: skip


def without(kind: str, point: str) -> Game[Any] | None:
    """The world of a trap without the trap."""
    return WORLDS[kind][TRAPS[point]] if point in TRAPS else None


def failures(game: Game[Any], result: EvalResult, easy: Game[Any] | None) -> dict[str, Any]:
    """Steps and number of failed attempts; those at changes that only the trap prevents, apart and by their order."""
    failed = [attempt for attempt in result.attempts if not attempt.success]
    found: dict[str, Any] = {"attempts": len(result.attempts), "failed": len(failed),
                             "failed_steps": sum(one.steps for one in failed)}  # fmt: skip
    if easy is None or not failed:
        return found
    rho, delta = jnp.array([one.rho for one in failed]), jnp.array([one.delta for one in failed])
    here, there = (np.asarray(jax.vmap(one.feasible)(rho, delta)) for one in (game, easy))
    trapped = [one for one, less in zip(failed, here < there - 1e-6, strict=True) if less]
    per_task = np.bincount([one.task for one in trapped], minlength=len(result.success))
    found |= {"trapped": len(trapped), "trapped_steps": sum(one.steps for one in trapped),
              "trapped_tasks": int((per_task > 0).sum()), "trapped_most": int(per_task.max(initial=0)),
              "trapped_success": float(result.success[per_task > 0].mean()) if trapped else None}  # fmt: skip
    return found


def plan_of(options: argparse.Namespace) -> list[tuple[Path, str, int, str, str, int]]:
    """The points that are still to be measured, the most wanted first."""
    done = set(map(place_of, points_in(options.out)))
    wanted = []
    for name in [*(f"{kind}-{ORACLE}" for kind in WORLDS), *ALL_JOBS]:
        kind, _, method = name.partition("-")
        if kind not in WORLDS or not name.startswith(tuple(options.only)):
            continue
        for point in WORLDS[kind]:
            if not point.startswith(tuple(options.points)):
                continue
            if method not in (*WHOLE, "plain", ORACLE) and not compared(name, point):
                continue
            if method == ORACLE and isinstance(WORLDS[kind][point], GameWrapper):
                continue  # the oracle does not know the world by its wrapper
            for variant in VARIANTS if method == "structured" and point in OBJECTS else ("",):
                for seed in range(1 if method == ORACLE else options.seeds):
                    there = method == ORACLE or (options.out / name / str(seed)).is_dir()
                    if there and (name, seed, point, variant) not in done:
                        wanted.append((options.out, name, seed, point, variant, options.tasks))
    return sorted(wanted, key=lambda one: (one[4] != "", URGENT.get(one[3], 1)))


def compared(name: str, point: str) -> bool:
    """Whether an agent other than the structured ones is measured at a point."""
    if name.startswith("mining"):
        return name == "mining-left-out" or point == "hole"
    return point not in TRAPS and not point.startswith("no ")


def points_in(out: Path) -> list[dict[str, Any]]:
    """The points measured so far."""
    file = out / "points.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def evaluate_command(options: argparse.Namespace) -> None:
    """Measures what is missing in several processes, and writes the result file."""
    wanted, began = plan_of(options), time.time()
    progress(f"{len(wanted)} points to measure")
    processes = max(1, min(options.processes, len(wanted)))
    context = multiprocessing.get_context("spawn")
    places: Any = context.Queue()
    for core in sorted(os.sched_getaffinity(0), reverse=True) * processes:
        places.put(core)
    with context.Pool(processes, pin, (places,)) as pool:
        needs = read_needs(options.out, pool, wanted)
        progress(f"the oracle's steps: {needs}")
        for found in pool.imap_unordered(measure, [(*one, scaled(needs, one)) for one in wanted]):
            with (options.out / "points.jsonl").open("a") as file:
                file.write(json.dumps(found) + "\n")
            progress(f"{found['name']} {found['seed']} {found['point']} {found['variant']}: {found['success']:.3f} "
                     f"({found['budget']} steps, {found['seconds']} s)")  # fmt: skip
            if time.time() - began > options.seconds:
                pool.terminate()
                break
    if options.json:
        known = read_json(options.json) if options.add and options.json.exists() else {}
        write_result(options.json, gathered(options.out, known))


def scaled(needs: dict[str, float], point: tuple[Path, str, int, str, str, int]) -> int:
    """The paper's budget of steps, scaled with the steps that the oracle needs here and in the trained world."""
    kind = point[1].partition("-")[0]
    usual = needs[f"{kind} {TRAINED}"]
    return max(BUDGET, round(BUDGET * needs.get(f"{kind} {point[3]}", usual) / usual))


def pin(places: Any) -> None:
    """Keep this process on one core: small programs side by side hinder each other less."""
    os.sched_setaffinity(0, {places.get()})


def gathered(out: Path, known: dict[str, Any]) -> dict[str, Any]:
    """Everything that was measured, with the settings and the machines; from a `known` result what is missing here."""
    efficiency = {path.stem: json.loads(path.read_text()) for path in sorted(out.glob("efficiency-*.json"))}
    trained = {name: load_about(out / name / "0") for name in ALL_JOBS if (out / name / "0").is_dir()}
    points = points_in(out)
    here = {place_of(point) for point in points}
    points = [*(point for point in known.get("points", []) if place_of(point) not in here), *points]
    return {"task_seed": TASK_SEED, "tasks": TASKS, "evaluated_on": cpu_name(),
            "trained": {**known.get("trained", {}), **trained}, "points": points,
            "efficiency": {**known.get("efficiency", {}), **efficiency}}  # fmt: skip


def place_of(point: dict[str, Any]) -> tuple[str, int, str, str]:
    """What a point measures: a job, a seed, a world, and a way of making plans."""
    return point["name"], point["seed"], point["point"], point["variant"]


def load_about(directory: Path) -> dict[str, Any]:
    """Steps, code and hardware of a training, from the manifest of its first agent."""
    about: dict[str, Any] = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))["about"]
    return about


def train_command(options: argparse.Namespace) -> None:
    """Trains the jobs, some at a time, each in a process of its own."""
    waiting = [name for group in options.jobs for name in JOBS.get(group, {group: None})]
    again = [sys.executable, __file__, *sys.argv[1:], "--only"]
    env, failed = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, list[str]()
    running: dict[str, subprocess.Popen[bytes]] = {}
    while waiting or running:
        while waiting and len(running) < options.processes:
            name = waiting.pop(0)
            running[name] = subprocess.Popen([*again, name], env=env)
        time.sleep(1)
        for name in [name for name, process in running.items() if process.poll() is not None]:
            if running.pop(name).returncode:
                failed.append(name)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def main() -> None:
    """Runs the part that the command line names."""
    parser = make_parser(__doc__)
    parser.add_argument("part", choices=("train", "evaluate", "follow"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), help=f"of {', '.join([*JOBS, *ALL_JOBS])}")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, help="instead of those of the jobs")
    parser.add_argument("--lanes", type=int, help="instead of those of the jobs")
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--processes", type=int, default=5, help="at a time")
    parser.add_argument("--seconds", type=float, default=3600, help="after which a part ends with what it has")
    parser.add_argument("--add", action="store_true", help="keep what the result file has and the directory has not")
    parser.add_argument("--points", nargs="*", default=[""], help="names of points, or how they begin")
    parser.add_argument("--only", nargs="*", default=[""], help="names of jobs, or how they begin")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.part != "train":
        jax.config.update("jax_platforms", "cpu")
        evaluate_command(options) if options.part == "evaluate" else follow_command(options)
    elif options.only != [""]:
        train_job(options.only[0], options)
    else:
        train_command(options)


if __name__ == "__main__":
    main()
