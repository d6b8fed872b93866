"""Attempts: from ρ, at most M_max steps, ended by the first change of ρ or by the clock.

A lane plays one game after another. In each game attempts follow one another, the next starting where the last ended.
An exploring attempt may end with any change; an executing one is to make the wished change and no other. A method whose
wishes are not changes brings a judge of its own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from saplan.algebra import Delta, Product
from saplan.games import Game
from saplan.rl.history import History, empty_history, extend
from saplan.rl.settings import Settings


class RolloutState(eqx.Module):
    """Where every lane stands."""

    state: Any
    rho: Float[Array, "lanes K"]
    explores: Bool[Array, "lanes"]
    """Whether the present attempt explores."""
    subgoal: Float[Array, "lanes W"]
    """What an executing lane is to bring about: a change, or whatever the method wishes for."""
    clock: Int[Array, "lanes"]
    """Steps since the attempt began."""
    age: Int[Array, "lanes"]
    """Steps since the game began."""
    handover: Int[Array, "lanes"]
    """The age from which all attempts of the game execute; those before explore, unless interleaved."""
    history: History
    """What the present attempt has done so far."""


class Trajectory(eqx.Module):
    """What a rollout records, one entry per step and lane."""

    sight: Shaped[Array, "... slots"]
    rho: Float[Array, "... K"]
    explores: Bool[Array, "..."]
    subgoal: Float[Array, "... W"]
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
    lost: Bool[Array, "..."]
    """Nothing can be done any more, as after a death."""


Act = Callable[
    [PRNGKeyArray, Shaped[Array, "lanes slots"], Shaped[Array, "lanes signs"], RolloutState], Int[Array, "lanes"]
]
"""(key, what every lane sees, by what it knows its place again, lanes) → an action per lane."""
Propose = Callable[[PRNGKeyArray, Float[Array, "lanes K"]], Float[Array, "lanes W"]]
"""(key, ρ) → what every lane would try next, were it to execute."""


class StepOutcome(NamedTuple):
    """What a step means for the attempt it belongs to."""

    hit: Bool[Array, "lanes"]
    """The wish has come true."""
    ends: Bool[Array, "lanes"]
    """The attempt is over, hit or not."""
    closes: Bool[Array, "lanes"] | bool = False
    """The game is over too."""


Judge = Callable[[Float[Array, "lanes K"], Float[Array, "lanes K"], Float[Array, "lanes W"]], StepOutcome]
"""(ρ before, ρ after, wish) → what that means."""


def by_first_change(space: Product) -> Judge:
    """The paper's attempt: any change ends it, the wished one is a hit."""

    def judge(before: Float[Array, "lanes K"], after: Float[Array, "lanes K"], subgoal: Delta) -> StepOutcome:
        changed = space.changed(before, after)
        return StepOutcome(changed & space.same_change(space.difference(after, before), subgoal), changed)

    return judge


def fresh_maps(game: Game[Any], key: PRNGKeyArray, lanes: int) -> Any:
    """One new map per lane."""
    return jax.vmap(game.reset)(jax.random.split(key, lanes))


