"""Tasks and thoughts of every kind of method, without a browser."""

import json
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from saplan.errors import InputError
from saplan.games import GAMES, Mining, Switches
from saplan.goals import parse_goal
from saplan.render.failure import tried_sentences, why_failed
from saplan.render.plane import plane_of
from saplan.render.start import BUDGET, start
from saplan.render.task import Task
from saplan.training.shipped import shipped
from saplan.viewer import protocol as messages
from saplan.viewer import task_messages as telling
from saplan.viewer.session import Session
from saplan.viewer.worlds import Worlds

GOAL, SEED = "red=1 green=1", 7


@pytest.fixture(scope="module")
def worlds() -> Worlds:
    return Worlds()


def begun(worlds: Worlds, world: str, method: str, goal: str) -> Task:
    agent = worlds.agent(world, method)
    return Task(agent, start(agent.game, SEED), goal, SEED)


def test_a_path_leads_to_the_goal(worlds: Worlds) -> None:
    for method in ("structured", "oracle"):
        explanation = begun(worlds, "switches", method, GOAL).explanation
        assert explanation.found
        assert explanation.path[-1].rho[3:5] == (1.0, 1.0)
        (chosen,) = [option for option in explanation.options if option.chosen]
        assert chosen.name == explanation.path[0].name, "what was chosen comes first"
        assert all(plan_step.chance is not None and 0 < plan_step.chance <= 1 for plan_step in explanation.path)
        costs = [option.cost for option in explanation.options if option.cost is not None]
        assert costs == sorted(costs)


@pytest.mark.parametrize("method", ["oracle", "curriculum"])
def test_every_method_comes_to_an_end(worlds: Worlds, method: str) -> None:
    task = begun(worlds, "switches", method, GOAL)
    while not task.ended:
        task.forward()
    assert task.reached or task.step == BUDGET
    assert task.forward().step == task.step, "there is no step after the last"
    if method == "curriculum":
        assert not task.explanation.path
        assert all(tried.success is None for tried in task.tried), "it has no attempts, but changes are told"


def test_looking_ahead_changes_nothing(worlds: Worlds) -> None:
    """The walk that is shown is the walk that is walked."""
    shown = begun(worlds, "switches", "structured", GOAL)
    while not shown.ended:
        shown.forward()
    alone = begun(worlds, "switches", "structured", GOAL)
    result = alone.executor.run(BUDGET, SEED)
    assert shown.step == result.steps[0]
    assert [tried.success for tried in shown.tried] == [attempt.success for attempt in result.attempts]


def test_skipping_is_stepping(worlds: Worlds) -> None:
    one, other = (begun(worlds, "switches", "structured", GOAL) for _ in range(2))
    for _ in range(9):
        one.forward()
    other.skip_to(9)
    assert one.now() == other.now()
    assert one.tried == other.tried
    assert one.history == other.history


def test_a_goal_that_holds_already(worlds: Worlds) -> None:
    task = begun(worlds, "switches", "structured", "red=0")
    assert task.reached
    assert task.ended
    assert task.now().step == 0


def test_impossible_goals_are_input_errors(worlds: Worlds) -> None:
    for goal in ("red=9", "reed=1", "switch=3", ""):
        with pytest.raises(InputError):
            begun(worlds, "switches", "structured", goal)


def test_mining_plans_in_expectation(worlds: Worlds) -> None:
    task = begun(worlds, "mining", "structured", "m1=8 m2=6")
    last = task.explanation.path[-1].rho
    assert abs(last[0] - 8) <= 0.5
    assert abs(last[1] - 6) <= 0.5
    game = task.game
    assert isinstance(game, Mining)
    plane = plane_of(worlds.agent("mining", "structured"))
    assert plane is not None
    places = np.array([(plan_step.rho[0], plan_step.rho[1]) for plan_step in task.explanation.path])
    assert np.mean(np.asarray(game.inside(jnp.asarray(places)))) > 0.9, "the path stays in S"
    assert plane.chances is not None
    inside = plane.chances[0] > 0
    assert 0.3 < inside.mean() < 0.8
    said = telling.plane_message(1, plane)
    assert len(messages.encode(said)) < 2**16


def test_a_run_is_a_world_of_its_own() -> None:
    """A run whose game is one of ours as it is meets everything that is shipped for that."""
    run = str(shipped("switches", "curriculum"))
    world = Worlds(run).first
    assert world.name == run
    assert world.methods == ("curriculum", "structured", "oracle")
    assert list(Worlds(run).worlds) == [run, *GAMES]
    assert next(iter(Worlds("mining").worlds)) == "mining"
    assert all((world.trained[0] or 0) > 9e5 for world in Worlds().worlds.values())


