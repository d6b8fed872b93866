"""Tells people of a plan and how it went: the map, the path, then attempt by attempt."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from saplan.envs.text import strong, write
from saplan.experiments.evaluate import Walker
from saplan.goals import Goal, format_goal
from saplan.model.agent import IMPROVED, Agent
from saplan.planning import Outcome, Plan


def narrate(agent: Agent, goal_text: str, seed: int, budget: int, colour: bool) -> Iterator[str]:
    """Paragraphs: the map and the goal, the plan with the probability of every edge, every attempt, the end."""
    space, goal, state = agent.game.space, agent.goal(goal_text), _map(agent, seed)
    yield write(agent.game.scene(state), colour)
    yield f"\nnow   {_text(agent, agent.game.attributes(state))}\ngoal  {format_goal(space, goal)}"
    plan = agent.plan(state, goal)
    yield "\n" + strong(f"Plan: {plan.outcome.value}", colour)
    for number, (transition, rho, (chance, steps)) in enumerate(_edges(agent, plan), start=1):
        change = space.format_delta(np.asarray(agent.memory.delta[transition]))
        yield f"  {number:2d}. {change:<32} → {_text(agent, rho)}   p = {chance:.2f}, about {steps:.0f} steps"

    yield "\n" + strong("Carrying it out", colour)
    walker = _walker(agent, state, goal)
    told, steps = 0, 0
    for _ in walker.moves(budget, seed):
        steps += 1
        for attempt in walker.walked.attempts[told:]:
            change = space.format_delta(np.asarray(agent.memory.delta[attempt.transition]))
            end = "done" if attempt.success else "FAILED, planning anew"
            now = _text(agent, walker.rho[0])
            yield f"  step {steps:3d}: {change:<32} {end} after {attempt.steps:2d} steps   {now}"
        told = len(walker.walked.attempts)
    yield "\n" + write(agent.game.scene(_first(walker.state)), colour)
    yield f"\ngoal reached in {steps} steps" if walker.done[0] else f"\ngoal not reached within {budget} steps"


def tell_json(agent: Agent, goal_text: str, seed: int, budget: int) -> dict[str, Any]:
    """The same as data."""
    space, goal, state = agent.game.space, agent.goal(goal_text), _map(agent, seed)
    named = lambda rho: dict(zip(space.names, map(float, rho), strict=True))  # noqa: E731
    plan = agent.plan(state, goal)
    walker = _walker(agent, state, goal)
    walked = walker.walk(budget, seed)
    return {
        "game": agent.game.name,
        "goal": format_goal(space, goal),
        "start": named(np.asarray(agent.game.attributes(state))),
        "outcome": plan.outcome.name.lower(),
        "path": [
            {
                "transition": space.format_delta(np.asarray(agent.memory.delta[transition])),
                "rho": named(rho),
                "probability": chance,
                "steps": steps,
            }
            for transition, rho, (chance, steps) in _edges(agent, plan)
        ],
        "attempts": [
            {
                "transition": space.format_delta(np.asarray(agent.memory.delta[attempt.transition])),
                "success": attempt.success,
                "steps": attempt.steps,
            }
            for attempt in walked.attempts
        ],
        "success": bool(walked.success[0]),
        "steps": int(walked.steps[0]),
    }


def _edges(agent: Agent, plan: Plan) -> Iterator[tuple[int, tuple[float, ...], tuple[float, float]]]:
    if plan.outcome is Outcome.FOUND:
        yield from zip(plan.transitions, plan.rho[1:], agent.outlook(plan), strict=True)


def _map(agent: Agent, seed: int) -> Any:
    return jax.jit(agent.game.reset)(jax.random.key(seed))


def _walker(agent: Agent, state: Any, goal: Goal) -> Walker:
    one = Goal(np.asarray(goal.low)[None], np.asarray(goal.high)[None])
    return Walker(agent, jax.tree.map(lambda x: x[None], state), one, IMPROVED)


def _first(states: Any) -> Any:
    return jax.tree.map(lambda x: x[0], states)


def _text(agent: Agent, rho: Any) -> str:
    return agent.game.space.format(np.asarray(rho))
