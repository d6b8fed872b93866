"""`saplan export`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saplan.cli.options import check_number, read_options, take_run
from saplan.errors import InputError


@dataclass(frozen=True)
class Export:
    """Write the model that an agent has learnt, for other programs. RUN is a run directory, or a game's name.

    Without --out one format goes to standard output, and no file is written.
    """

    pddl: bool = False
    """Numeric PDDL: domain.pddl, and with a goal problem.pddl."""
    dot: bool = False
    """A graph of the changes: what each one uses, makes and needs (changes.dot)."""
    json: bool = False
    """The plan to the goal (plan.json)."""
    goal: str = ""
    """The goal, such as "red=2 blue=1", "m1=5.2±0.5" or "red>=2"; attributes not named are free."""
    seed: int = 0
    """Seed of the map that gives the start."""
    start: str = ""
    """Attributes of the start, such as "red=1 switch=0"; others are those of the map."""
    world: str = ""
    """The world of a run that is not one of our games: a Python file that defines it, as for `saplan check`."""
    out: Path | None = None
    """The directory to write into; it is created if it does not exist."""


def export_command(arguments: list[str]) -> None:
    """`saplan export RUN`."""
    run, rest = take_run("export", arguments)
    options = read_options(Export, "export RUN", rest)
    check_number("--seed", options.seed)
    chosen = [name for name in ("pddl", "dot", "json") if getattr(options, name)]
    if not chosen:
        raise InputError("say what to write: --pddl, --dot or --json")
    if options.json and not options.goal:
        raise InputError('a plan needs a goal, as in --goal "red=1"')
    if options.out is None and len(chosen) > 1:
        raise InputError("several formats need a directory: --out DIR")

    files, summary = _texts(run, options)
    print("\n".join(summary), file=sys.stderr if options.out is None else sys.stdout, flush=True)
    if options.out is None:
        print("\n".join(files.values()), end="")
        return

    from saplan.storage.files import make_directory, replace_file

    make_directory(options.out)
    for name, text in files.items():
        replace_file(options.out / name, text.encode())
        print(options.out / name)


def _texts(run: str, options: Export) -> tuple[dict[str, str], list[str]]:
    """The text of every file that was asked for, and sentences about the model."""
    import json

    from saplan.goals import parse_goal
    from saplan.methods.structured.learnt_model import learnt_model, plan_data
    from saplan.planning.dot import write_dot
    from saplan.planning.pddl import write_domain, write_problem

    agent = _agent(run, options.world)
    space = agent.game.space
    goal = parse_goal(space, options.goal) if options.goal else None
    model = learnt_model(agent, _start(agent, options), goal)
    name, about, files = agent.game.name, model.summary(), {}
    if options.pddl:
        files["domain.pddl"] = write_domain(model.problem, name, about, model.notes())
        if goal is not None:
            words = [f"start {space.format(model.problem.start)}", f"goal {options.goal}"]
            files["problem.pddl"] = write_problem(model.problem, name, words)
    if options.dot:
        files["changes.dot"] = write_dot(model.problem, name)
    if options.json:
        files["plan.json"] = json.dumps(plan_data(model), indent=2, ensure_ascii=False) + "\n"
    return files, about


def _agent(run: str, world: str) -> Any:
    from saplan.training.store import load, open_agent

    if not world:
        return open_agent(run)[0]

    from saplan.cli.worlds import load_world

    return load(run, load_world(world))


def _start(agent: Any, options: Export) -> Any:
    """ρ of the map of the seed, with the attributes that `--start` names replaced."""
    import jax
    import numpy as np

    space = agent.game.space
    state = jax.jit(agent.game.reset)(jax.random.key(options.seed))
    rho = np.asarray(agent.game.attributes(state), float)
    named = {word.partition("=")[0] for word in options.start.replace(",", " ").split()}
    rest = [word for word, name in zip(space.format(rho).split(), space.names, strict=True) if name not in named]
    given = np.array(space.parse(" ".join([options.start, *rest])))
    return np.where([name in named for name in space.names], given, rho)
