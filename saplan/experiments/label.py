"""Labelled pairs (what is seen, ρ) from aimless play."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from saplan.games import Game
from saplan.games.sight import Sight

LANES, GAME_STEPS, PAUSE = 256, 600, 20
"""Games side by side, how long each lasts, and the steps between two pairs of one game."""
HABIT, LIKING, DISTASTE, NEVER = 2.0, 4.0, 6.0, -20.0
"""In logits: of the last move, of the best-liked change, how much likings differ, and of what does nothing."""


def draw_labels(
    game: Game[Any], sight: Sight, pairs: int, seed: int, show: Callable[[int], None] = lambda done: None
) -> tuple[np.ndarray, Float[np.ndarray, "pairs K"]]:
    """Pairs from games that are played at random.

    Whoever labels knows ρ, so every game likes each action that changes it more or less, and change as such: what is
    rare in one game is common in another; but none is made twice in a row, or a switch would be turned for ever. Other
    actions are alike, if they do anything, and often repeated: whoever turns at every step gets nowhere.
    """
    seen, rho, done = [], [], 0
    for key in jax.random.split(jax.random.key(seed), -(-pairs // (LANES * (GAME_STEPS // PAUSE)))):
        some, those = _play(game, sight, key)
        seen.append(np.asarray(some))
        rho.append(np.asarray(those))
        done += len(rho[-1])
        show(min(done, pairs))
    return np.concatenate(seen)[:pairs], np.concatenate(rho)[:pairs]


@partial(jax.jit, static_argnums=(0, 1))
def _play(game: Game[Any], sight: Sight, key: PRNGKeyArray) -> tuple[Array, Float[Array, "n K"]]:
    reset_key, one_key, all_key, order_key, play_key = jax.random.split(key, 5)
    state = jax.vmap(game.reset)(jax.random.split(reset_key, LANES))
    actions = jnp.arange(len(game.actions))
    distaste = jax.random.uniform(one_key, (LANES, len(game.actions))) + jax.random.uniform(all_key, (LANES, 1))

    def step(carry: tuple[Any, Array], key: PRNGKeyArray) -> tuple[tuple[Any, Array], None]:
        state, last = carry
        act_key, step_key = jax.random.split(key)
        keys = jax.random.split(step_key, LANES)
        tried = jax.vmap(lambda k, s: jax.vmap(lambda a: game.step(k, s, a))(actions))(keys, state)
        changes = _differs(game.truth, tried, state)
        moves = _differs(game.observe, tried, state)
        again = last[:, None] == actions
        liking = jnp.where(again, NEVER, LIKING - DISTASTE * distaste)
        logits = jnp.where(changes, liking, jnp.where(moves, HABIT * again, NEVER))
        action = jax.random.categorical(act_key, logits)
        return (jax.vmap(game.step)(keys, state, action), action), None

    def stretch(carry: tuple[Any, Array], key: PRNGKeyArray) -> tuple[tuple[Any, Array], tuple[Array, Array]]:
        pair = jax.vmap(sight)(carry[0]), jax.vmap(game.truth)(carry[0])
        return jax.lax.scan(step, carry, jax.random.split(key, PAUSE))[0], pair

    first = jnp.zeros(LANES, jnp.int32)
    _, pairs = jax.lax.scan(stretch, (state, first), jax.random.split(play_key, GAME_STEPS // PAUSE))
    order = jax.random.permutation(order_key, LANES * (GAME_STEPS // PAUSE))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[order], pairs)


def _differs(look: Callable[[Any], Array], tried: Any, state: Any) -> Bool[Array, "lanes actions"]:
    """Which actions change something."""
    before = jax.vmap(look)(state)
    return jnp.any(jax.vmap(jax.vmap(look))(tried) != before[:, None], axis=-1)
