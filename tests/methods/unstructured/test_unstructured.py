"""The unstructured planner on the corridor, where the answer is known, and what it cannot do."""

from dataclasses import fields
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from saplan.games import make_game
from saplan.goals import Goal
from saplan.methods.agent import DEFAULT_PLANNER
from saplan.methods.encoders import OneHotEncoder
from saplan.methods.unstructured.agent import TablePlanner, UnstructuredAgent
from saplan.methods.unstructured.learner import Unstructured, draw_neighbour
from saplan.methods.unstructured.rounding import rounded
from saplan.methods.unstructured.settings import UnstructuredSettings
from saplan.methods.update import train_chunk
from saplan.rl.settings import ExploringSettings
from tests.methods.probe import GAME, PRESS, RIGHT, SMALL, standing

SHARED = {field.name: getattr(SMALL, field.name) for field in fields(ExploringSettings)}
SETTINGS = UnstructuredSettings(**SHARED, nodes=64, degree=4, epoch=8)
METHOD = Unstructured()


@cache
def trained() -> UnstructuredAgent:
    learner = METHOD.begin(GAME, SETTINGS, jax.random.key(0))
    for _ in range(3):
        learner, report = train_chunk(METHOD, GAME, SETTINGS, 240, 80, 80, learner)
    assert int(report.overflow[-1]) == 0
    return METHOD.agent_of(learner, GAME, SETTINGS)


def goals(low: tuple[float, ...], high: tuple[float, ...]) -> Goal:
    return Goal(np.array([low], np.float32), np.array([high], np.float32))


def test_the_graph_is_found_and_nothing_else() -> None:
    table = trained().table
    # Counts 0 to `most` with the lamp on or off; up only with the lamp on, the lamp always.
    assert int(table.nodes) == 2 * (GAME.most + 1)
    assert int(table.pairs) == GAME.most + 2 * (GAME.most + 1)


def test_it_reaches_its_goals() -> None:
    state = jax.tree.map(lambda x: x[None], standing(1, 0, 0))
    result = trained().executor(state, goals((3, -np.inf), (3, np.inf)), DEFAULT_PLANNER).run(60, 0)
    assert result.success.all()
    assert [attempt.delta for attempt in result.attempts if attempt.success] == [(0.0, 1.0), *[(1.0, 0.0)] * 3]


def test_costs_are_those_of_the_table() -> None:
    planner = TablePlanner(trained())
    ends, cost, probability, _ = planner.edges(np.array([[0.0, 1.0], [9.0, 9.0]], np.float32), DEFAULT_PLANNER)
    there = np.isfinite(cost[0])
    assert probability is not None
    np.testing.assert_allclose(-np.log(probability[0][there]), cost[0][there], atol=1e-6)
    assert np.isnan(probability[1]).all()
    assert {tuple(end) for end in ends[0][there]} == {(1.0, 1.0), (0.0, 0.0)}
    assert (cost[0][there] < 0.2).all()
    assert not np.isfinite(cost[1]).any(), "of a node never seen nothing is known"


def test_an_agent_plans_and_acts() -> None:
    agent, key = trained(), jax.random.key(0)
    plan = agent.plan(standing(0, 0, 0), "count=2")
    assert plan.rho == ((0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (2.0, 1.0))
    assert all((step.probability or 0) > 0.8 and step.steps is None for step in plan.path)
    assert agent.act(key, standing(0, 1, 1), "count=2") == PRESS
    assert agent.execute(key, standing(1, 0, 0), plan.transitions[0]) == RIGHT


def test_a_set_has_no_neighbourhoods() -> None:
    encoder = OneHotEncoder(GAME.space)
    one, two, five = (encoder.state(jnp.array([x, 0.0])) for x in (1.0, 2.0, 5.0))
    assert float(jnp.sum((one - two) ** 2)) == float(jnp.sum((one - five) ** 2)) == 2.0
    assert one.shape == (encoder.state_width,)


def test_where_nothing_is_known_nothing_is_wished() -> None:
    rho = jnp.array([[9.0, 9.0], [0.0, 1.0]])
    subgoal, choice = draw_neighbour(trained().table, jax.random.key(0), rho)
    assert int(choice[0]) == -1 <= int(choice[1])
    assert subgoal[0].tolist() == [9.0, 9.0]
    assert tuple(subgoal[1].tolist()) in {(1.0, 1.0), (0.0, 0.0)}


def test_reals_are_rounded_and_the_rest_is_left_alone() -> None:
    mining, switches = make_game("mining"), make_game("switches")
    assert rounded(switches) is switches
    seen, state = rounded(mining), mining.reset(jax.random.key(0))
    rho, true = np.asarray(seen.attributes(state)), np.asarray(mining.attributes(state))
    np.testing.assert_array_equal(rho, np.rint(true))
    assert (seen.name, seen.actions, seen.slots, seen.vocabulary) == (
        mining.name, mining.actions, mining.slots, mining.vocabulary
    )  # fmt: skip
    assert bool(seen.space.contains(jnp.asarray(rho)))
