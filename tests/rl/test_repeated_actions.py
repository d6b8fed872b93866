"""The trail: repetitions are counted, other places are not, and who walks in circles gets out."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from saplan.algebra.hashing import marks
from saplan.methods.executor import choose_actions
from saplan.rl.repeated_actions import empty_history, extend, repeats
from tests.methods.probe import GAME, LEFT, PRESS, RIGHT, TOGGLE, Lit, stacked, standing, trained

HERE, THERE = jnp.array([[1, 2, 3]], jnp.int16), jnp.array([[3, 2, 1]], jnp.int16)


def test_what_was_done_here_is_counted_here_alone() -> None:
    history = empty_history(1, 8)
    for action in (2, 2, 0):
        history = extend(history, HERE, 5, jnp.array([action]))
    assert repeats(history, HERE, 5, 4).tolist() == [[1, 0, 2, 0]]
    assert repeats(history, THERE, 5, 4).tolist() == [[0, 0, 0, 0]], "the same words in other slots are another place"
    assert repeats(history, HERE, 6, 4).tolist() == [[0, 0, 0, 0]], "another wish is another matter"


def test_the_oldest_is_forgotten() -> None:
    history = empty_history(1, 2)
    for action in (0, 1, 1):
        history = extend(history, HERE, 0, jnp.array([action]))
    assert repeats(history, HERE, 0, 3).tolist() == [[0, 2, 0]]


def test_fingerprints_do_not_collide_in_practice() -> None:
    words = jnp.array([(a, b, c) for a in range(20) for b in range(20) for c in range(20)], jnp.int16)
    seen = np.asarray(marks(words, 0, jnp.arange(5)[None]))
    assert len(np.unique(seen)) > 0.999 * seen.size
    assert (seen != 0).all()


def test_a_circle_is_left() -> None:
    # The state stands still: three times the same place. A sharp policy would do the same thing three times.
    agent = trained()
    settings = replace(agent.settings, repeat_cost=100.0)
    state, subgoal, label, history = (
        stacked(standing(2, 1, 1)),
        jnp.array([TOGGLE]),
        jnp.zeros(1, int),
        empty_history(1, 8),
    )
    taken = set()
    for key in jax.random.split(jax.random.key(0), 3):
        action, history = choose_actions(agent.policy, GAME, settings, key, state, subgoal, label, history)
        taken.add(int(action[0]))
    assert taken == {LEFT, RIGHT, PRESS}


def test_a_place_is_what_the_game_says() -> None:
    """Two places that look different, with the lamp on in both: what was done at one was done at the other."""
    agent = trained()
    settings = replace(agent.settings, repeat_cost=100.0)
    subgoal, label = jnp.array([TOGGLE]), jnp.zeros(1, int)
    for game, actions in ((Lit(), 2), (GAME, 1)):
        history, taken = empty_history(1, 8), set()
        for position in (1, 2):
            state = stacked(standing(position, 1, 1))
            action, history = choose_actions(
                agent.policy, game, settings, jax.random.key(0), state, subgoal, label, history
            )
            taken.add(int(action[0]))
        assert len(taken) == actions, "to the lamp it is to the right from both"
