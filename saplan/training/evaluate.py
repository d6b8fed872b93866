"""Success on a fixed set of tasks, and why the others failed."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from saplan.games import Exchange, Game, task_set
from saplan.games.world_errors import readable_errors
from saplan.games.wrapper import GameWrapper
from saplan.goals import Goal
from saplan.methods.agent import DEFAULT_PLANNER, PlannerSettings
from saplan.methods.executor import EvalResult
from saplan.methods.registry import AnyAgent
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.unstructured.agent import UnstructuredAgent


def evaluate(
    agent: AnyAgent,
    tasks: int = 1000,
    task_seed: int = 0,
    budget: int = 150,
    planning: PlannerSettings = DEFAULT_PLANNER,
    seed: int = 0,
) -> EvalResult:
    """Carries out fixed tasks; a task succeeds at the first moment its goal holds, within the budget of steps.

    This is done on the CPU, wherever the agent was trained: a step is a small computation between two searches.
    """
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu), readable_errors(agent.game):
        agent = jax.tree.map(lambda leaf: jax.device_put(leaf, cpu) if eqx.is_array(leaf) else leaf, agent)
        states, goals = _tasks(agent.game, tasks, task_seed)
        return agent.executor(states, goals, planning).run(budget, seed)


@functools.lru_cache(maxsize=2)
def _tasks(game: Game[Any], count: int, seed: int) -> tuple[Any, Goal]:
    """Tasks that the next agent is tried on as well: on exchange they take longer to draw than to carry out."""
    return task_set(game, count, seed)


def success_apart(agent: AnyAgent, result: EvalResult, task_seed: int) -> dict[str, dict[str, float]]:
    """Success on kinds of tasks that a game tells apart: on exchange, goals that need a trade and goals that do not."""
    game = agent.game.game if isinstance(agent.game, GameWrapper) else agent.game
    if not isinstance(game, Exchange):
        return {}
    states, goals = task_set(game, len(result.success), task_seed)
    offers = np.asarray(jax.vmap(game.attributes)(states))[:, : game.kinds]
    trades = np.any(np.asarray(goals.low)[:, game.kinds :] > offers, axis=1)
    kinds = {"needs a trade": trades, "needs no trade": ~trades}
    return {
        name: {"tasks": int(mask.sum()), "success": float(result.success[mask].mean())}
        for name, mask in kinds.items()
        if mask.any()
    }


def causes_of_failure(agent: AnyAgent, result: EvalResult, budget: int) -> dict[str, int]:
    """Counts the failed tasks by what went wrong most.

    A task that lost a fifth of its budget or more in failed attempts failed by them: by *navigation* if most of that
    was spent on transitions that were possible, else because the method's model was wrong, which is the *edge detector*
    or the *table* of transitions. Any other is *out of steps*. Methods without a model of transitions have no attempts.
    """
    models = {StructuredAgent: "edge detector", UnstructuredAgent: "table"}
    model = next((name for kind, name in models.items() if isinstance(agent, kind)), None)
    lost = ~result.success
    if model is None:
        return {"out of steps": int(lost.sum())}
    wasted = np.zeros((len(result.success), 2))
    failed = [attempt for attempt in result.attempts if not attempt.success]
    if failed:
        rho = jnp.array([attempt.rho for attempt in failed])
        delta = jnp.array([attempt.delta for attempt in failed])
        possible = np.asarray(jax.vmap(agent.perceived.feasible)(rho, delta)) > 0
        for attempt, could in zip(failed, possible, strict=True):
            wasted[attempt.task, int(could)] += attempt.steps
    by_attempts = lost & (wasted.sum(axis=1) >= budget / 5)
    navigation = by_attempts & (wasted[:, 1] >= wasted[:, 0])
    return {
        "navigation": int(navigation.sum()),
        f"{model} wrong": int((by_attempts & ~navigation).sum()),
        "out of steps": int((lost & ~by_attempts).sum()),
    }
