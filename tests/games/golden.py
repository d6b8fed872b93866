"""Digests of random play: the words that agents see must stay the same for agents to stay valid."""

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from saplan.games import Game


def digest_of_play(game: Game[Any], games: int = 16, steps: int = 60) -> str:
    """SHA-256 of the words and of ρ along random play from fixed seeds."""

    def play(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        reset_key, *keys = jax.random.split(key, steps + 1)

        def step(state: Any, key: jax.Array) -> tuple[Any, tuple[jax.Array, jax.Array]]:
            act_key, step_key = jax.random.split(key)
            action = jax.random.randint(act_key, (), 0, len(game.actions))
            following = game.step(step_key, state, action)
            return following, (game.observe(following), game.attributes(following))

        return jax.lax.scan(step, game.reset(reset_key), jnp.stack(keys))[1]

    words, rho = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), games))
    data = np.asarray(words, "<i2").tobytes() + np.round(np.asarray(rho), 3).astype("<f4").tobytes()
    return hashlib.sha256(data).hexdigest()
