"""`saplan evaluate` and `saplan plan`."""

from dataclasses import dataclass, replace
from typing import Any

from saplan.cli.options import check_number, in_colour, read_options, take_run, use_one_core
from saplan.cli.worlds import named_world
from saplan.errors import InputError, NoPathError


@dataclass(frozen=True)
class Evaluate:
    """Success of a trained agent on fixed tasks. RUN is a run directory, or a game's name for the shipped agent."""

    tasks: int = 1000
    """Number of tasks."""
    task_seed: int = 0
    """Seed of the tasks, which are the same for every agent."""
    budget: int | None = None
    """Steps allowed per task: 150 unless given, and under other rules as many times more as the oracle needs more."""
    method: str | None = None
    """Require this method; `oracle` needs a game instead of a run: it knows the rules and sees the whole map."""
    paper: bool = False
    """Plan as the paper does: the most likely path by the detector's single probability."""
    rules: tuple[str, ...] = ()
    """Other rules than those of the training, such as fewest=6 most=8 maps.largest=20."""
    visited_only: bool = False
    """Refuse plans through values that training never met."""
    world: str | None = None
    """The world of a run that is not in one of our games, as `my_world.py:name`; the file is run."""
    json: bool = False
    """Print the result as JSON instead of text."""


def evaluate_command(arguments: list[str]) -> None:
    """`saplan evaluate RUN`."""
    run, rest = take_run("evaluate", arguments)
    options = read_options(Evaluate, "evaluate RUN", rest)
    check_number("--task-seed", options.task_seed)
    for option, value in (("--tasks", options.tasks), ("--budget", options.budget)):
        if value is not None and not 1 <= value <= 100_000:
            raise InputError(f"{option} must lie in 1..100000, got {value}")

    from saplan.experiments.evaluation_report import evaluation_data, evaluation_text
    from saplan.training.program_cache import keep_programs

    keep_programs()
    planning, world = _planner(options), named_world(options.world)
    amounts = options.tasks, options.task_seed, options.budget
    result = evaluation_data(run, *amounts, planning, options.method, options.rules, world)
    if options.json:
        _print_json(result)
    else:
        print(evaluation_text(result))


@dataclass(frozen=True)
class PlanOptions:
    """Plan a path of attributes to a goal and execute it. RUN is a run directory, or a game's name.

    If there is no path, the agent does not act, and the exit code is 4.
    """

    goal: str
    """The goal, such as "red=2 blue=1", "m1=5.2±0.5" or "red>=2"; attributes not named are free."""
    seed: int = 0
    """Seed of the map."""
    budget: int = 150
    """Steps allowed."""
    method: str | None = None
    """Require this method; `oracle` needs a game instead of a run: it knows the rules and sees the whole map."""
    paper: bool = False
    """Plan as the paper does: the most likely path by the detector's single probability."""
    anyway: bool = False
    """Act even if no path is known: the agent then tries random transitions."""
    rules: tuple[str, ...] = ()
    """Other rules than those of the training, such as fewest=6 most=8 maps.largest=20."""
    visited_only: bool = False
    """Refuse plans through values that training never met."""
    world: str | None = None
    """The world of a run that is not in one of our games, as `my_world.py:name`; the file is run."""
    json: bool = False
    """Print the result as JSON instead of text."""


def plan_command(arguments: list[str]) -> None:
    """`saplan plan RUN --goal TEXT`."""
    run, rest = take_run("plan", arguments)
    options = read_options(PlanOptions, "plan RUN", rest)
    check_number("--seed", options.seed)
    if not 0 <= options.budget <= 100_000:
        raise InputError(f"--budget must lie in 0..100000, got {options.budget}")

    use_one_core()

    from saplan.interpreter.program import without_compiling
    from saplan.render.narrate import narrate, tell_json
    from saplan.training.progress import patiently, waiting
    from saplan.training.store import open_agent

    agent = open_agent(run, options.method, options.rules, named_world(options.world))[0]
    task, planning = (options.goal, options.seed, options.budget), _planner(options)
    with without_compiling():
        if not options.json:
            story = narrate(agent, *task, in_colour(), planning, options.anyway)
            for text in patiently(story, "planning"):
                print(text, flush=True)
            return
        with waiting("planning and acting"):
            told = tell_json(agent, *task, planning, options.anyway)
    _print_json(told)
    if told["reason"] is not None and not options.anyway:
        raise NoPathError(f"no plan: {told['reason']}; nothing was done")


def _planner(options: Evaluate | PlanOptions) -> Any:
    from saplan.methods.agent import DEFAULT_PLANNER, PAPER_PLANNER

    planner = PAPER_PLANNER if options.paper else DEFAULT_PLANNER
    return replace(planner, beyond=planner.beyond and not options.visited_only)


def _print_json(data: Any) -> None:
    import json

    print(json.dumps(data, indent=2, ensure_ascii=False))
