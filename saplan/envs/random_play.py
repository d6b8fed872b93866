"""Random play in a world, with all actions tried at a few of the steps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from saplan.games.game import Game, State

TRIALS = 12
"""Steps at which actions are tried, most of them early: on the host, going back means replaying an episode."""
TRIED, LATEST = 400, 10_000
"""Bounds where there are many actions: actions that one step tries in all its lanes together, and the number of actions
times the latest step at which they are tried."""
FIRST, NEXT = 4, 32
"""Actions that are tried at a time, until each attribute has stayed under one of them: mostly the first few suffice."""
Show = Callable[[str], None]


@dataclass(frozen=True)
class RandomPlay:
    """Arrays over (time, lanes) from random actions."""

    rho: np.ndarray
    """Before every step and after the last."""
    over: np.ndarray
    """Whether the episode is over; later steps of the lane do not count."""
    caused: np.ndarray
    """Whether every coordinate stayed the same under some action, where actions were tried; else True."""
    tried: np.ndarray
    """Steps, by time and lane, at which actions were tried."""
    action: np.ndarray
    seen: np.ndarray
    """A hash of the observation before every step."""

    @property
    def alive(self) -> np.ndarray:
        """Whether a step was taken in an episode that was not over."""
        return ~np.logical_or.accumulate(self.over, axis=0)[:-1]

    def changes(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Values of coordinate k before and after each step that changed it."""
        before, after = (rho[self.alive] for rho in (self.rho[:-1, :, k], self.rho[1:, :, k]))
        moved = before != after
        return before[moved], after[moved]


def play_at_random(world: Game[Any], steps: int, lanes: int, seed: int, show: Show = lambda line: None) -> RandomPlay:
    """Random steps in every lane, with other actions tried at a few of them."""
    reset_key, act_key, step_key = jax.random.split(jax.random.key(seed), 3)
    state = jax.jit(jax.vmap(world.reset))(jax.random.split(reset_key, lanes))
    action = jax.random.randint(act_key, (steps, lanes), 0, len(world.actions))
    latest = min(steps - 1, max(TRIALS, LATEST // len(world.actions)))
    trials = set(np.geomspace(1, latest, TRIALS).astype(int).tolist())
    some = min(lanes, max(1, TRIED // len(world.actions)))
    caused, tried = np.ones((steps, lanes, world.space.size), bool), np.zeros((steps, lanes), bool)
    rows: list[tuple[Array, ...]] = [perceive(world, state)]
    seen = []
    for t, key in enumerate(jax.random.split(step_key, steps)):
        if t % max(1, steps // 5) == 0:
            show(f"playing at random: {t} of {steps} steps in {lanes} lanes")
        seen.append([hash(one.tobytes()) for one in np.asarray(rows[-1][1])])
        rows[-1] = rows[-1][::2]
        if t in trials:
            caused[t, :some], tried[t, :some] = _stays(world, key, jax.tree.map(lambda x: x[:some], state), seed), True
        state = step_lanes(world, key, state, action[t])
        rows.append(perceive(world, state))
    rows[-1] = rows[-1][::2]
    rho, over = (np.stack([np.asarray(row[k]) for row in rows]) for k in (0, 1))
    return RandomPlay(rho, over, caused, tried, np.asarray(action), np.array(seen))


@eqx.filter_jit
def perceive(world: Game[State], state: State) -> tuple[Array, Array, Array]:
    """Attributes, observation, and whether the episode is over, in every lane."""
    return jax.vmap(world.attributes)(state), jax.vmap(world.observe)(state), jax.vmap(world.over)(state)


@eqx.filter_jit
def step_lanes(world: Game[State], key: PRNGKeyArray, state: State, action: Array) -> State:
    """One step of every lane."""
    return jax.vmap(world.step)(jax.random.split(key, len(action)), state, action)


def _stays(world: Game[State], key: PRNGKeyArray, state: State, seed: int) -> np.ndarray:
    """Whether each coordinate of every lane stays the same under some action. Exogenous ones need not be tried."""
    order = np.random.default_rng(seed).permutation(len(world.actions))
    stays = np.broadcast_to(np.asarray(world.space.exogenous), _rho(world, state).shape)
    for part in np.split(order, range(FIRST, len(order), NEXT)):
        stays = stays | np.asarray(_stays_under(world, key, state, jnp.asarray(part)))
        if stays.all():
            break
    return stays


@eqx.filter_jit
def _rho(world: Game[State], state: State) -> Array:
    return jax.vmap(world.attributes)(state)


@eqx.filter_jit
def _stays_under(world: Game[State], key: PRNGKeyArray, state: State, actions: Array) -> Array:
    """Whether each coordinate of every lane stays the same under one of these actions."""
    before = _rho(world, state)

    def after(action: Array) -> Array:
        keys = jax.random.split(key, len(before))
        return _rho(world, jax.vmap(world.step, in_axes=(0, 0, None))(keys, state, action))

    return jnp.any(jax.vmap(after)(actions) == before, axis=0)
