"""Labelled pairs (what is seen, ρ) from all over a game."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from saplan.games import Game
from saplan.perception.observation import Sight

BATCH = 4096
WALK = 12
"""Random steps from where a state was drawn."""


def draw_labels(
    game: Game[Any], sight: Sight, pairs: int, seed: int, show: Callable[[int], None] = lambda done: None
) -> tuple[np.ndarray, Float[np.ndarray, "pairs K"]]:
    """Pairs of states that are drawn independently by `Game.anywhere`, each on a map of its own, and some random steps
    on from there: a fresh map never has the agent where a thing is.
    """
    seen, rho = [], []
    for key in jax.random.split(jax.random.key(seed), -(-pairs // BATCH)):
        some, those = _draw(game, sight, jax.random.split(key, BATCH))
        seen.append(np.asarray(some))
        rho.append(np.asarray(those))
        show(min(len(rho) * BATCH, pairs))
    return np.concatenate(seen)[:pairs], np.concatenate(rho)[:pairs]


@partial(jax.jit, static_argnums=(0, 1))
def _draw(game: Game[Any], sight: Sight, keys: Key[Array, "n"]) -> tuple[Array, Float[Array, "n K"]]:
    def some_state(key: PRNGKeyArray) -> Any:
        start_key, walk_key = jax.random.split(key)
        return jax.lax.scan(step, game.anywhere(start_key), jax.random.split(walk_key, WALK))[0]

    def step(state: Any, key: PRNGKeyArray) -> tuple[Any, None]:
        act_key, step_key = jax.random.split(key)
        return game.step(step_key, state, jax.random.randint(act_key, (), 0, len(game.actions))), None

    states = jax.vmap(some_state)(keys)
    return jax.vmap(sight)(states), jax.vmap(game.truth)(states)
