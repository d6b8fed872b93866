"""Attempts: from ρ, at most M_max steps, ended by the first change of ρ or by the clock.

A lane plays one game after another. In each game attempts follow one another, the next starting where the last ended.
An exploring attempt may end with any change; an executing one is to make the wished change and no other.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int16, PRNGKeyArray

from saplan.games import Game
from saplan.model.settings import Settings


class Lanes(eqx.Module):
    """Where every lane stands."""

    state: Any
    rho: Float[Array, "lanes K"]
    explores: Bool[Array, "lanes"]
    """Whether the present attempt explores."""
    wish: Float[Array, "lanes K"]
    """The change an executing lane is to make."""
    clock: Int[Array, "lanes"]
    """Steps since the attempt began."""
    age: Int[Array, "lanes"]
    """Steps since the game began."""
    handover: Int[Array, "lanes"]
    """The age from which the game's attempts execute; those before explore."""


class Steps(eqx.Module):
    """What a rollout records, one entry per step and lane."""

    words: Int16[Array, "... slots"]
    rho: Float[Array, "... K"]
    explores: Bool[Array, "..."]
    wish: Float[Array, "... K"]
    action: Int[Array, "..."]
    delta: Float[Array, "... K"]
    """The change this step made."""
    after: Float[Array, "... K"]
    """ρ after the step, before any new map."""
    changed: Bool[Array, "..."]
    success: Bool[Array, "..."]
    """The attempt ended with the wished change (never when exploring)."""
    failure: Bool[Array, "..."]
    """The attempt ended without what it was for."""
    clock: Int[Array, "..."]
    """Steps the attempt has taken, this one included."""
    game_over: Bool[Array, "..."]
    """A new map follows."""


Act = Callable[[PRNGKeyArray, Int16[Array, "lanes slots"], Lanes], Int[Array, "lanes"]]
"""(key, words, lanes) → an action per lane."""
Propose = Callable[[PRNGKeyArray, Float[Array, "lanes K"]], Float[Array, "lanes K"]]
"""(key, ρ) → the change every lane would try next, were it to execute."""


def fresh_maps(game: Game[Any], key: PRNGKeyArray, lanes: int) -> Any:
    """One new map per lane."""
    return jax.vmap(game.reset)(jax.random.split(key, lanes))


def draw_handover(settings: Settings, key: PRNGKeyArray) -> Int[Array, "lanes"]:
    """When each lane's next game passes from exploring to executing."""
    lanes = settings.lanes
    if settings.handover:
        return jax.random.randint(key, (lanes,), 0, settings.game_steps)
    # The paper's way: a game is played by one policy alone.
    return jnp.where(jnp.arange(lanes) < lanes // 2, settings.game_steps, 0)


def begin(game: Game[Any], settings: Settings, key: PRNGKeyArray) -> Lanes:
    """Every lane at the start of a game, exploring: nothing can be wished for yet."""
    map_key, handover_key = jax.random.split(key)
    state = fresh_maps(game, map_key, settings.lanes)
    rho = jax.vmap(game.attributes)(state)
    zero = jnp.zeros(settings.lanes, jnp.int32)
    wish = jnp.broadcast_to(game.space.identity, rho.shape)
    everyone = jnp.ones(settings.lanes, bool)
    return Lanes(state, rho, everyone, wish, zero, zero, draw_handover(settings, handover_key))


def advance(
    game: Game[Any], settings: Settings, key: PRNGKeyArray, lanes: Lanes, fresh: Any, act: Act, propose: Propose
) -> tuple[Lanes, Steps]:
    """One step of every lane. A lane whose game ends goes on with its map from `fresh`."""
    act_key, step_key, restart_key, wish_key, handover_key = jax.random.split(key, 5)
    words = jax.vmap(game.observe)(lanes.state)
    action = act(act_key, words, lanes)
    state = jax.vmap(game.step)(jax.random.split(step_key, settings.lanes), lanes.state, action)
    after = jax.vmap(game.attributes)(state)

    delta = game.space.difference(after, lanes.rho)
    changed = jnp.any(after != lanes.rho, axis=-1)
    success = changed & ~lanes.explores & game.space.same_change(delta, lanes.wish)
    ended = changed | (lanes.clock + 1 >= settings.attempt_steps)
    failure = ended & jnp.where(lanes.explores, ~changed, ~success)
    resigned = failure & (lanes.explores | (jax.random.uniform(restart_key, (settings.lanes,)) < settings.restart))
    game_over = resigned | (lanes.age + 1 >= settings.game_steps) | jax.vmap(game.over)(state)
    steps = Steps(
        words, lanes.rho, lanes.explores, lanes.wish, action, delta, after, changed, success, failure,
        lanes.clock + 1, game_over,
    )  # fmt: skip

    state = select(game_over, fresh, state)
    rho = jax.vmap(game.attributes)(state)
    starts = ended | game_over
    age = jnp.where(game_over, 0, lanes.age + 1)
    handover = jnp.where(game_over, draw_handover(settings, handover_key), lanes.handover)
    following = Lanes(
        state=state,
        rho=rho,
        explores=jnp.where(starts, age < handover, lanes.explores),
        wish=jnp.where(starts[:, None], propose(wish_key, rho), lanes.wish),
        clock=jnp.where(starts, 0, lanes.clock + 1),
        age=age,
        handover=handover,
    )
    return following, steps


def select(mask: Bool[Array, "lanes"], yes: Any, no: Any) -> Any:
    """Lane by lane one of two trees."""
    pick = lambda a, b: jnp.where(mask.reshape(-1, *(1,) * (a.ndim - 1)), a, b)  # noqa: E731
    return jax.tree.map(pick, yes, no)


def roll_out(
    game: Game[Any], settings: Settings, key: PRNGKeyArray, lanes: Lanes, act: Act, propose: Propose
) -> tuple[Lanes, Steps]:
    """`settings.rollout` steps of every lane.

    Maps are drawn once per rollout: under `vmap` a reset inside the step would be paid in every step. A lane whose
    games end twice within one rollout plays its fresh map twice.
    """
    map_key, steps_key = jax.random.split(key)
    fresh = fresh_maps(game, map_key, settings.lanes)

    def one(lanes: Lanes, key: PRNGKeyArray) -> tuple[Lanes, Steps]:
        return advance(game, settings, key, lanes, fresh, act, propose)

    return jax.lax.scan(one, lanes, jax.random.split(steps_key, settings.rollout))


def usable(steps: Steps) -> Bool[Array, "..."]:
    """Steps whose outcome is known: a game cut off without a change says nothing of what would have come."""
    return steps.changed | ~steps.game_over
