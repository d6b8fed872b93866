"""The data and the text of `saplan evaluate`."""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from saplan.experiments.paper import paper_success
from saplan.experiments.statistics import encode_successes, wilson
from saplan.games import GAMES, Game
from saplan.methods.agent import PlannerSettings
from saplan.training.evaluate import causes_of_failure, evaluate, success_by_group
from saplan.training.progress import waiting
from saplan.training.provenance import code, versions
from saplan.training.store import ORACLE, open_agent
from saplan.training.transfer import BUDGET, scaled_budget


def evaluation_data(
    run: str,
    tasks: int,
    task_seed: int,
    budget: int | None,
    planning: PlannerSettings,
    method: str | None = None,
    rules: Sequence[str] = (),
    world: Game[Any] | None = None,
) -> dict[str, Any]:
    """Evaluates an agent and returns the result as plain data.

    Without a budget it is the paper's, under other `rules` scaled with the oracle's need.
    """
    agent, config, about = open_agent(run, method, rules, world)
    if budget is None:
        usual = GAMES[run]() if config is None else config.game
        budget = scaled_budget(agent.game, usual) if rules else BUDGET
    trained = about.get("steps_trained") if isinstance(about, dict) else None
    if not isinstance(trained, int):
        trained = 0 if config is None else config.steps
    began = time.monotonic()
    with waiting(f"evaluating {tasks} tasks") as say:
        show = lambda step, done: say(f"step {step} of {budget}, {done} of {tasks} tasks solved")  # noqa: E731
        result = evaluate(agent, tasks, task_seed, budget, planning, show=show)
    hits = [attempt for attempt in result.attempts if attempt.success]
    return {
        "game": agent.game.name,
        "rules": list(rules),
        "method": ORACLE if config is None else config.method,
        "success": float(result.success.mean()),
        "interval": list(wilson(int(result.success.sum()), tasks)),
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
        "apart": success_by_group(agent, result, task_seed),
        "seconds": time.monotonic() - began,
        "successes": encode_successes(result.success),
        "planning": dataclasses.asdict(planning),
        "code": code(),
        "versions": versions(),
    }


def evaluation_text(result: dict[str, Any]) -> str:
    """The same for people."""
    low, high = result["interval"]
    trained = f"trained {result['steps_trained'] / 1e6:g} M steps (seed {result['seed']})"
    if result["seed"] is None:
        trained = "not trained: it knows the rules and sees the whole map"
    lines = [
        f"{result['game']}, {result['method']}, {trained}",
        f"success {result['success']:.1%}  (95 % interval {low:.1%} to {high:.1%}; {result['tasks']} tasks of seed "
        f"{result['task_seed']}, {result['budget']} steps each)",
    ]
    if result["rules"]:
        lines.insert(1, f"under other rules: {' '.join(result['rules'])}")
    paper = paper_success(result["game"], result["method"])
    if paper is not None and not result["rules"]:
        lines.append(f"the paper's figure: {paper:.1%}")
    if result["mean_steps"] is not None and result["steps_per_transition"] is not None:
        lines.append(
            f"{result['mean_steps']:.1f} steps per success, {result['attempts_per_task']:.1f} attempts per task, "
            f"{result['attempt_success']:.1%} of them successful in {result['steps_per_transition']:.1f} steps"
        )
    lines.append("failed tasks by cause: " + ", ".join(f"{n} {cause}" for cause, n in result["failures"].items()))
    lines += [f"{name}: {part['success']:.1%} of {part['tasks']}" for name, part in result["apart"].items()]
    return "\n".join(lines)
