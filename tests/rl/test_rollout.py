"""Attempts: how each kind ends, and where the next one starts."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.algebra.hashing import marks
from saplan.rl.rollout import (
    Behaviour,
    Proposal,
    RolloutState,
    Trajectory,
    advance_lanes,
    begin_rollout,
    by_first_change,
    draw_handover,
    draw_step,
    fresh_maps,
    roll_out,
)
from saplan.rl.settings import Settings
from tests.methods.probe import COUNT_UP, GAME, LEFT, PRESS, SMALL, TOGGLE, Corridor, Lit, stacked, standing


class Deadly(Corridor):
    """Every step is the last."""

    def over(self, state):
        return jnp.ones((), bool)

    def lost(self, state):
        return jnp.ones((), bool)


RULES = replace(SMALL, lanes=2, attempt_steps=5, game_steps=20, restart=1.0, handover=True)
NEXT_WISH = (0.0, 1.0)
FRESH = standing(2, 2, 0)
AT_BUTTON, IN_BETWEEN = standing(0, 1, 1), standing(2, 1, 1)


def behaviour_of(game, fresh, action, subgoal) -> Behaviour[Any]:
    """Plays one action and proposes one subgoal; the one may be a function of the noise, the other of a key."""
    drawn = lambda x, chance: x(chance) if callable(x) else x  # noqa: E731
    return Behaviour(
        act=lambda noise, observation, place, lanes: (drawn(action, noise), jnp.zeros((len(noise), 1))),
        propose=lambda key, rho, wanted: Proposal(drawn(subgoal, key), jnp.zeros(len(rho), jnp.int32)),
        judge=by_first_change(game.space),
        fresh=fresh,
        fresh_rho=jax.vmap(game.attributes)(fresh),
    )


def once(
    state, action: int, *, explores=False, subgoal=COUNT_UP, clock=0, age=0, handover=0, rules=RULES, game=GAME
) -> tuple[RolloutState[Any], Trajectory]:
    """One step of two equal lanes; the first of each comes back."""
    twice = lambda x: jnp.stack([jnp.asarray(x)] * 2)  # noqa: E731
    lanes = RolloutState(
        state=stacked(state, state),
        rho=twice(game.attributes(state)),
        explores=twice(explores),
        subgoal=twice(jnp.array(subgoal)),
        choice=twice(jnp.int32(0)),
        clock=twice(clock),
        age=twice(age),
        handover=twice(handover),
        history=twice(jnp.zeros(4, jnp.uint32)),
    )
    behaviour = behaviour_of(game, stacked(FRESH, FRESH), twice(action), twice(jnp.array(NEXT_WISH)))
    following, steps, _ = advance_lanes(game, rules, draw_step(game, rules, jax.random.key(0)), lanes, behaviour)
    return jax.tree.map(lambda x: x[0], following), jax.tree.map(lambda x: x[0], steps)


def ends(steps: Trajectory) -> dict[str, bool]:
    return {name: True for name in ("changed", "success", "failure", "game_over") if getattr(steps, name)}


def stands(lanes: RolloutState[Any]) -> tuple[int, int, int]:
    return int(lanes.state.place), int(lanes.state.count), int(lanes.state.lamp)


def test_the_wished_change_is_a_success() -> None:
    lanes, steps = once(AT_BUTTON, PRESS, clock=3, age=7)
    assert ends(steps) == {"changed": True, "success": True}
    assert int(steps.clock) == 4
    assert steps.delta.tolist() == list(COUNT_UP)
    assert stands(lanes) == (0, 2, 1), "the next attempt starts where this one ended"
    assert (int(lanes.clock), int(lanes.age)) == (0, 8)
    assert lanes.subgoal.tolist() == list(NEXT_WISH)
    assert lanes.rho.tolist() == [2, 1]


def test_any_other_change_is_a_failure() -> None:
    lanes, steps = once(AT_BUTTON, PRESS, subgoal=TOGGLE, age=7)
    assert ends(steps) == {"changed": True, "failure": True, "game_over": True}
    assert stands(lanes) == stands_fresh()
    assert (int(lanes.clock), int(lanes.age)) == (0, 0)
    assert steps.after.tolist() == [2, 1], "what the step led to, not the new map"


def stands_fresh() -> tuple[int, int, int]:
    return int(FRESH.place), int(FRESH.count), int(FRESH.lamp)


def test_no_change_goes_on() -> None:
    lanes, steps = once(IN_BETWEEN, LEFT, clock=2, age=7)
    assert ends(steps) == {}
    assert stands(lanes) == (1, 1, 1)
    assert (int(lanes.clock), int(lanes.age)) == (3, 8)
    assert lanes.subgoal.tolist() == list(COUNT_UP)
    assert bool(steps.usable)


def test_the_clock_fails_an_execution() -> None:
    assert ends(once(IN_BETWEEN, LEFT, clock=3)[1]) == {}
    lanes, steps = once(IN_BETWEEN, LEFT, clock=4)
    assert ends(steps) == {"failure": True, "game_over": True}
    assert stands(lanes) == stands_fresh()
    assert not bool(steps.usable), "what would have come is not known"


@pytest.mark.parametrize(("clock", "subgoal"), [(4, COUNT_UP), (0, TOGGLE)])
def test_a_failed_execution_may_go_on(clock: int, subgoal: tuple[float, float]) -> None:
    state, action = (IN_BETWEEN, LEFT) if clock else (AT_BUTTON, PRESS)
    lanes, steps = once(state, action, clock=clock, subgoal=subgoal, age=7, rules=replace(RULES, restart=0.0))
    assert bool(steps.failure)
    assert not bool(steps.game_over)
    assert stands(lanes) == ((1, 1, 1) if clock else (0, 2, 1))
    assert (int(lanes.clock), int(lanes.age)) == (0, 8)
    assert lanes.subgoal.tolist() == list(NEXT_WISH)
    assert bool(steps.usable)


def test_the_wished_change_at_the_last_moment_is_a_success() -> None:
    assert ends(once(AT_BUTTON, PRESS, clock=4)[1]) == {"changed": True, "success": True}


def test_exploring_any_change_will_do() -> None:
    for subgoal in (COUNT_UP, TOGGLE):
        lanes, steps = once(AT_BUTTON, PRESS, explores=True, subgoal=subgoal, age=3, handover=10)
        assert ends(steps) == {"changed": True}
        assert stands(lanes) == (0, 2, 1)
        assert bool(lanes.explores)


@pytest.mark.parametrize("restart", [0.0, 1.0])
def test_exploring_in_vain_ends_the_game(restart: float) -> None:
    lanes, steps = once(
        IN_BETWEEN, LEFT, explores=True, clock=4, age=4, handover=10, rules=replace(RULES, restart=restart)
    )
    assert ends(steps) == {"failure": True, "game_over": True}
    assert stands(lanes) == stands_fresh()


def test_a_game_has_a_horizon_and_the_attempt_in_progress_finishes() -> None:
    """Cut off, an attempt has no outcome, and failures, which last longer, would be cut off more often."""
    lanes, steps = once(IN_BETWEEN, LEFT, clock=1, age=19)
    assert ends(steps) == {}
    assert (int(lanes.clock), int(lanes.age)) == (2, 20)
    lanes, steps = once(IN_BETWEEN, LEFT, clock=4, age=22)
    assert ends(steps) == {"failure": True, "game_over": True}
    assert not bool(steps.usable)
    assert stands(lanes) == stands_fresh()
    assert (int(lanes.clock), int(lanes.age)) == (0, 0)
    lanes, steps = once(AT_BUTTON, PRESS, age=19)
    assert ends(steps) == {"changed": True, "success": True, "game_over": True}
    assert bool(steps.usable)


def test_exploring_is_cut_off_by_the_horizon() -> None:
    _, steps = once(IN_BETWEEN, LEFT, clock=1, age=19, explores=True, handover=100)
    assert ends(steps) == {"game_over": True}
    assert ends(once(IN_BETWEEN, LEFT, clock=1, age=18, explores=True, handover=100)[1]) == {}


def test_a_death_is_a_failed_attempt() -> None:
    _, steps = once(IN_BETWEEN, LEFT, clock=1, game=Deadly())
    assert ends(steps) == {"failure": True, "game_over": True}
    assert bool(steps.lost)
    assert bool(steps.usable), "nothing follows a death, and that is known"


def test_every_executing_attempt_of_a_rollout_has_an_outcome() -> None:
    """By estimate nearly half of the impossible attempts were cut off by the horizon and never labelled."""
    rules = replace(RULES, lanes=64, rollout=200, restart=0.0, game_steps=12)
    start = eqx.tree_at(lambda x: x.explores, begin_rollout(GAME, rules, jax.random.key(1), 2), jnp.zeros(64, bool))
    fresh = fresh_maps(GAME, jax.random.key(3), 64)
    behaviour = behaviour_of(GAME, fresh, jnp.full(64, LEFT), jnp.tile(jnp.array(COUNT_UP), (64, 1)))
    never = Settings(lanes=64, rollout=200, attempt_steps=5, game_steps=12)
    _, steps, _ = jax.jit(lambda lanes: roll_out(GAME, never, jax.random.key(7), lanes, behaviour))(start)
    begun, judged = int((steps.clock == 1).sum()), int((steps.success | steps.failure).sum())
    assert begun - 64 <= judged <= begun, "all but those in progress at the end"


def test_a_game_in_which_nothing_is_left_ends() -> None:
    last = standing(0, 2, 1)
    lanes, steps = once(last, PRESS, game=Corridor(ends=True))
    assert ends(steps) == {"changed": True, "success": True, "game_over": True}
    assert stands(lanes) == stands_fresh()
    assert ends(once(last, PRESS)[1]) == {"changed": True, "success": True}


@pytest.mark.parametrize(("handover", "then_explores"), [(8, False), (9, True)])
def test_the_handover_is_at_an_age(handover: int, then_explores: bool) -> None:
    lanes, _ = once(AT_BUTTON, PRESS, explores=True, age=7, handover=handover)
    assert bool(lanes.explores) is then_explores
    assert int(lanes.handover) == handover


def test_an_attempt_is_not_handed_over_half_way() -> None:
    lanes, _ = once(IN_BETWEEN, LEFT, explores=True, clock=2, age=12, handover=5)
    assert bool(lanes.explores)


def test_a_new_game_draws_a_new_handover() -> None:
    drawn = draw_handover(replace(RULES, lanes=2000), jax.random.key(0))
    assert (int(drawn.min()), int(drawn.max())) == (0, 19)
    assert 8.5 < float(drawn.mean()) < 10.5
    lanes, _ = once(IN_BETWEEN, LEFT, clock=4, age=19, handover=1000)
    assert int(lanes.handover) < 20


def test_the_trail_is_of_places() -> None:
    for game, place in ((GAME, GAME.observe(IN_BETWEEN)), (Lit(), IN_BETWEEN.lamp[None])):
        lanes, _ = once(IN_BETWEEN, LEFT, game=game)
        assert int(lanes.history[-1]) == int(marks(place[None], 0, jnp.array([LEFT]))[0])


@pytest.mark.parametrize(("interleave", "explores"), [(0.0, 1.0), (1.0, 0.0), (0.25, 0.75)])
def test_executing_is_interleaved_with_exploring(interleave: float, explores: float) -> None:
    rules = replace(RULES, lanes=400, interleave=interleave)
    lanes = begin_rollout(GAME, rules, jax.random.key(0), 2)
    many = lambda x: jnp.broadcast_to(jnp.asarray(x), (400, *jnp.shape(x)))  # noqa: E731
    state = jax.tree.map(many, AT_BUTTON)
    lanes = replace(lanes, state=state, rho=jax.vmap(GAME.attributes)(state), handover=many(1000))
    behaviour = behaviour_of(GAME, state, many(PRESS), many(jnp.array(NEXT_WISH)))
    following, steps, _ = advance_lanes(GAME, rules, draw_step(GAME, rules, jax.random.key(1)), lanes, behaviour)
    assert bool(steps.explores.all())
    assert abs(float(following.explores.mean()) - explores) < 0.07


def test_the_papers_games_are_played_by_one_policy_alone() -> None:
    assert draw_handover(replace(RULES, lanes=4, handover=False), jax.random.key(0)).tolist() == [20, 20, 0, 0]


def test_everybody_begins_by_exploring() -> None:
    lanes = begin_rollout(GAME, replace(RULES, lanes=6), jax.random.key(0), 2)
    assert lanes.explores.all()
    assert not lanes.clock.any()
    assert not lanes.age.any()
    np.testing.assert_array_equal(lanes.rho, jax.vmap(GAME.attributes)(lanes.state))


def test_a_rollout_keeps_its_books() -> None:
    """Chance acts and wishes for a while; every record follows from the one before it."""
    rules = replace(RULES, lanes=16, rollout=400, restart=0.5)
    draw = lambda noise: jnp.argmax(noise, axis=-1)  # noqa: E731
    subgoal = lambda key: jnp.array([COUNT_UP, TOGGLE])[jax.random.randint(key, (16,), 0, 2)]  # noqa: E731
    start = begin_rollout(GAME, rules, jax.random.key(1), 2)
    behaviour = behaviour_of(GAME, fresh_maps(GAME, jax.random.key(3), 16), draw, subgoal)
    last, steps, _ = jax.jit(lambda lanes: roll_out(GAME, rules, jax.random.key(7), lanes, behaviour))(start)
    record = jax.tree.map(np.asarray, steps)
    age, met = np.zeros(16, int), set()
    for t in range(400):
        ended = record.changed[t] | (record.clock[t] == rules.attempt_steps)
        same = record.delta[t] == record.subgoal[t]
        success = record.changed[t] & ~record.explores[t] & same.all(axis=1)
        np.testing.assert_array_equal(record.success[t], success)
        np.testing.assert_array_equal(record.failure[t], ended & ~success & ~(record.explores[t] & record.changed[t]))
        np.testing.assert_array_equal(record.changed[t], (record.after[t] != record.rho[t]).any(axis=1))
        old = (age >= rules.game_steps - 1) & (ended | record.explores[t])
        assert record.game_over[t][old | (record.failure[t] & record.explores[t])].all()
        met |= set(zip(record.success[t], record.failure[t], record.explores[t], record.game_over[t], strict=True))
        if t + 1 < 400:
            goes_on, over = ~(ended | record.game_over[t]), record.game_over[t]
            np.testing.assert_array_equal(record.rho[t + 1][~over], record.after[t][~over])
            np.testing.assert_array_equal(record.clock[t + 1], np.where(goes_on, record.clock[t] + 1, 1))
            np.testing.assert_array_equal(record.subgoal[t + 1][goes_on], record.subgoal[t][goes_on])
            np.testing.assert_array_equal(record.explores[t + 1][goes_on], record.explores[t][goes_on])
        age = np.where(record.game_over[t], 0, age + 1)
    np.testing.assert_array_equal(last.age, age)
    assert len(met) >= 8, "all kinds of end were met"