def draw_handover(settings: Settings, key: PRNGKeyArray) -> Int[Array, "lanes"]:
    """When each lane's next game passes from exploring to executing."""
    lanes = settings.lanes
    if not settings.explores:
        return jnp.zeros(lanes, jnp.int32)
    if settings.handover:
        return jax.random.randint(key, (lanes,), 0, settings.game_steps)
    # The paper's way: a game is played by one policy alone.
    return jnp.where(jnp.arange(lanes) < lanes // 2, settings.game_steps, 0)


def begin(game: Game[Any], settings: Settings, key: PRNGKeyArray, subgoal_size: int) -> RolloutState:
    """Every lane at the start of a game, exploring: nothing can be wished for yet."""
    map_key, handover_key = jax.random.split(key)
    state = fresh_maps(game, map_key, settings.lanes)
    rho = jax.vmap(game.attributes)(state)
    zero = jnp.zeros(settings.lanes, jnp.int32)
    subgoal = jnp.zeros((settings.lanes, subgoal_size))
    everyone = jnp.ones(settings.lanes, bool)
    handover = draw_handover(settings, handover_key)
    return RolloutState(
        state, rho, everyone, subgoal, zero, zero, handover, empty_history(settings.lanes, settings.attempt_steps)
    )


def advance(
    game: Game[Any],
    settings: Settings,
    key: PRNGKeyArray,
    lanes: RolloutState,
    fresh: Any,
    act: Act,
    propose: Propose,
    judge: Judge,
) -> tuple[RolloutState, Trajectory]:
    """One step of every lane. A lane whose game ends goes on with its map from `fresh`."""
    act_key, step_key, restart_key, subgoal_key, handover_key = jax.random.split(key, 5)
    sight = jax.vmap(game.observe)(lanes.state)
    place = jax.vmap(game.place)(lanes.state)
    action = act(act_key, sight, place, lanes)
    state = jax.vmap(game.step)(jax.random.split(step_key, settings.lanes), lanes.state, action)
    after = jax.vmap(game.attributes)(state)

    delta = game.space.difference(after, lanes.rho)
    changed = game.space.changed(lanes.rho, after)
    verdict = judge(lanes.rho, after, lanes.subgoal)
    success = verdict.hit & ~lanes.explores
    lost = jax.vmap(game.lost)(state)
    ended = verdict.ends | (lanes.clock + 1 >= settings.attempt_steps) | lost
    failure = ended & jnp.where(lanes.explores, ~changed, ~success)
    resigned = failure & (lanes.explores | (jax.random.uniform(restart_key, (settings.lanes,)) < settings.restart))
    # An executing attempt finishes after the horizon: cut off, it would have no outcome, and since failures last longer
    # than successes the edge detector would see too few of them.
    too_old = (lanes.age + 1 >= settings.game_steps) & (ended | lanes.explores)
    game_over = resigned | verdict.closes | too_old | jax.vmap(game.over)(state)
    steps = Trajectory(
        sight, lanes.rho, lanes.explores, lanes.subgoal, action, delta, after, changed, success, failure,
        lanes.clock + 1, game_over, lost,
    )  # fmt: skip

    state = select(game_over, fresh, state)
    rho = jax.vmap(game.attributes)(state)
    starts = ended | game_over
    age = jnp.where(game_over, 0, lanes.age + 1)
    handover = jnp.where(game_over, draw_handover(settings, handover_key), lanes.handover)
    explores = age < handover
    if settings.interleave:
        explores &= jax.random.uniform(jax.random.fold_in(handover_key, 1), (settings.lanes,)) >= settings.interleave
    following = RolloutState(
        state=state,
        rho=rho,
        explores=jnp.where(starts, explores, lanes.explores),
        subgoal=jnp.where(starts[:, None], propose(subgoal_key, rho), lanes.subgoal),
        clock=jnp.where(starts, 0, lanes.clock + 1),
        age=age,
        handover=handover,
        # A change is a new situation, also where it does not end the attempt: words do not say what is held.
        history=jnp.where((starts | changed)[:, None], 0, extend(lanes.history, place, 0, action)),
    )
    return following, steps


def select(mask: Bool[Array, "lanes"], yes: Any, no: Any) -> Any:
    """Lane by lane one of two trees."""
    pick = lambda a, b: jnp.where(mask.reshape(-1, *(1,) * (a.ndim - 1)), a, b)  # noqa: E731
    return jax.tree.map(pick, yes, no)


def roll_out(
    game: Game[Any],
    settings: Settings,
    key: PRNGKeyArray,
    lanes: RolloutState,
    fresh: Any,
    act: Act,
    propose: Propose,
    judge: Judge,
) -> tuple[RolloutState, Trajectory]:
    """`settings.rollout` steps of every lane.

    The maps of games to come, `fresh`, are drawn once per rollout: under `vmap` a reset inside the step would be paid
    in every step. A lane whose games end twice within one rollout plays its fresh map twice.
    """

    def one(lanes: RolloutState, key: PRNGKeyArray) -> tuple[RolloutState, Trajectory]:
        return advance(game, settings, key, lanes, fresh, act, propose, judge)

    return jax.lax.scan(one, lanes, jax.random.split(key, settings.rollout))


def usable(steps: Trajectory) -> Bool[Array, "..."]:
    """Steps whose outcome is known: a game that was cut off says nothing of what would have come, a death does."""
    return steps.changed | ~steps.game_over | steps.lost
