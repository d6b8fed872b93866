"""Messages about a task, as JSON: the plan, the steps, the spans of attributes, mining's plane."""

import base64
import dataclasses
from typing import Any

import numpy as np

from saplan.games import Game
from saplan.planning.certificate import Arithmetic
from saplan.render.plane import CELL, Plane
from saplan.render.start import Start
from saplan.render.task import Moment, Task
from saplan.viewer.protocol import numbers, scene_data


def spans_message(number: int, game: Game[Any], begin: Start) -> dict[str, Any]:
    """Least and greatest value that every attribute can reach by arithmetic."""
    arithmetic = Arithmetic(game, np.array(begin.rho))
    return {"type": "spans", "id": number, "spans": [numbers(arithmetic.span(k)) for k in range(game.space.size)]}


def task_message(number: int, task: Task) -> dict[str, Any]:
    """A task up to its present step."""
    return {
        "type": "task",
        "id": number,
        "goal": {"text": task.text, "low": numbers(task.goal.low), "high": numbers(task.goal.high)},
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
        "ended": moment.ended,
    }
