"""Labelled pairs (what is seen, ρ) from aimless play."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from saplan.games import Game
from saplan.games.sight import Sight

LANES, GAME_STEPS, PAUSE = 256, 600, 20
"""Games side by side, how long each lasts, and the steps between two pairs of one game."""


def draw_labels(
    game: Game[Any], sight: Sight, pairs: int, seed: int, show: Callable[[int], None] = lambda done: None
) -> tuple[np.ndarray, Float[np.ndarray, "pairs K"]]:
    """Pairs from games that are played at random, each with a taste of its own for every action.

    So some games hardly trade, some hardly move, and what is rare in one is common in another.
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
    reset_key, taste_key, order_key, play_key = jax.random.split(key, 4)
    state = jax.vmap(game.reset)(jax.random.split(reset_key, LANES))
    taste = jax.random.normal(taste_key, (LANES, len(game.actions)))

    def step(state: Any, key: PRNGKeyArray) -> tuple[Any, None]:
        act_key, step_key = jax.random.split(key)
        action = jax.random.categorical(act_key, taste)
        return jax.vmap(game.step)(jax.random.split(step_key, LANES), state, action), None

    def stretch(state: Any, key: PRNGKeyArray) -> tuple[Any, tuple[Array, Array]]:
        pair = jax.vmap(sight)(state), jax.vmap(game.truth)(state)
        return jax.lax.scan(step, state, jax.random.split(key, PAUSE))[0], pair

    _, pairs = jax.lax.scan(stretch, state, jax.random.split(play_key, GAME_STEPS // PAUSE))
    order = jax.random.permutation(order_key, LANES * (GAME_STEPS // PAUSE))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[order], pairs)
