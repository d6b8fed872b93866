"""Random play of many games at once, whole trajectories kept. Compiled parts are shared by the tests."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from saplan.games import Game, task_set
from saplan.goals import Goal

GAMES, STEPS = 500, 200
assert GAMES * STEPS >= 100_000

TASKS = 2048


class Play(NamedTuple):
    """`states`, `words`, `rhos` and `over` have one more entry in time (axis 0) than `actions`; games are axis 1."""

    states: Any
    words: np.ndarray
    rhos: np.ndarray
    over: np.ndarray
    actions: np.ndarray


@functools.cache
def resetter(game: Game[Any]) -> Callable[[jax.Array], Any]:
    return jax.jit(jax.vmap(game.reset))


def fresh(game: Game[Any], seed: int) -> Any:
    """`GAMES` states just after `reset`."""
    return resetter(game)(jax.random.split(jax.random.key(seed), GAMES))


@functools.cache
def fixed_tasks(game: Game[Any]) -> tuple[Any, Goal]:
    return task_set(game, TASKS, seed=1)


def choose(game: Game[Any], state: Any, target: jax.Array, dice: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A random action with a drift, as bare random walks change too little, and where the agent is heading.

    It mostly heads for an item (for another one once in a while) and mostly interacts where it stands on one.
    """
    agent, places = state.ground.agent, state.items
    present = places >= 0
    chosen = places[jnp.argmax(jnp.cumsum(present) > dice[0] * jnp.sum(present))]
    stale = (target == agent) | ~jnp.any(places == target) | (dice[1] < 0.1)
    target = jnp.where(stale, chosen, target)
    vertical = jnp.where(target // 32 < agent // 32, 0, 1)
    horizontal = jnp.where(target % 32 < agent % 32, 2, 3)
    straight = jnp.where(target // 32 == agent // 32, 1.0, jnp.where(target % 32 == agent % 32, 0.0, 0.5))
    walk = jnp.where(dice[2] < straight, horizontal, vertical)
    stands = jnp.any(places == agent)
    drift = jnp.where(stands & (dice[3] < 0.4), game.actions.index("interact"), walk)
    anything = jnp.floor(dice[4] * len(game.actions)).astype(jnp.int32)
    return jnp.where((dice[3] < 0.7) & (target >= 0), drift, anything), target


@functools.cache
def long_play(game: Game[Any]) -> Play:
    """`GAMES` random games of `STEPS` steps."""

    def look(state: Any) -> tuple[Any, jax.Array, jax.Array, jax.Array]:
        return state, game.observe(state), game.attributes(state), game.over(state)

    def one_step(carry: tuple[Any, jax.Array], chance: tuple[jax.Array, jax.Array]) -> tuple[Any, Any]:
        state, target = carry
        key, dice = chance
        action, target = choose(game, state, target, dice)
        state = game.step(key, state, action)
        return (state, target), (look(state), action)

    def one_game(state: Any, keys: jax.Array, dice: jax.Array) -> Any:
        nowhere = jnp.full((), -1, jnp.int16)
        after, actions = jax.lax.scan(one_step, (state, nowhere), (keys, dice))[1]
        return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), look(state), after), actions

    keys = jax.random.split(jax.random.key(8), (GAMES, STEPS))
    dice = jnp.asarray(np.random.default_rng(9).random((GAMES, STEPS, 5), np.float32))
    run = jax.jit(jax.vmap(one_game, out_axes=1))
    (states, words, rhos, over), actions = jax.tree.map(np.asarray, run(fresh(game, 7), keys, dice))
    return Play(states, words, rhos, over, actions)
