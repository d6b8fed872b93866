"""Attempts: from ρ, at most M_max steps, ended by the first change of ρ or by the clock.

A lane plays one game after another. In each game attempts follow one another, the next starting where the last ended.
The first half of the lanes explores: any change will do. The second half executes: only the wished change counts.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int16, PRNGKeyArray

from saplan.algebra import Product
from saplan.games import Game
from saplan.model.settings import Settings


class Lanes(eqx.Module):
    """Where every lane stands."""

    state: Any
    rho: Float[Array, "lanes K"]
    wish: Float[Array, "lanes K"]
    """The change an executing lane is to make; the identity for an exploring one."""
    clock: Int[Array, "lanes"]
    """Steps since the attempt began."""
    age: Int[Array, "lanes"]
    """Steps since the game began."""


class Steps(eqx.Module):
    """What a rollout records, one entry per step and lane."""

    words: Int16[Array, "... slots"]
    rho: Float[Array, "... K"]
    wish: Float[Array, "... K"]
    action: Int[Array, "..."]
    delta: Float[Array, "... K"]
    """The change this step made."""
    after: Float[Array, "... K"]
    """ρ after the step, before any new map."""
    changed: Bool[Array, "..."]
    success: Bool[Array, "..."]
    """The attempt ended with the wished change (executing lanes)."""
    failure: Bool[Array, "..."]
    """The attempt ended otherwise."""
    clock: Int[Array, "..."]
    """Steps the attempt has taken, this one included."""
    game_over: Bool[Array, "..."]
    """A new map follows."""


Act = Callable[[PRNGKeyArray, Int16[Array, "lanes slots"], Float[Array, "lanes K"], Float[Array, "lanes K"]], Array]
"""(key, words, ρ, wish) → an action per lane."""
Wish = Callable[[PRNGKeyArray, Float[Array, "lanes K"]], Float[Array, "lanes K"]]
"""(key, ρ) → the change every lane is to try next."""


def exploring(lanes: int) -> Bool[Array, "lanes"]:
    """Which lanes explore."""
    return jnp.arange(lanes) < lanes // 2


def fresh_maps(game: Game[Any], key: PRNGKeyArray, lanes: int) -> Any:
    """One new map per lane."""
    return jax.vmap(game.reset)(jax.random.split(key, lanes))


def begin(game: Game[Any], key: PRNGKeyArray, lanes: int, wish: Wish) -> Lanes:
    """Every lane at the start of a game."""
    map_key, wish_key = jax.random.split(key)
    state = fresh_maps(game, map_key, lanes)
    rho = jax.vmap(game.attributes)(state)
    zero = jnp.zeros(lanes, jnp.int32)
    return Lanes(state, rho, wish(wish_key, rho), zero, zero)


def advance(
    game: Game[Any], settings: Settings, key: PRNGKeyArray, lanes: Lanes, fresh: Any, act: Act, wish: Wish
) -> tuple[Lanes, Steps]:
    """One step of every lane. A lane whose game ends goes on with its map from `fresh`."""
    count = lanes.age.shape[0]
    act_key, step_key, restart_key, wish_key = jax.random.split(key, 4)
    words = jax.vmap(game.observe)(lanes.state)
    action = act(act_key, words, lanes.rho, lanes.wish)
    state = jax.vmap(game.step)(jax.random.split(step_key, count), lanes.state, action)
    after = jax.vmap(game.attributes)(state)

    space, explores = game.space, exploring(count)
    delta = space.difference(after, lanes.rho)
    changed = jnp.any(after != lanes.rho, axis=-1)
    success = changed & ~explores & space.same_change(delta, lanes.wish)
    ended = changed | (lanes.clock + 1 >= settings.attempt_steps)
    failure = ended & jnp.where(explores, ~changed, ~success)
    gives_up = failure & (explores | (jax.random.uniform(restart_key, (count,)) < settings.restart))
    game_over = gives_up | (lanes.age + 1 >= settings.game_steps) | jax.vmap(game.over)(state)

    state = select(game_over, fresh, state)
    rho = jax.vmap(game.attributes)(state)
    starts = ended | game_over
    following = jnp.where(starts[:, None], wish(wish_key, rho), lanes.wish)
    zero = jnp.zeros_like(lanes.clock)
    new_lanes = Lanes(
        state, rho, following, jnp.where(starts, zero, lanes.clock + 1), jnp.where(game_over, zero, lanes.age + 1)
    )
    steps = Steps(
        words, lanes.rho, lanes.wish, action, delta, after, changed, success, failure, lanes.clock + 1, game_over
    )
    return new_lanes, steps


def select(mask: Bool[Array, "lanes"], yes: Any, no: Any) -> Any:
    """Lane by lane one of two trees."""
    pick = lambda a, b: jnp.where(mask.reshape(-1, *(1,) * (a.ndim - 1)), a, b)  # noqa: E731
    return jax.tree.map(pick, yes, no)


def roll_out(
    game: Game[Any], settings: Settings, key: PRNGKeyArray, lanes: Lanes, act: Act, wish: Wish
) -> tuple[Lanes, Steps]:
    """`settings.rollout` steps of every lane.

    Maps are drawn once per rollout: under `vmap` a reset inside the step would be paid in every step. A lane whose
    games end twice within one rollout plays its fresh map twice.
    """
    map_key, steps_key = jax.random.split(key)
    fresh = fresh_maps(game, map_key, lanes.age.shape[0])

    def one(lanes: Lanes, key: PRNGKeyArray) -> tuple[Lanes, Steps]:
        return advance(game, settings, key, lanes, fresh, act, wish)

    return jax.lax.scan(one, lanes, jax.random.split(steps_key, settings.rollout))


def identity_wish(space: Product, lanes: int) -> Float[Array, "lanes K"]:
    """The wish of lanes that have none."""
    return jnp.broadcast_to(space.identity, (lanes, space.size))
