"""Training on the corridor, where the right policy is known: it must be found, and found again bit by bit."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.methods.agent import DEFAULT_PLANNER, PAPER_PLANNER
from saplan.methods.executor import choose_actions
from saplan.methods.update import train_chunk, train_chunk_of_each
from saplan.planning import Outcome
from saplan.rl.repeated_actions import empty_history

from .probe import (
    COUNT_UP,
    GAME,
    LEFT,
    METHOD,
    PRESS,
    RIGHT,
    SMALL,
    TOGGLE,
    agent_of,
    all_edges,
    begun,
    chunks,
    stacked,
    standing,
    trained,
)


def bits(tree: Any) -> list[np.ndarray]:
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_array))
    keys = lambda x: jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x  # noqa: E731
    return [np.asarray(keys(leaf)) for leaf in leaves]


def identical(a: Any, b: Any) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(bits(a), bits(b), strict=True))


def entry(change: tuple[float, float]) -> int:
    return int(trained().memory.index(GAME.space, jnp.array(change)))


def test_both_transitions_are_found_and_no_other() -> None:
    memory = trained().memory
    assert {tuple(change) for change in memory.delta[: int(memory.size)].tolist()} == {COUNT_UP, TOGGLE}
    assert int(memory.overflow) == 0


@pytest.mark.parametrize("head", ["feasible", "success"])
def test_the_edge_detector_knows_what_is_possible(head: str) -> None:
    rho, delta, possible = all_edges()
    scores = trained().detector(GAME.space, jnp.array(rho), jnp.array(delta))
    probability = np.asarray(jax.nn.sigmoid(getattr(scores, head)))
    assert probability[possible].min() > 0.9
    assert probability[~possible].max() < 0.1


def test_the_expected_steps_are_those_of_the_way() -> None:
    rho, delta, possible = all_edges()
    scores = trained().detector(GAME.space, jnp.array(rho), jnp.array(delta))
    steps = np.exp(np.asarray(scores.log_steps))[possible]
    assert ((steps > 0.8) & (steps < GAME.length + 1.5)).all()


@pytest.mark.parametrize(("change", "towards", "place_of"), [(COUNT_UP, LEFT, 0), (TOGGLE, RIGHT, GAME.length - 1)])
def test_the_right_policy_is_found(change: tuple[float, float], towards: int, place_of: int) -> None:
    states = stacked(*(standing(place, 1, 1) for place in range(GAME.length) for _ in range(50)))
    count = 50 * GAME.length
    agent, subgoals, label = trained(), jnp.tile(jnp.array(change), (count, 1)), jnp.zeros(count, jnp.int32)
    actions, _ = choose_actions(
        agent.policy, GAME, agent.settings, jax.random.key(0), states, subgoals, label, empty_history(count, 1)
    )
    for place, chosen in enumerate(np.asarray(actions).reshape(-1, 50)):
        assert np.mean(chosen == (PRESS if place == place_of else towards)) > 0.95, f"at {place}"


@pytest.mark.parametrize("planning", [DEFAULT_PLANNER, PAPER_PLANNER], ids=["improved", "faithful"])
def test_plans_go_the_only_way(planning) -> None:
    up, toggle = entry(COUNT_UP), entry(TOGGLE)
    plan = trained().plan(standing(1, 0, 0), "count=3", planning)
    assert plan.outcome is Outcome.FOUND
    assert plan.transitions == (toggle, up, up, up)
    assert plan.rho[-1] == (3.0, 1.0)
    assert all((step.probability or 0) > 0.9 and 0.8 < (step.steps or 0) < GAME.length + 1.5 for step in plan.path)
    assert trained().plan(standing(1, 3, 0), "lamp=1", planning).transitions == (toggle,)


def test_what_cannot_be_is_not_planned() -> None:
    assert trained().plan(standing(0, 2, 1), "count=1").outcome is Outcome.UNREACHABLE
    assert trained().plan(standing(0, 2, 1), "count=4").outcome is Outcome.UNREACHABLE


def test_no_plan_is_needed_where_one_is() -> None:
    plan = trained().plan(standing(0, 2, 1), "count=2")
    assert (plan.outcome, plan.transitions) == (Outcome.FOUND, ())
    assert plan.path == ()


def test_an_agent_acts() -> None:
    key = jax.random.key(0)
    assert trained().execute(key, standing(0, 1, 1), entry(COUNT_UP)) == PRESS
    assert trained().execute(key, standing(1, 1, 1), entry(TOGGLE)) == RIGHT
    assert trained().act(key, standing(0, 1, 1), "count=2") == PRESS
    assert trained().act(key, standing(1, 1, 0), "count=2") == RIGHT, "first the lamp"


def test_the_same_seed_gives_the_same_agent_bit_by_bit() -> None:
    first, second = chunks(begun(3), 4, 2), chunks(begun(3), 4, 2)
    assert identical(first, second)
    assert not identical(agent_of(first).policy, agent_of(chunks(begun(4), 4, 2)).policy)


def test_the_size_of_chunks_does_not_matter() -> None:
    assert identical(chunks(begun(3), 1, 8), chunks(begun(3), 4, 2))


def test_lanes_play_on_from_chunk_to_chunk() -> None:
    before, after = chunks(begun(3), 4, 1), chunks(begun(3), 4, 2)
    assert (int(before.updates), int(after.updates)) == (4, 8)
    seen = [
        int(learner.knowledge.memory.explored.sum() + learner.knowledge.memory.executed.sum())
        for learner in (before, after)
    ]
    assert seen[0] < seen[1] <= 8 * SMALL.lanes * SMALL.rollout * GAME.space.size


def branches(jaxpr: Any) -> list[int]:
    """How many ways every branch of a program has."""
    found = []
    for equation in jaxpr.eqns:
        parameters = jax.tree.leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns"))
        inner = [x.jaxpr if hasattr(x, "jaxpr") else x for x in parameters]
        found += [n for program in inner if hasattr(program, "eqns") for n in branches(program)]
        if equation.primitive.name == "cond":
            found.append(len(equation.params["branches"]))
    return found


def test_learners_side_by_side_branch_as_one_does() -> None:
    """If a branch were chosen by each learner for itself, all ways would be computed for all."""
    settings = replace(SMALL, capacity=64)
    learner = begun(0, settings)
    pair = jax.tree.map(lambda x: jnp.stack([x, x]), learner)
    one: Any = train_chunk
    several: Any = train_chunk_of_each
    alone = jax.make_jaxpr(lambda x: one.__wrapped__(METHOD, GAME, settings, 10, 2, 2, x))(learner)
    together = jax.make_jaxpr(lambda x: several.__wrapped__(METHOD, GAME, settings, 10, 2, 2, x))(pair)
    for program in (alone, together):
        assert branches(program.jaxpr).count(3) == 2, "room for 4, 16 or 64 transitions, in targets and in losses"
