"""Plans by algebra beside ENHSP: python benchmarks/planning.py --json results/planning-peers.json.

Both planners get the same problem; ENHSP reads it as the PDDL that `saplan export` writes, through unified-planning.
Its time is that of the call, with Java's start and without reading the files, and beside it its own report of the
search alone. Its optimal mode gets the first problem of each world and 60 s. Our time is the median of several plans,
from the request to a checked path. The worlds: exchange with 8 to 4,000 objects of each kind (the goal red=5 green=12
blue=4, which grows with the objects, and goals that random changes lead to), Lights Out with 24 buttons, 200
conversions of 60 counts, tech trees of 60 items, and the models that the shipped agents have learnt. All items of
further tech trees, and 2,000 random problems against brute force, come first.
"""

import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from common import ROOT, describe, make_parser, progress, setting, text_table
from enhsp import OPTIMAL, Solved, missing, solve_with_enhsp

sys.path.insert(0, str(ROOT))  # the worlds are those of the tests

import saplan
from saplan.experiments.result_file import write_result
from saplan.methods.structured.learnt_model import learnt_model
from saplan.planning.algebraic import AlgebraicPlan, find_plan
from saplan.planning.integer_program import Status
from saplan.planning.needs import Feasible
from saplan.planning.problem import Problem
from saplan.planning.proof import find_certificate
from saplan.planning.proof_checker import check
from tests.planning.known_worlds import TechTree, always, exchange, lights_out, wide_world
from tests.planning.small_problems import SmallProblem

SIZES = (8, 40, 400, 4000)
DEEP = (5, 12, 4)
"""Red, green and blue to hold, with eight of each on the map."""
TECH_ITEMS = (20, 40, 59)
LEARNT = {"switches": "red=1 green=1 blue=1", "exchange": "red=4 green=4 blue=1"}
NODES = 20_000
"""Nodes of the search that answers what counts leave open."""


@dataclass(frozen=True)
class Case:
    """One problem of a world."""

    world: str
    problem: Problem
    feasible: Feasible
    first: bool
    """Whether ENHSP's optimal mode gets this problem as well."""


