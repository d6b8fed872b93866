"""An agent whose changes are uncertain plans in expectation; one whose changes are not does not."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from saplan.algebra import Real
from saplan.goals import Goal
from saplan.methods.agent import DEFAULT_PLANNER, PAPER_PLANNER
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.evidence import Evidence
from saplan.methods.structured.expected_search import ExpectedSearch
from saplan.methods.structured.memory import Visited
from saplan.methods.structured.pricing import SURE, price_spread
from saplan.perception.found_space import FoundAttribute, with_space
from saplan.planning import ExpectedRoute, Landscape, Outcome, SpreadEdges
from saplan.planning.expectation import raised_near
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
        assert isinstance(agent.plain_finder(planning), ExpectedSearch) == expected


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


def test_an_unvisited_combination_needs_a_change_that_is_sure() -> None:
    agent = loaded("mining")
    space = agent.game.space
    none = jnp.zeros((2, space.size))
    met = jnp.stack([jnp.zeros(space.size), jnp.array([13.0, 8.0, 8.0])])
    evidence = Evidence(met, jnp.stack([-met[1], met[1]]), none.astype(jnp.int32), none, none)
    forgetful = replace(agent, evidence=evidence, visited=Visited(jnp.zeros_like(agent.visited.bits)))
    rho = jnp.array([[3.0, 5.0, 1.0], [6.0, 7.6, 1.0], [8.6, 1.2, 1.0]])
    _, real, _, probability, _ = price_spread(forgetful, rho, DEFAULT_PLANNER)
    sure = np.asarray(probability) > SURE
    np.testing.assert_array_equal(np.asarray(real).any(axis=-1), sure & np.asarray(real).any(axis=-1))
    dig = int(agent.memory.index(space, jnp.array([0.0, 1.0, -1.0])))
    assert np.asarray(real)[0, dig].all(), "in the middle of S"
    assert not np.asarray(real)[1, dig].any(), "the top of S is near"
    visited_only = price_spread(forgetful, rho, replace(DEFAULT_PLANNER, beyond=False))[1]
    assert not np.asarray(visited_only).any()


def test_a_failure_counts_for_its_surroundings_on_reals_alone() -> None:
    reach = np.array([1.0, 0.0], np.float32)
    landscape = Landscape(np.array([0.125, 1.0], np.float32), lambda rho: None, 10, reach=reach)  # type: ignore[arg-type,return-value]
    failed = (np.array([3.0, 1.0], np.float32), 2, 2.0)
    far = [(np.array([place, 1.0], np.float32), 2, 2.0) for place in (30.0, 60.0)]

    def cost(*rho: float, raised: Sequence[tuple[np.ndarray, int, float]] = (failed, *far)) -> float:
        added = raised_near(np.array(rho, np.float32), raised, landscape, 4)
        assert not added[[0, 1, 3]].any()
        return float(added[2])

    assert cost(3.0, 1.0) == 2.0
    assert cost(4.0, 1.0) == cost(2.0, 1.0) == 1.0, "half at the reach"
    assert cost(6.0, 1.0) < 0.01
    assert cost(3.0, 0.0) == 0.0, "another count is another place"
    assert cost(3.0, 1.0, raised=[failed]) == 2.0
    assert cost(4.0, 1.0, raised=[failed] * 3) == 0.0, "failures in one place may be one unlucky draw"
    assert cost(4.0, 1.0, raised=[failed, far[0]]) == 0.0


def boundless(agent: StructuredAgent) -> StructuredAgent:
    """The agent of mining with amounts that have no bounds, as if opinions carried over for ever."""
    space = agent.game.space
    blocks = [Real(resolution=1.0), Real(resolution=1.0), space.blocks[2]]
    pairs = zip(space.names, blocks, strict=True)
    world = with_space(agent.game, tuple(FoundAttribute(name, (name,), block) for name, block in pairs))
    met = jnp.array([[0.0, 0.0, 0.0], [13.0, 8.0, 1.0]])
    sure = jnp.full((2, 3), 1000, jnp.int32), jnp.ones((2, 3)), jnp.zeros((2, 3))
    return replace(agent, game=world, evidence=Evidence(met, met, *sure))


def steps_everywhere(rho: np.ndarray) -> SpreadEdges:
    """Every amount can grow and shrink by 1, at every place."""
    ends = (rho[:, None] + np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]], np.float32))[:, :, None]
    one = np.ones(ends.shape[:2], np.float32)
    return SpreadEdges(ends, np.ones(ends.shape[:3], bool), one, one, one)


def test_a_landscape_without_bounds_ends_beyond_what_was_met() -> None:
    agent = boundless(loaded("mining"))
    search = ExpectedSearch(agent, DEFAULT_PLANNER)
    cells, _, nodes, seconds, reach = search.begin.args
    search.begin = partial(Landscape, cells, steps_everywhere, nodes, seconds, reach)
    search.landscape = search.begin(search.landscape.box)
    low, high = search.landscape.box
    assert low[0] < -1.0
    assert 14.0 < high[0] < 16.0

    def ask(**goal: float) -> ExpectedRoute:
        names = agent.game.space.names
        low, high = (np.array([[goal.get(name, end) for name in names]], np.float32) for end in (-np.inf, np.inf))
        return search(np.array([[3.0, 5.0, 1.0]], np.float32), Goal(low, high), DEFAULT_PLANNER)[0]

    assert ask(m1=4.0).outcome is Outcome.FOUND
    usual = search.landscape
    assert usual.complete
    assert 100 < len(usual.rho) < 300
    assert ask(m1=14.0).outcome is Outcome.FOUND
    assert search.landscape is usual, "within the margin"
    assert ask(m1=20.0).outcome is Outcome.FOUND
    wider = search.landscape
    assert wider.box[1, 0] > 20.0
    ask(m2=9.0)
    assert search.landscape is wider, "a landscape never becomes smaller"
    endless = search.begin(None)
    endless.cover(np.array([[3.0, 5.0, 1.0]], np.float32), np.inf)
    assert endless.full


def test_a_task_on_mining_is_carried_out() -> None:
    agent = loaded("mining")
    state = jax.tree.map(lambda x: x[None], agent.game.reset(jax.random.key(4)))
    amounts = np.asarray(agent.game.attributes(jax.tree.map(lambda x: x[0], state)))
    goal = agent.goal(f"m1={amounts[0]:.2f} m2={amounts[1] + 1.5:.2f}")
    one = jax.tree.map(lambda x: jnp.asarray(x)[None], goal)
    result = agent.executor(state, one).run(150, 0)
    assert result.success[0]
