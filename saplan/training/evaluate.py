"""Success on a fixed set of tasks, and the causes of failure."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from saplan.games.game import Game, State, task_set
from saplan.games.world_errors import readable_errors
from saplan.goals import Goal
from saplan.methods.agent import DEFAULT_PLANNER, Agent, PlannerSettings
from saplan.methods.executor import EvalResult


def evaluate(
    agent: Agent,
    tasks: int = 1000,
    task_seed: int = 0,
    budget: int = 150,
    planning: PlannerSettings = DEFAULT_PLANNER,
    seed: int = 0,
    show: Callable[[int, int], None] | None = None,
) -> EvalResult:
    """Carry out fixed tasks; a task succeeds when its goal first holds, within the budget of steps.

    `show` is called after every step with the steps taken and the tasks solved so far. Evaluation runs on the CPU, even
    for an agent trained elsewhere: a step is a small computation between searches.
    """
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu), readable_errors(agent.game):
        # By way of NumPy: arrays put on a named device are committed to it, and every program that first meets the
        # tasks' states, which are not, would be compiled a second time.
        agent = jax.tree.map(lambda leaf: jax.device_put(np.asarray(leaf)) if eqx.is_array(leaf) else leaf, agent)
        states, goals = _tasks(agent.game, tasks, task_seed)
        return agent.executor(states, goals, planning).run(budget, seed, show)


@functools.lru_cache(maxsize=2)
def _tasks(game: Game[State], count: int, seed: int) -> tuple[State, Goal]:
    """Tasks, kept for the next agent: on exchange they take longer to draw than to carry out."""
    return task_set(game, count, seed)


def success_by_group(agent: Agent, result: EvalResult, task_seed: int) -> dict[str, dict[str, float]]:
    """Number of tasks and success in each of the groups that the game divides its tasks into, if it does."""
    groups = agent.game.task_groups(*_tasks(agent.game, len(result.success), task_seed))
    return {
        name: {"tasks": int(members.sum()), "success": float(result.success[members].mean())}
        for name, members in groups.items()
        if members.any()
    }


def causes_of_failure(agent: Agent, result: EvalResult, budget: int) -> dict[str, int]:
    """Number of failed tasks per main cause.

    A task that spent a fifth of its budget or more on failed attempts failed because of them: because of *navigation*
    if most of that was spent on feasible transitions, else because the agent's model of transitions was wrong. Any
    other task ran *out of steps*. Agents without a model of transitions make no attempts.
    """
    lost = ~result.success
    if agent.transition_model is None:
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
        f"{agent.transition_model} wrong": int((by_attempts & ~navigation).sum()),
        "out of steps": int((lost & ~by_attempts).sum()),
    }
