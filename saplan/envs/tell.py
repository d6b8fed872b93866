"""Tells people of a plan and how it went: the map, the path, then attempt by attempt."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from saplan.baselines.methods import AnyAgent
from saplan.envs.text import strong, write
from saplan.goals import Goal, format_goal, parse_goal
from saplan.model.agent import Agent
from saplan.model.walk import IMPROVED, Planning, Walker
from saplan.planning import Outcome, Plan


def narrate(
    agent: AnyAgent, goal_text: str, seed: int, budget: int, colour: bool, planning: Planning = IMPROVED
) -> Iterator[str]:
    """Paragraphs: the map and the goal, the plan with the probability of every edge, every attempt, the end."""
    space, goal, state = agent.game.space, parse_goal(agent.game.space, goal_text), _map(agent, seed)
    yield write(agent.game.scene(state), colour)
    yield f"\nnow   {_text(agent, agent.game.attributes(state))}\ngoal  {format_goal(space, goal)}"
    plan = _plan(agent, state, goal, planning)
    found = "No plan: this method walks straight for the goal" if plan is None else f"Plan: {plan.outcome.value}"
    yield "\n" + strong(found, colour)
    if plan is not None and plan.unsure:
        yield f"  made on attributes that are not sure: {', '.join(f'{name} ({p:.0%})' for name, p in plan.unsure)}"
    for number, edge in enumerate(_edges(agent, plan, planning), start=1):
        chance = "" if edge.chance is None else f"   p = {edge.chance:.2f}, about {edge.steps:.0f} steps"
        yield f"  {number:2d}. {edge.change:<32} → {_text(agent, edge.rho)}{chance}"

    yield "\n" + strong("Carrying it out", colour)
    walker = _walker(agent, state, goal, planning)
    told, steps = 0, 0
    for _ in walker.moves(budget, seed):
        steps += 1
        for attempt in walker.walked.attempts[told:]:
            change = agent.seen.space.format_delta(np.array(attempt.delta))
            end = "done" if attempt.success else "FAILED, planning anew"
            now = _text(agent, walker.rho[0])
            yield f"  step {steps:3d}: {change:<32} {end} after {attempt.steps:2d} steps   {now}"
        told = len(walker.walked.attempts)
    yield "\n" + write(agent.game.scene(_first(walker.state)), colour)
    yield f"\ngoal reached in {steps} steps" if walker.done[0] else f"\ngoal not reached within {budget} steps"


def tell_json(agent: AnyAgent, goal_text: str, seed: int, budget: int, planning: Planning = IMPROVED) -> dict[str, Any]:
    """The same as data."""
    space, goal, state = agent.game.space, parse_goal(agent.game.space, goal_text), _map(agent, seed)
    named = lambda rho: dict(zip(space.names, map(float, rho), strict=True))  # noqa: E731
    plan = _plan(agent, state, goal, planning)
    walked = _walker(agent, state, goal, planning).walk(budget, seed)
    return {
        "game": agent.game.name,
        "goal": format_goal(space, goal),
        "start": named(np.asarray(agent.game.attributes(state))),
        "outcome": "none" if plan is None else plan.outcome.name.lower(),
        "unsure": {} if plan is None else dict(plan.unsure),
        "path": [
            {"transition": edge.change, "rho": named(edge.rho), "probability": edge.chance, "steps": edge.steps}
            for edge in _edges(agent, plan, planning)
        ],
        "attempts": [
            {
                "transition": agent.seen.space.format_delta(np.array(attempt.delta)),
                "success": attempt.success,
                "steps": attempt.steps,
            }
            for attempt in walked.attempts
        ],
        "success": bool(walked.success[0]),
        "steps": int(walked.steps[0]),
    }


@dataclass(frozen=True)
class Edge:
    """One transition of a plan, for people."""

    change: str
    rho: tuple[float, ...]
    """Where it leads."""
    chance: float | None
    steps: float | None
    """What is expected of it, where the method knows."""


def _plan(agent: AnyAgent, state: Any, goal: Goal, planning: Planning) -> Plan | None:
    """A path, None by a method that makes none."""
    return agent.plan(state, goal, planning) if hasattr(agent, "plan") else None


def _edges(agent: AnyAgent, plan: Plan | None, planning: Planning) -> Iterator[Edge]:
    if plan is None or plan.outcome is not Outcome.FOUND:
        return
    space, outlook = agent.seen.space, agent.outlook(plan, planning) if isinstance(agent, Agent) else None
    for k, (before, after) in enumerate(pairwise(plan.rho)):
        # By the change that 𝓑 expects, where there is one: on ℝ the path is rounded to the grain of the graph.
        delta = space.difference(jnp.array(after), jnp.array(before))
        if isinstance(agent, Agent):
            delta = agent.memory.delta[plan.transitions[k]]
        chance, steps = (None, None) if outlook is None else outlook[k]
        yield Edge(space.format_delta(np.asarray(delta)), after, chance, steps)


def _map(agent: AnyAgent, seed: int) -> Any:
    return jax.jit(agent.game.reset)(jax.random.key(seed))


def _walker(agent: AnyAgent, state: Any, goal: Goal, planning: Planning) -> Walker:
    one = Goal(np.asarray(goal.low)[None], np.asarray(goal.high)[None])
    return agent.walker(jax.tree.map(lambda x: x[None], state), one, planning)


def _first(states: Any) -> Any:
    return jax.tree.map(lambda x: x[0], states)


def _text(agent: AnyAgent, rho: Any) -> str:
    return agent.game.space.format(np.asarray(rho))
