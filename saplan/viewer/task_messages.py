"""Messages about a task, as JSON: the plan, the steps, the spans of attributes, mining's plane."""

import base64
import dataclasses
from typing import Any

import numpy as np

from saplan.games import Game
from saplan.games.rule_cards import name_of
from saplan.methods.agent import Agent
from saplan.methods.structured.agent import StructuredAgent
from saplan.planning.certificate import Arithmetic
from saplan.render.plane import CELL, Plane
from saplan.render.start import Rho
from saplan.render.task import Moment, Task
from saplan.viewer.protocol import numbers, scene_data

MOST_CHANGES = 24
"""Changes that the page lists."""


def spans_message(number: int, game: Game[Any], rho: Rho) -> dict[str, Any]:
    """Least and greatest value that every attribute can reach from ρ by arithmetic."""
    arithmetic = Arithmetic(game, np.array(rho))
    return {"type": "spans", "id": number, "spans": [numbers(arithmetic.span(k)) for k in range(game.space.size)]}


def changes_message(number: int, agent: Agent) -> dict[str, Any]:
    """The changes that an agent knows, with the success of its attempts in training; by the rules for other methods."""
    if not isinstance(agent, StructuredAgent):
        known = [(name, agent.game.space.format_delta(np.array(delta))) for name, delta in agent.game.admissible()]
        return {"type": "changes", "id": number, "learnt": False, "changes": [[*pair, None] for pair in known]}
    memory, rows = agent.memory, []
    for k in range(int(memory.size)):
        delta, tried = np.asarray(memory.delta[k]), int(memory.tried[k])
        share = round(float(memory.succeeded[k]) / tried, 4) if tried else None
        rows.append([name_of(agent.game, delta), agent.game.space.format_delta(delta), share])
    return {"type": "changes", "id": number, "learnt": True, "changes": rows[:MOST_CHANGES], "known": len(rows)}


def task_message(number: int, task: Task, before: int = 0) -> dict[str, Any]:
    """A task up to its present step; `before` are the steps towards the goal that it had until it got this one."""
    return {
        "type": "task",
        "id": number,
        "goal": {"text": task.text, "low": numbers(task.goal.low), "high": numbers(task.goal.high)},
        "before": before,
        "tried": [dataclasses.asdict(tried) for tried in task.tried],
        "history": [list(rho) for rho in task.history],
        **moment_data(task.now(task.explanation)),
    }


def step_message(number: int, moment: Moment) -> dict[str, Any]:
    """The changes of one step."""
    tried = [dataclasses.asdict(one) for one in moment.tried]
    return {"type": "step", "id": number, "tried": tried, **moment_data(moment)}


def plane_message(number: int, plane: Plane) -> dict[str, Any]:
    """The plane of mining, its probabilities as bytes in base 64."""
    layers = None
    if plane.chances is not None:
        layers = [base64.b64encode(layer.tobytes()).decode("ascii") for layer in plane.chances]
    columns, rows = (round(length / CELL) for length in plane.size)
    return {
        "type": "plane",
        "id": number,
        "centre": list(plane.centre),
        "inner": plane.inner,
        "outer": plane.outer,
        "size": list(plane.size),
        "names": list(plane.names),
        "columns": columns,
        "rows": rows,
        "layers": layers,
    }


def moment_data(moment: Moment) -> dict[str, Any]:
    """A task after one step."""
    return {
        "step": moment.step,
        "scene": scene_data(moment.scene),
        "rho": list(moment.rho),
        "decision": None if moment.explanation is None else dataclasses.asdict(moment.explanation),
        "reached": moment.reached,
        "failure": list(moment.failure),
        "ended": moment.ended,
    }
