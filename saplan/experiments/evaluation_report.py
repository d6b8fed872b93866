"""What an evaluation says, and whether an installation is sound."""

import dataclasses
import importlib.metadata
import platform
import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from saplan.errors import InputError
from saplan.experiments.statistics import to_text, wilson
from saplan.games import GAMES
from saplan.methods.agent import PlannerSettings
from saplan.training.evaluate import causes_of_failure, evaluate, success_apart
from saplan.training.provenance import code, versions
from saplan.training.store import ORACLE, find_agent, load_agent, open_agent

PAPER = {
    "structured": {"switches": 0.893, "exchange": 0.93, "mining": 0.816},
    "unstructured": {"switches": 0.096, "exchange": 0.88, "mining": 0.208},
    "curriculum": {"switches": 0.136, "exchange": 0.14, "mining": 0.002},
}
"""The paper's Table 1."""


WELL = "all is well"


def summarise(
    run: str, tasks: int, task_seed: int, budget: int, planning: PlannerSettings, method: str | None = None
) -> dict[str, Any]:
    """Evaluates an agent and gathers what there is to say of it."""
    agent, config, about = open_agent(run, method)
    trained = about.get("steps_trained") if isinstance(about, dict) else None
    if not isinstance(trained, int):
        trained = 0 if config is None else config.steps
    began = time.monotonic()
    result = evaluate(agent, tasks, task_seed, budget, planning)
    hits = [attempt for attempt in result.attempts if attempt.success]
    low, high = wilson(int(result.success.sum()), tasks)
    return {
        "game": agent.game.name,
        "method": ORACLE if config is None else config.method,
        "success": float(result.success.mean()),
        "interval": [low, high],
        "tasks": tasks,
        "task_seed": task_seed,
        "budget": budget,
        "steps_trained": trained,
        "seed": None if config is None else config.seed,
        "mean_steps": float(result.steps[result.success].mean()) if result.success.any() else None,
        "attempts_per_task": len(result.attempts) / tasks,
        "attempt_success": len(hits) / len(result.attempts) if result.attempts else None,
        "steps_per_transition": float(np.mean([a.steps for a in hits])) if hits else None,
        "failures": causes_of_failure(agent, result, budget),
        "apart": success_apart(agent, result, task_seed),
        "seconds": time.monotonic() - began,
        "successes": to_text(result.success),
        "planning": dataclasses.asdict(planning),
        "code": code(),
        "versions": versions(),
    }


def evaluation_text(result: dict[str, Any]) -> str:
    """The summary for people."""
    low, high = result["interval"]
    trained = f"trained {result['steps_trained'] / 1e6:g} M steps (seed {result['seed']})"
    if result["seed"] is None:
        trained = "which needs no training: it knows the rules and sees the map"
    lines = [
        f"{result['game']}, {result['method']}, {trained}",
        f"success {result['success']:.1%}  (95 % interval {low:.1%} to {high:.1%}; {result['tasks']} tasks of seed "
        f"{result['task_seed']}, {result['budget']} steps each)",
    ]
    paper = PAPER.get(result["method"], {}).get(result["game"])
    if paper is not None:
        lines.append(f"the paper's figure: {paper:.1%}")
    if result["mean_steps"] is not None and result["steps_per_transition"] is not None:
        lines.append(
            f"{result['mean_steps']:.1f} steps per success, {result['attempts_per_task']:.1f} attempts per task, "
            f"{result['attempt_success']:.1%} of them successful in {result['steps_per_transition']:.1f} steps"
        )
    causes = ", ".join(f"{count} {cause}" for cause, count in result["failures"].items())
    lines.append(f"failed tasks by cause: {causes}")
    for name, part in result["apart"].items():
        lines.append(f"{name}: {part['success']:.1%} of {part['tasks']}")
    return "\n".join(lines)


def examine() -> Iterator[str]:
    """Lines of a health check, the last of which says whether all is well."""
    yield f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    for name in ("saplan", "jax", "equinox", "optax", "numpy", "scipy", "gymnasium"):
        yield f"{name} {_version(name)}"
    yield "devices: " + ", ".join(str(device) for device in jax.devices())
    ills = 0
    for name, game in GAMES.items():
        began = time.monotonic()
        state = jax.jit(game().reset)(jax.random.key(0))
        inside = bool(game().space.contains(game().attributes(state)))
        ills += not inside
        yield f"game {name}: {'plays' if inside else 'BROKEN'} ({time.monotonic() - began:.1f} s)"
        try:
            _, config = load_agent(find_agent(name))
            yield f"agent {name}: sound, trained {config.steps / 1e6:g} M steps with seed {config.seed}"
        except InputError as error:
            ills += 1
            yield f"agent {name}: {error}"
    yield WELL if not ills else f"{ills} thing(s) are not well"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
