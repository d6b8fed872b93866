"""Every method's executor returns decisions with the numbers that it used, and every agent plans and acts."""

import json
from typing import Any

import jax
import numpy as np
import pytest

import saplan
from saplan.games import task_set
from saplan.methods.agent import DEFAULT_PLANNER, Agent
from saplan.methods.decision import Decision
from saplan.methods.structured import agent as structured
from saplan.methods.structured import expected_search, pricing
from saplan.planning import Outcome
from saplan.render.explanation import explain
from saplan.render.narrate import tell_json
from saplan.training.store import open_agent

SHIPPED = [
    ("switches", "structured"), ("exchange", "structured"), ("mining", "structured"), ("mining", "unstructured"),
    ("switches", "curriculum"), ("switches", "oracle"), ("mining", "oracle"),
]  # fmt: skip
GOALS = {"switches": "red=1 green=1", "exchange": "red=0 green=1 blue=1", "mining": "m1=8 m2=6"}


def decided(agent: Agent, tasks: int = 3) -> Any:
    """An executor that has made its first decisions."""
    executor = agent.executor(*task_set(agent.game, tasks, 11), DEFAULT_PLANNER)
    executor.settle()
    return executor


@pytest.mark.parametrize(("game", "method"), SHIPPED)
def test_every_agent_plans_and_acts(game: str, method: str) -> None:
    agent, _, _ = open_agent(game, method)
    assert isinstance(agent, saplan.Agent)
    state = agent.game.reset(jax.random.key(7))
    plan = agent.plan(state, GOALS[game])
    assert plan.outcome is (Outcome.NONE if method == "curriculum" else Outcome.FOUND)
    assert bool(plan.path) == (method != "curriculum")
    assert all(step.probability is not None and 0 < step.probability <= 1 for step in plan.path)
    assert 0 <= agent.act(jax.random.key(0), state, GOALS[game]) < len(agent.game.actions)


@pytest.mark.parametrize(("game", "method"), SHIPPED)
def test_every_executor_decides(game: str, method: str) -> None:
    agent, _, _ = open_agent(game, method)
    executor = decided(agent)
    for k, decision in enumerate(executor.decisions):
        assert isinstance(decision, Decision)
        explanation = explain(agent, decision)
        if method == "curriculum":
            assert decision == Decision(Outcome.NONE)
            assert (explanation.found, explanation.path, explanation.options) == (True, (), ())
            continue
        weighed = decision.alternatives
        assert weighed is not None
        assert decision.chosen is not None
        np.testing.assert_array_equal(executor.delta[k], weighed.change(executor.rho[k], decision.chosen))
        if decision.outcome is Outcome.FOUND:
            assert np.isfinite(weighed.cost[decision.chosen])
            assert (game, method) == ("mining", "oracle") or decision.plan.transitions[0] == decision.chosen
        (chosen,) = [option for option in explanation.options if option.chosen]
        assert chosen.cost is None or chosen.cost == pytest.approx(weighed.cost[decision.chosen], abs=1e-4)


@pytest.mark.parametrize("game", ["switches", "mining"])
def test_nothing_is_asked_again_to_explain_a_decision(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = saplan.load(game)
    executor = decided(agent, 1)
    asked: list[np.ndarray] = []
    (decision,) = executor.decisions
    monkeypatch.setattr(structured, "price_first", None)
    monkeypatch.setattr(structured, "price_edges", None)
    price = pricing.price_spread

    def asking(agent: Any, rho: np.ndarray, planner: Any) -> Any:
        asked.append(rho)
        return price(agent, rho, planner)

    monkeypatch.setattr(expected_search, "price_spread", asking)
    explanation = explain(agent, decision)
    assert len(explanation.path) > 1
    assert not any(np.array_equal(rho[0], executor.rho[0]) for rho in asked), "the present ρ was priced to decide"
    assert len(asked) == (len(explanation.path) - 1 if game == "mining" else 0), (
        "later ρ of means are priced to be shown"
    )


def test_the_json_of_a_plan_keeps_its_keys() -> None:
    result = json.loads(json.dumps(tell_json(saplan.load("switches"), "red=1", 3, 40)))
    assert list(result) == [
        "game", "goal", "start", "outcome", "reason", "beyond", "unsure", "path", "attempts", "new_plans", "success",
        "steps",
    ]  # fmt: skip
    assert all(list(step) == ["transition", "name", "rho", "probability", "steps"] for step in result["path"])
    assert result["path"][0]["transition"] == result["attempts"][0]["transition"]
