"""`saplan evaluate`, `saplan plan` and `saplan doctor`."""

from dataclasses import dataclass

from saplan.cli.options import check_number, in_colour, read, take_run
from saplan.errors import InputError, NoPathError


@dataclass(frozen=True)
class Evaluate:
    """Success of a trained agent on fixed tasks. RUN is a run directory, or a game's name for the shipped agent."""

    tasks: int = 1000
    """Number of tasks."""
    task_seed: int = 0
    """Which tasks: the same for every agent."""
    budget: int = 150
    """Steps allowed per task."""
    method: str | None = None
    """Insist on a method; `oracle` needs a game and no run: it knows the rules and sees the map."""
    paper: bool = False
    """Plan as the paper does: the likeliest path by the one probability its detector gives."""
    json: bool = False
    """Print JSON."""


def evaluate(arguments: list[str]) -> None:
    """`saplan evaluate RUN`."""
    run, rest = take_run("evaluate", arguments)
    options = read(Evaluate, "evaluate RUN", rest)
    check_number("--task-seed", options.task_seed)
    for option, value in (("--tasks", options.tasks), ("--budget", options.budget)):
        if not 1 <= value <= 100_000:
            raise InputError(f"{option} must lie in 1..100000, got {value}")

    import json

    from saplan.experiments.evaluation_report import evaluation_text, summarise
    from saplan.methods.agent import DEFAULT_PLANNER, PAPER_PLANNER

    planning = PAPER_PLANNER if options.paper else DEFAULT_PLANNER
    result = summarise(run, options.tasks, options.task_seed, options.budget, planning, options.method)
    print(json.dumps(result, indent=2, ensure_ascii=False) if options.json else evaluation_text(result))


@dataclass(frozen=True)
class PlanOptions:
    """Plan a path of attributes to a goal, and walk it. RUN is a run directory, or a game's name.

    Without a path nothing is done, and the exit code is 4.
    """

    goal: str
    """What to reach, as "red=2 blue=1", "m1=5.2±0.5" or "red>=2"; attributes not named are free."""
    seed: int = 0
    """Which map."""
    budget: int = 150
    """Steps allowed."""
    method: str | None = None
    """Insist on a method; `oracle` needs a game and no run: it knows the rules and sees the map."""
    paper: bool = False
    """Plan as the paper does: the likeliest path by the one probability its detector gives."""
    anyway: bool = False
    """Act also where no path is known: the agent then tries changes at random."""
    json: bool = False
    """Print JSON."""


def plan(arguments: list[str]) -> None:
    """`saplan plan RUN --goal TEXT`."""
    run, rest = take_run("plan", arguments)
    options = read(PlanOptions, "plan RUN", rest)
    check_number("--seed", options.seed)
    if not 0 <= options.budget <= 100_000:
        raise InputError(f"--budget must lie in 0..100000, got {options.budget}")

    import json

    from saplan.methods.agent import DEFAULT_PLANNER, PAPER_PLANNER
    from saplan.render.narrate import narrate, tell_json
    from saplan.training.store import open_agent

    agent, planning = open_agent(run, options.method)[0], PAPER_PLANNER if options.paper else DEFAULT_PLANNER
    if options.json:
        told = tell_json(agent, options.goal, options.seed, options.budget, planning, options.anyway)
        print(json.dumps(told, indent=2, ensure_ascii=False))
        if told["reason"] is not None and not options.anyway:
            raise NoPathError(f"no plan: {told['reason']}; nothing was done")
    else:
        for text in narrate(agent, options.goal, options.seed, options.budget, in_colour(), planning, options.anyway):
            print(text, flush=True)


@dataclass(frozen=True)
class Doctor:
    """Check that this installation works: versions, devices, games, shipped agents."""


def doctor(arguments: list[str]) -> None:
    """`saplan doctor`."""
    read(Doctor, "doctor", arguments)

    from saplan.experiments.evaluation_report import WELL, examine

    line = ""
    for line in examine():
        print(line, flush=True)
    if line != WELL:
        raise SystemExit(1)
