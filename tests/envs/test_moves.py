"""What robots need to become worlds: results that are computed once per state."""

from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np

from saplan.envs.moves import MujocoStates


class Robot(gymnasium.Env[Any, Any]):
    """As much of a MuJoCo environment as has a state and something that is computed from it."""

    def __init__(self) -> None:
        names = ("qpos", "qvel", "xpos", "site_xpos")
        self.data = SimpleNamespace(time=0.0, **{name: np.zeros(2) for name in names})
        self.lamp, self.computed = np.array([0, 0]), 0

    def summary(self) -> dict[str, Any]:
        self.computed += 1
        return {"lamp": self.lamp.tolist(), "places": self.data.xpos.tolist(), "computed": self.computed}


def test_a_summary_is_computed_once_per_state() -> None:
    robot = Robot()
    MujocoStates(robot, ["lamp"], once=["summary"])
    first, second = robot.summary(), robot.summary()
    assert first == second
    assert robot.computed == 1


def test_everything_that_belongs_to_the_state_asks_for_a_new_summary() -> None:
    robot = Robot()
    MujocoStates(robot, ["lamp"], once=["summary"])
    robot.summary()
    for k, name in enumerate(("qpos", "qvel", "xpos", "site_xpos")):
        getattr(robot.data, name)[1] = 0.5  # in place, as MuJoCo does
        assert robot.summary()["computed"] == 2 + k
    robot.data.time = 0.1
    assert robot.summary()["computed"] == 6
    robot.lamp[0] = 1
    assert robot.summary() == {"lamp": [1, 0], "places": [0.0, 0.5], "computed": 7}


def test_what_a_caller_adds_to_a_summary_stays_with_the_caller() -> None:
    robot = Robot()
    MujocoStates(robot, ["lamp"], once=["summary"])
    robot.summary()["success"] = True
    assert "success" not in robot.summary()


def test_without_names_nothing_is_remembered() -> None:
    robot = Robot()
    MujocoStates(robot, ["lamp"])
    robot.summary()
    assert robot.summary()["computed"] == 2
