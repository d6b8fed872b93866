"""ENHSP through unified-planning, on problems that `saplan.planning.pddl` writes; needs the extra `peers` and Java."""

import io
import re
import resource
import shutil
import tempfile
import time
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from saplan.planning.pddl import follow, read_actions, write_domain, write_problem
from saplan.planning.problem import Problem

PACKAGES = ("unified-planning", "up-enhsp")
SEARCH = re.compile(r"Search Time \(msec\): (\d+)")
SATISFICING, OPTIMAL = "enhsp", "enhsp-opt"


@dataclass(frozen=True)
class Solved:
    """What ENHSP answered."""

    status: str
    transitions: np.ndarray | None
    """The changes of its plan, checked to lead to the goal; None without a plan."""
    cost: float | None
    read_seconds: float
    """Reading the PDDL files."""
    seconds: float
    """The call of the planner, Java's start included, without reading the files."""
    search_seconds: float | None
    """Its own report of the search alone."""
    cpu_seconds: float
    """Processor time of Java, which does not depend on what else the machine does."""


def missing() -> str | None:
    """What is missing to run ENHSP, in words; None if nothing is."""
    if any(find_spec(package.replace("-", "_")) is None for package in PACKAGES):
        return "unified-planning and up-enhsp are missing: pip install -e '.[peers]'"
    return None if shutil.which("java") else "Java 17 or newer is missing"


def solve_with_enhsp(problem: Problem, engine: str = SATISFICING, limit: float = 60.0) -> Solved:
    """The answer of ENHSP to a problem, written as PDDL and read by unified-planning."""
    from unified_planning.io import PDDLReader
    from unified_planning.shortcuts import OneshotPlanner, get_environment

    get_environment().credits_stream = None
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether the optimal engine can solve conditional effects is not established
        domain, task = Path(directory) / "domain.pddl", Path(directory) / "problem.pddl"
        domain.write_text(write_domain(problem, "world"), encoding="utf-8")
        task.write_text(write_problem(problem, "world"), encoding="utf-8")
        begin = time.perf_counter()
        read = PDDLReader().parse_problem(str(domain), str(task))
        after_reading = time.perf_counter()
        log, used = io.StringIO(), children_seconds()
        with OneshotPlanner(name=engine) as planner:
            result = planner.solve(read, timeout=limit, output_stream=log)
        seconds = time.perf_counter() - after_reading
    said = log.getvalue() + "".join(message.message for message in result.log_messages or [])
    found = SEARCH.search(said)
    transitions = None if result.plan is None else read_actions(str(a.action.name) for a in result.plan.actions)
    cost = None if transitions is None else valid_cost(problem, transitions)
    search = int(found[1]) / 1000 if found else None
    cpu = children_seconds() - used
    return Solved(result.status.name, transitions, cost, after_reading - begin, seconds, search, cpu)


def children_seconds() -> float:
    """Processor time of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def valid_cost(problem: Problem, transitions: np.ndarray) -> float:
    """The cost of a plan whose every change is possible by the problem's needs and space; an error if one is not."""
    path = follow(problem, transitions)
    if not problem.inside(path).all() or not problem.reached(path[-1:])[0]:
        raise SystemExit("the plan leaves the space or misses the goal")
    if problem.needs is not None and not problem.needs.hold(path[:-1])[np.arange(len(transitions)), transitions].all():
        raise SystemExit("the plan makes a change whose needs do not hold")
    return float(np.sum(problem.costs[transitions]))