def deep_exchange(objects: int) -> Problem:
    """With eight objects of each kind, the goal is 27 changes away; with more it grows in proportion."""
    return exchange(objects, tuple(objects * held // 8 for held in DEEP))  # type: ignore[arg-type]


def random_exchange(objects: int, seed: int) -> Problem:
    """What is held after most objects were taken and random trades were made, in blocks so that large numbers occur."""
    random = np.random.default_rng([objects, seed])
    empty = exchange(objects, (0, 0, 0))
    rho = empty.start.copy()
    rho[3:] = np.floor(rho[:3] * random.uniform(0.7, 1.0, 3))
    trades = [change for change, delta in enumerate(empty.deltas) if np.all(delta[:3] == 0)]
    for change in random.choice(trades, 12):
        delta = empty.deltas[change]
        most = int(np.min(rho[delta < 0] // -delta[delta < 0]))
        rho = rho + delta * int(most * random.uniform(0.0, 0.5))
    return exchange(objects, tuple(map(int, rho[3:])))  # type: ignore[arg-type]


def cases(instances: int) -> Iterator[Case]:
    """All problems, world by world."""
    for objects in SIZES:
        for seed in range(instances):
            problem = random_exchange(objects, seed) if seed else deep_exchange(objects)
            goal = f"random goal {seed}" if seed else "a deep goal"
            yield Case(f"exchange, {objects:,} objects of each kind, {goal}", problem, always(problem), not seed)
    for seed in range(100, 100 + instances):
        problem = lights_out(4, 6, seed)
        yield Case(f"Lights Out, 24 buttons, start {seed}", problem, always(problem), seed == 100)
    for seed in range(200, 200 + instances):
        problem = wide_world(seed)[0]
        yield Case(f"200 changes of 60 attributes, goal {seed}", problem, always(problem), seed == 200)
    tree = TechTree(10)
    for item in TECH_ITEMS:
        first = item == TECH_ITEMS[0]
        yield Case(f"tech tree, item of level {tree.level[item]}", tree.problem(item), tree.feasible, first)
    for name, goal in LEARNT.items():
        agent = saplan.load(name)
        start = np.asarray(agent.game.attributes(jax.jit(agent.game.reset)(jax.random.key(7))))
        model = learnt_model(agent, start, saplan.parse_goal(agent.game.space, goal))
        yield Case(f"{name} as the shipped agent has learnt it", model.problem, model.feasible, True)


def measure_ours(case: Case, repetitions: int) -> dict[str, Any]:
    """Cost, lower bound and seconds of our plan, checked change by change."""
    seconds, used = [], []
    for _ in range(repetitions + 1):
        begin, cpu = time.perf_counter(), time.process_time()
        plan = find_plan(case.problem, case.feasible, nodes=NODES)
        seconds.append(time.perf_counter() - begin)
        used.append(time.process_time() - cpu)
    if plan.found:
        check_path(case, plan)
    return {
        "status": plan.status.name, "cost": plan.cost, "bound": plan.bound, "changes": len(plan.transitions),
        "first": seconds[0], "seconds": seconds[1:], "median": statistics.median(seconds[1:]),
        "cpu_median": statistics.median(used[1:]),
    }  # fmt: skip


def check_path(case: Case, plan: AlgebraicPlan) -> None:
    """Stop unless every change is feasible where it is made, adds what it says, and the last one reaches the goal."""
    problem, made = case.problem, plan.transitions
    follows = np.allclose(problem.repeat(plan.rho[:-1], made), plan.rho[1:], atol=1e-4)
    feasible = bool(np.all(np.asarray(case.feasible(plan.rho[:-1]))[np.arange(len(made)), made] >= 0.5))
    if not (follows and feasible and problem.inside(plan.rho).all() and problem.reached(plan.rho[-1:])[0]):
        raise SystemExit(f"{case.world}: the plan does not hold")


def data_of(solved: Solved) -> dict[str, Any]:
    """The answer of ENHSP for the result file."""
    return {"status": solved.status, "cost": solved.cost, "seconds": solved.seconds,
            "search_seconds": solved.search_seconds, "read_seconds": solved.read_seconds,
            "cpu_seconds": solved.cpu_seconds}  # fmt: skip


def compare(case: Case, repetitions: int, limit: float) -> dict[str, Any]:
    """One problem by both planners."""
    ours = measure_ours(case, repetitions)
    fast = data_of(solve_with_enhsp(case.problem, limit=limit))
    best = data_of(solve_with_enhsp(case.problem, OPTIMAL, limit)) if case.first else None
    known = [answer["cost"] for answer in (ours, fast, best) if answer is not None and answer["cost"] is not None]
    progress(
        f"{case.world}: ours {ours['cost']:g} in {ours['median']:.3f} s ({ours['status']}), "
        f"ENHSP {fast['cost']} in {fast['seconds']:.2f} s, optimal {None if best is None else best['cost']}"
    )
    shape = {"changes": len(case.problem.costs), "attributes": case.problem.space.size}
    return {"world": case.world, **shape, "best_known": min(known), "ours": ours, "satisficing": fast, "optimal": best}


def measure_tech_tree(seed: int) -> dict[str, Any]:
    """Every item of a tech tree, from nothing."""
    tree = TechTree(seed)
    seconds, plans = [], []
    for item in range(len(tree.level)):
        begin = time.perf_counter()
        plans.append(find_plan(tree.problem(item), tree.feasible))
        seconds.append(time.perf_counter() - begin)
        check_path(Case(f"item {item} of tree {seed}", tree.problem(item), tree.feasible, False), plans[-1])
    found = [plan for plan in plans if plan.found]
    return {
        "seed": seed, "items": len(plans), "found": len(found), "longest": max(plan.cost for plan in found),
        "optimal": sum(plan.status is Status.OPTIMAL for plan in plans),
        "worst_ratio": max(plan.cost / plan.bound for plan in found),
        "median_seconds": statistics.median(seconds), "slowest_seconds": max(seconds),
    }  # fmt: skip


def random_problems(number: int) -> dict[str, int]:
    """Random small problems: our answers against brute force, and certificates against the checker."""
    found: Counter[str] = Counter()
    for seed in range(number):
        world = SmallProblem(seed)
        plan, best = find_plan(world.problem, world.feasible, nodes=NODES), world.cheapest()
        certificate = find_certificate(world.problem)
        certified = certificate is not None and check(world.problem, certificate)
        # Without a cap brute force looks at a part of the world, and may miss a path.
        worse = plan.status is Status.OPTIMAL and (
            plan.cost > best + 1e-6 or (world.capped and plan.cost < best - 1e-6)
        )
        wrong = (plan.status is Status.INFEASIBLE or certified) and best < np.inf
        found["optimal"] += plan.status is Status.OPTIMAL
        found["infeasible"] += plan.status is Status.INFEASIBLE
        found["open"] += plan.status in (Status.BOUND, Status.FEASIBLE)
        found["contradicted"] += bool(worse or wrong or plan.bound > best + 1e-6)
        found["certificates"] += certified
    return {"problems": number, **found}


def main() -> None:
    """Compare on all problems and print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=5, help="plans of ours per problem")
    parser.add_argument("--instances", type=int, default=2, help="problems per world")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one call of ENHSP")
    parser.add_argument("--trees", type=int, default=5, help="tech trees of which every item is planned")
    parser.add_argument("--problems", type=int, default=2000, help="random problems against brute force")
    options = parser.parse_args()
    if (reason := missing()) is not None:
        raise SystemExit(reason)

    facts = setting()
    print(describe(facts), flush=True)
    chosen = {name: value for name, value in vars(options).items() if name != "json"}
    result: dict[str, Any] = {"setting": facts, "options": chosen, "entries": []}
    result["tech_trees"] = [measure_tech_tree(seed) for seed in range(20, 20 + options.trees)]
    result["random_problems"] = random_problems(options.problems)
    for case in cases(options.instances):
        result["entries"].append(compare(case, options.repetitions, options.limit))
        write_result(options.json, result)  # a run takes a quarter of an hour
    rows = [
        (entry["world"], entry["ours"]["status"], f"{entry['ours']['cost'] / entry['best_known']:.3f}",
         f"{1000 * entry['ours']['median']:.1f} ms", f"{entry['satisficing']['seconds']:.2f} s",
         f"{entry['satisficing']['seconds'] / entry['ours']['median']:.0f}×",
         str(entry["satisficing"]["search_seconds"]))
        for entry in result["entries"]
    ]  # fmt: skip
    print(text_table(("world", "status", "by best known", "ours", "ENHSP", "ratio", "its search, s"), rows))
    print(result["tech_trees"], result["random_problems"], sep="\n")


if __name__ == "__main__":
    main()
