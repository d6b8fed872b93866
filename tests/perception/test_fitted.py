"""A game seen through f̂: what is believed, what is kept, and that success is judged by the truth."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.games import Mining, Switches
from saplan.games.game import uncertain_attributes
from saplan.methods.structured.learner import Structured
from saplan.methods.structured.settings import MISREADINGS, structured_settings
from saplan.perception.fitted import FittedGame, Perceived
from saplan.perception.observation import Observer
from saplan.rl.networks import CellEyes


class Told:
    """A regressor that says what it is told to."""

    def __init__(self, rho: Any, sure: Any) -> None:
        self.rho, self.sure = jnp.asarray(rho, jnp.float32), jnp.asarray(sure, jnp.float32)

    def __call__(self, seen: Any) -> tuple[Any, Any]:
        return self.rho[None], self.sure[None]


def seen_as(game: Any, rho: Any, sure: Any) -> FittedGame:
    return FittedGame(game, Told(rho, sure), "words", f"{rho} {sure}")


def look(game: Any, before: Any, rho: Any, sure: Any) -> list[float]:
    """What is perceived after a step, when f̂ says this."""
    state = Perceived(game.reset(jax.random.key(0)), jnp.asarray(before, jnp.float32), jnp.ones(game.space.size))
    return seen_as(game, rho, sure).step(jax.random.key(1), state, jnp.int32(0)).rho.tolist()


def test_a_policy_of_pictures_sees_nothing_else() -> None:
    """Neither the words of the map nor the true attributes reach the policy."""
    game = FittedGame(Switches(), Told([0] * 7, [1.0] * 7), "picture", "told")
    assert (game.picture, game.cell, game.slots, game.vocabulary) == ((64, 64, 3), 3, 64 * 64 * 3, 0)
    state = game.reset(jax.random.key(0))
    seen = game.observe(state)
    assert seen.dtype == jnp.uint8
    assert np.array_equal(seen.reshape(64, 64, 3), Observer(game.game, "picture")(state.state))
    assert np.array_equal(game.place(state), seen)
    assert game.attributes(state).tolist() == [0] * 7
    words = seen_as(Switches(), [0] * 7, [1.0] * 7)
    assert (words.picture, words.cell, words.vocabulary) == (None, 0, Switches().vocabulary)
    method, settings = Structured(), structured_settings(game)
    policy = method.begin(game, replace(settings, lanes=2, hidden=8, minibatches=2), jax.random.key(0)).policy
    assert policy.network.table is None
    assert isinstance(policy.network.eyes, CellEyes)


BEFORE = [2, 2, 2, 0, 0, 0, 1]


def test_a_sure_change_is_believed() -> None:
    assert look(Switches(), BEFORE, [1, 2, 2, 1, 0, 0, 1], [1.0] * 7) == [1, 2, 2, 1, 0, 0, 1]


def test_changes_are_believed_together_or_not_at_all() -> None:
    half_sure = [0.5, 1, 1, 1, 1, 1, 1]
    assert look(Switches(), BEFORE, [1, 2, 2, 1, 0, 0, 1], half_sure) == BEFORE
    # A coordinate that is unsure but reads as before keeps nobody from believing the others.
    assert look(Switches(), BEFORE, [2, 2, 2, 0, 0, 0, 2], half_sure) == [2, 2, 2, 0, 0, 0, 2]


def test_a_real_does_not_flicker() -> None:
    assert look(Mining(), [6.0, 5.0, 0], [6.2, 4.9, 0], [1.0] * 3) == [6.0, 5.0, 0]
    assert look(Mining(), [6.0, 5.0, 0], [6.6, 4.9, 0], [1.0] * 3) == pytest.approx([6.6, 5.0, 0])


def test_equal_files_make_equal_games() -> None:
    one, same, other = (seen_as(Switches(), [k] * 7, [1] * 7) for k in (0, 0, 1))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != Switches()


def test_the_truth_judges_and_the_plan_says_what_it_does_not_know() -> None:
    game = seen_as(Switches(), [0, 0, 0, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1, 0.6])
    state = game.reset(jax.random.key(3))
    assert game.attributes(state).tolist() == [0, 0, 0, 1, 0, 0, 0]
    true = np.asarray(game.truth(state))
    assert true[3] == 0
    assert true[:3].sum() > 0
    ((name, confidence),) = uncertain_attributes(game, state)
    assert name == "switch"
    assert confidence == pytest.approx(0.6)

    settings = structured_settings(game)
    assert settings.rare == MISREADINGS
    assert structured_settings(game.game).rare == 0
    method = Structured()
    agent = method.agent_of(method.begin(game, settings, jax.random.key(0)), game, settings)
    goal = agent.goal("red=1")
    assert agent.plan(state, goal).uncertain_attributes == uncertain_attributes(game, state)
    # The agent thinks that it holds a red one already; it does not, and that is what counts.
    states = jax.tree.map(lambda x: x[None], state)
    goals = jax.tree.map(lambda x: np.asarray(x)[None], goal)
    result = agent.executor(states, goals).run(3, 0)
    assert not result.success[0]
