"""Actions that can only spoil an attempt: what counts as one, and that execution does not take it."""

import functools
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from saplan.methods.structured.action_mask import ENOUGH, ActionEffects, count_effects, no_effects
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.update import train_chunk
from saplan.rl.rollout import Trajectory
from tests.methods.probe import COUNT_UP, LEFT, METHOD, PRESS, RIGHT, SMALL, TOGGLE, Corridor, CorridorState, standing
from tests.methods.structured.opinions import steps_of

SPILL = 3
SPILLED = (-1.0, 0.0)


@dataclass(frozen=True)
class Spilling(Corridor):
    """The corridor with an action that takes one off the count, anywhere."""

    actions: ClassVar[tuple[str, ...]] = (*Corridor.actions, "spill")

    def step(self, key: PRNGKeyArray, state: CorridorState, action: Int[Array, ""]) -> CorridorState:
        moved = super().step(key, state, action)
        spilled = ((action == SPILL) & (state.count > 0)).astype(jnp.int16)
        return replace(moved, count=moved.count - spilled)


@functools.cache
def trained() -> StructuredAgent:
    game, settings = Spilling(), replace(SMALL, mask_actions=True)
    learner = METHOD.begin(game, settings, jax.random.key(0))
    for _ in range(3):
        learner, _ = train_chunk(METHOD, game, settings, 12, 4, jnp.int32(4), learner)
    return METHOD.agent_of(learner, game, settings)


def entry(agent: StructuredAgent, change: tuple[float, float]) -> int:
    return int(agent.memory.index(agent.game.space, jnp.array(change)))


def test_only_the_action_that_spoils_is_masked() -> None:
    agent = trained()
    assert agent.action_mask is not None
    for change, spoils in ((COUNT_UP, True), (TOGGLE, True), (SPILLED, False)):
        row = agent.action_mask[entry(agent, change)]
        assert bool(row[SPILL]) == spoils
        assert not row[[LEFT, RIGHT]].any(), "they lead to another observation"
    assert agent.action_mask[entry(agent, SPILLED), PRESS], "nothing is spilled by pressing"


def test_execution_does_not_take_it() -> None:
    agent = trained()
    blank = replace(agent, settings=replace(agent.settings, temperature=100.0))  # as good as a random policy
    number, state = entry(agent, COUNT_UP), standing(2, 2, 1)
    taken = {blank.execute(jax.random.key(seed), state, number) for seed in range(60)}
    assert taken == {LEFT, RIGHT, PRESS}
    unmasked = replace(blank, effects=None)
    assert SPILL in {unmasked.execute(jax.random.key(seed), state, number) for seed in range(60)}


def test_the_executor_of_plans_does_not_take_it() -> None:
    agent = trained()
    states = jax.tree.map(lambda x: jnp.stack([x] * 64), standing(2, 1, 1))
    low, high = np.tile([3.0, -np.inf], (64, 1)), np.tile([3.0, np.inf], (64, 1))
    executor = agent.executor(states, type(agent.goal("count=3"))(low, high))
    executor.settings = replace(executor.settings, temperature=100.0)  # type: ignore[union-attr]
    executor.settle()
    assert SPILL not in np.asarray(executor.act(jax.random.key(0)))


def steps(**fields: Any) -> Trajectory:
    """Three steps of one lane: no change, a change, and the last one of a game."""
    return replace(
        steps_of(
            Corridor().space,
            delta=[[(0, 0)], [COUNT_UP], [(0, 0)]],
            rho=[[(0, 1)], [(0, 1)], [(1, 1)]],
            subgoal=[[COUNT_UP]] * 3,
            choice=[[0]] * 3,
            explores=[[True]] * 3,
            game_over=[[False], [False], [True]],
        ),
        **fields,
    )


def test_counts_changes_and_other_observations() -> None:
    action = jnp.array([[RIGHT], [PRESS], [LEFT]])
    seen = jnp.array([[[1, 0]], [[2, 0]], [[2, 0]]], jnp.int16)
    made = jnp.array([[-1], [0], [-1]])
    effects = count_effects(no_effects(3, 4), steps(action=action, observation=seen), made)
    assert np.asarray(effects.made)[PRESS].tolist() == [1, 0, 0, 0]
    assert int(effects.made.sum()) == 1
    assert np.asarray(effects.moved).tolist() == [0, 1, 0]


def test_little_evidence_masks_nothing() -> None:
    made = jnp.array([[ENOUGH - 1, 0], [0, 5]])
    assert not np.asarray(ActionEffects(made, jnp.zeros(2, jnp.int32)).mask()).any()
    known = ActionEffects(made.at[0, 0].add(1), jnp.zeros(2, jnp.int32)).mask()
    np.testing.assert_array_equal(known, [[False, False], [True, False]])
    moves = ActionEffects(made.at[0, 0].add(1), jnp.array([1, 0])).mask()
    assert not np.asarray(moves).any(), "an action that moves the agent may be of use"


def test_a_change_that_nothing_led_to_masks_nothing() -> None:
    effects = ActionEffects(jnp.array([[ENOUGH, 0], [ENOUGH, 0]]), jnp.zeros(2, jnp.int32))
    assert not np.asarray(effects.mask())[1].any()
