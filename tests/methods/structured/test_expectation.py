"""An agent whose changes are uncertain plans in expectation; one whose changes are not does not."""

import jax
import jax.numpy as jnp
import numpy as np

from saplan.methods.agent import DEFAULT_PLANNER, PAPER_PLANNER
from saplan.methods.structured.agent import InExpectation, StructuredAgent, price_spread
from saplan.training.store import load


def loaded(name: str) -> StructuredAgent:
    agent = load(name)
    assert isinstance(agent, StructuredAgent)
    return agent


def test_only_where_changes_are_uncertain() -> None:
    mining, switches = loaded("mining"), loaded("switches")
    assert mining.uncertain
    assert not switches.uncertain
    for agent, planning, expected in (
        (mining, DEFAULT_PLANNER, True),
        (mining, PAPER_PLANNER, False),
        (switches, DEFAULT_PLANNER, False),
    ):
        assert isinstance(agent.plain_finder(planning), InExpectation) == expected


def test_the_ends_of_a_blow_are_spread_evenly_and_those_of_a_dump_are_not() -> None:
    agent = loaded("mining")
    rho = jnp.array([[3.0, 5.0, 1.0]])
    ends, real, cost, _, _ = price_spread(agent, rho, DEFAULT_PLANNER)
    blow = int(agent.memory.index(agent.game.space, jnp.array([0.0, 1.0, -1.0])))
    dump = int(agent.memory.index(agent.game.space, jnp.array([-1.0, 0.0, 0.0])))
    np.testing.assert_allclose(ends[0, blow, :, 1], 5 + np.array([0.6, 0.8, 1.0, 1.2, 1.4]), atol=0.02)
    assert np.array_equal(ends[0, blow, :, 2], np.zeros(5)), "the hammer is gone, not nearly gone"
    np.testing.assert_allclose(ends[0, dump, :, 0], 2.0, atol=0.01)
    assert np.asarray(real)[0, [blow, dump]].all()
    assert np.isfinite(np.asarray(cost)[0, [blow, dump]]).all()
    unused = int(agent.memory.size)
    assert not np.asarray(real)[0, unused:].any()


def test_a_task_on_mining_is_carried_out() -> None:
    agent = loaded("mining")
    state = jax.tree.map(lambda x: x[None], agent.game.reset(jax.random.key(4)))
    amounts = np.asarray(agent.game.attributes(jax.tree.map(lambda x: x[0], state)))
    goal = agent.goal(f"m1={amounts[0]:.2f} m2={amounts[1] + 1.5:.2f}")
    one = jax.tree.map(lambda x: jnp.asarray(x)[None], goal)
    result = agent.executor(state, one).run(150, 0)
    assert result.success[0]