class Asked:
    """A session that is asked and answers."""

    def __init__(self, worlds: Worlds) -> None:
        self.session = Session(worlds)

    def __call__(self, **message: Any) -> list[dict[str, Any]]:
        return [json.loads(messages.encode(answer)) for answer in self.session.answers(json.dumps(message))]


def test_a_session(worlds: Worlds) -> None:
    ask = Asked(worlds)
    asked = {"type": "open", "world": "switches", "method": "structured", "seed": SEED, "goal": GOAL}
    fresh, spans, changes, opened = ask(**asked, id=1, step=0)
    assert [one["type"] for one in (fresh, spans, changes, opened)] == ["map", "spans", "changes", "task"]
    assert {name for name, _, _ in changes["changes"]} == {name for name, _ in Switches().admissible()}
    assert all(0 < share <= 1 for _, _, share in changes["changes"])
    assert "switch shows one colour" in fresh["rules"]["summary"]
    assert spans["spans"][3] == [0.0, fresh["rho"][0]], "what is held is what was on the map"
    assert [one["kind"] for one in fresh["attributes"]] == ["count"] * 6 + ["dial"]
    assert fresh["attributes"][-1]["colours"] == ["red", "green", "blue"]
    (stepped,) = ask(type="step", id=1)
    assert (stepped["type"], stepped["step"]) == ("step", 1)
    *_, again = ask(**asked, id=2, step=6)
    assert again["step"] == 6
    (stale,) = ask(type="step", id=1)
    assert stale["type"] == "error"
    *_, refused = ask(**{**asked, "goal": "red=9"}, id=3, step=0)
    assert refused["type"] == "impossible"
    (nothing,) = ask(type="step", id=3)
    assert nothing["type"] == "error"


def test_a_session_turns_to_another_goal(worlds: Worlds) -> None:
    ask = Asked(worlds)
    *_, opened = ask(type="open", world="switches", method="structured", seed=SEED, goal="red=1", id=1, step=5)
    assert opened["step"] == 5
    spans, turned = ask(type="goal", id=2, goal="blue=1", step=0)
    assert (spans["type"], turned["type"], turned["before"], turned["step"]) == ("spans", "task", 5, 0)
    assert turned["scene"]["agent"] == opened["scene"]["agent"], "it goes on from where it is"
    _, refused = ask(type="goal", id=3, goal="blue=9", step=0)
    assert refused["type"] == "impossible"
    _, again = ask(type="goal", id=4, goal="blue=1", step=3)
    assert (again["before"], again["step"]) == (0, 3), "an impossible goal leaves the task as it was"
    (stepped,) = ask(type="step", id=4)
    assert stepped["step"] == 4


def test_turning_is_the_same_each_time(worlds: Worlds) -> None:
    ends = []
    for _ in range(2):
        task = begun(worlds, "switches", "structured", "red=1")
        task.skip_to(6)
        later = task.turned_to("green=1")
        later.skip_to(20)
        ends.append((later.step, later.history, later.tried))
    assert ends[0] == ends[1]


def test_a_failure_says_why(worlds: Worlds) -> None:
    """The baseline of mining does not get there; what it changed, and what is missing, is said."""
    task = Task(worlds.agent("mining", "curriculum"), start(Mining(), 2), "m1=8 m2=6", 2)
    task.skip_to(BUDGET)
    missing, tried = task.now().failure
    assert missing.startswith("The budget is spent: m1 is ")
    assert "(goal m2=6.00)" in missing
    assert "made" in tried
    assert begun(worlds, "switches", "structured", "red=0").now().failure == (), "a goal that is reached has no failure"


def test_attempts_are_counted() -> None:
    tried = tried_sentences([("pick up red", True), ("pick up red", False), ("turn", False), ("turn", False)])
    assert tried == ["4 attempts, 3 of them failed: “turn” failed 2 of 2 times, “pick up red” failed 1 of 2 times."]
    assert tried_sentences([("turn", True)]) == ["1 attempt, none of them failed."]
    assert tried_sentences([]) == ["No attribute changed."]


def test_out_of_reach_is_said(worlds: Worlds) -> None:
    """After a trade that cannot be undone, arithmetic says what is missing."""
    agent = worlds.agent("switches", "oracle")
    begin = start(agent.game, SEED)
    explanation = Task(agent, begin, GOAL, SEED).explanation
    goal = parse_goal(agent.game.space, "red=9")
    said = why_failed(agent.game, begin.rho, goal, [], explanation, "The budget is spent")
    assert said[-1].startswith("From here the goal is out of reach: red can become at most")
