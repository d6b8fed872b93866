"""Transitions of task-free play: raw attributes before and after every step, and what happens under every action."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int, PRNGKeyArray

from saplan.errors import InputError
from saplan.games.game import Game, State
from saplan.games.world_errors import readable_errors
from saplan.perception.rare_states import SLOTS, Lanes, RareStates, either

GAME_STEPS = 200
"""Steps after which a fresh game begins."""
TRIALS, TRIED = 16, 2
"""Steps of each game, and lanes, in which all actions are compared: on the host, going back means replaying. All lanes
have the same clock, so many steps find more than many lanes.
"""
PART = 100
"""Steps of play after which a host is asked for the states that are kept: it drops old ones."""
UNCAUSED = 3
"""Trials in which an attribute changed under every action, before it counts as exogenous."""
BY_ITSELF = 0.3
"""Share of the changes that come under every action, above which it is exogenous."""
Act = Callable[[PRNGKeyArray, Any], Int[Array, "lanes"]]
"""Actions for a batch of states."""


@dataclass(frozen=True)
class Transitions:
    """Steps of play within games, in any order, and trials of every action from the same state."""

    names: tuple[str, ...]
    before: Float32[np.ndarray, "n K"]
    after: Float32[np.ndarray, "n K"]
    action: Int[np.ndarray, "n"]
    actions: int
    """Number of actions."""
    moves: Bool[np.ndarray, "m K"]
    """Whether each coordinate changed under some action, in every trial."""
    stays: Bool[np.ndarray, "m K"]
    """Whether it stayed the same under some action."""

    def __post_init__(self) -> None:
        if not len(self.before):
            raise InputError("there are no transitions: every game was over at its start")
        if not (np.isfinite(self.before).all() and np.isfinite(self.after).all()):
            bad = ~(np.isfinite(self.before) & np.isfinite(self.after)).all(axis=0)
            raise InputError(f"{self.names[int(bad.argmax())]} is not a finite number everywhere")

    def first(self, steps: int) -> "Transitions":
        """The beginning of the play, with as large a part of the trials."""
        tried = max(1, round(len(self.moves) * steps / len(self.before)))
        parts = self.before[:steps], self.after[:steps], self.action[:steps]
        return Transitions(self.names, *parts, self.actions, self.moves[:tried], self.stays[:tried])

    def __add__(self, other: "Transitions") -> "Transitions":
        """Both together."""
        parts = ("before", "after", "action", "moves", "stays")
        joined: dict[str, Any] = {part: np.concatenate([getattr(self, part), getattr(other, part)]) for part in parts}
        return replace(self, **joined)


def play_freely(
    world: Game[Any],
    steps: int,
    seed: int = 0,
    lanes: int = 64,
    act: Act | None = None,
    game_steps: int = GAME_STEPS,
    rare: bool = True,
) -> Transitions:
    """About `steps` steps of play without a task, in games of at most `game_steps`; `act` is random unless given.

    With `rare`, half of the games begin where an attribute has a rare value (`rare_states.py`).
    """
    lanes = min(lanes, max(1, steps // game_steps))
    games = max(1, round(steps / (lanes * game_steps)))
    kept = RareStates[Any](seed, SLOTS if rare else 0)
    rows: list[tuple[np.ndarray, ...]] = []
    tried: list[tuple[np.ndarray, np.ndarray]] = []
    with readable_errors(world):
        for key in jax.random.split(jax.random.key(seed), games):
            reset_key, cut_key, play_key, *trial_keys = jax.random.split(key, 3 + TRIALS)
            state, origin = kept.begin(_begin(world, reset_key, lanes), lanes, np.zeros(0, np.int64))
            # At random times: all games have the same clock, and hunger may come every 25 steps.
            cuts = np.sort(jax.random.randint(cut_key, (TRIALS,), 0, game_steps))
            parts = in_parts(np.diff(cuts, prepend=0, append=game_steps), [None, *trial_keys])
            for (length, trial_key), part in zip(parts, jax.random.split(play_key, len(parts)), strict=True):
                if trial_key is not None:
                    state, origin = _restarted(world, kept, trial_key, state, origin)
                    few = jax.tree.map(lambda x: x[:TRIED], state)
                    moves, stays, alive = (np.asarray(x) for x in _try_all(world, trial_key, few))
                    tried.append((moves[alive], stays[alive]))
                    kept.drifting = by_themselves(*(np.concatenate(parts) for parts in zip(*tried, strict=True)))
                state, played = _play(world, act, part, state, game_steps, jnp.asarray(length))
                rows.append(tuple(np.asarray(x)[:length] for x in played))
                if length:
                    _, after, _, alive = rows[-1]
                    origin = origin._replace(depth=origin.depth + length)
                    kept.count(after[alive])
                    kept.keep(state, after[-1], origin, alive[-1] & ~np.asarray(_over(world, state)))
                    if kept.states is not None:
                        world.recall(kept.states)  # a host drops what has not been asked for lately
    before, after, action, alive = (np.concatenate([row[k].reshape(-1, *row[k].shape[2:]) for row in rows])
                                    for k in range(4))  # fmt: skip
    moves, stays = (np.concatenate([pair[k] for pair in tried]) for k in (0, 1))
    names, actions = world.space.names, len(world.actions)
    return Transitions(names, before[alive], after[alive], action[alive], actions, moves, stays)


@eqx.filter_jit
def _begin(world: Game[State], key: PRNGKeyArray, lanes: int) -> State:
    state: State = jax.vmap(world.reset)(jax.random.split(key, lanes))
    return state


def in_parts(lengths: Int[np.ndarray, "n"], keys: Sequence[Any]) -> list[tuple[int, Any]]:
    """Lengths of play of at most `PART` steps; the first part of each length has its key."""
    parts: list[tuple[int, Any]] = []
    for length, key in zip(lengths.tolist(), keys, strict=True):
        parts += [(min(PART, length), key), *((min(PART, length - done), None) for done in range(PART, length, PART))]
    return parts


def by_themselves(moves: Bool[np.ndarray, "m K"], stays: Bool[np.ndarray, "m K"]) -> Bool[np.ndarray, "K"]:
    """Which coordinates change under every action, by trials of all actions."""
    free = (moves & ~stays).sum(axis=0)
    found: Bool[np.ndarray, "K"] = (free >= UNCAUSED) & (free >= BY_ITSELF * moves.sum(axis=0))
    return found


def _restarted(
    world: Game[State], kept: RareStates[State], key: PRNGKeyArray, state: State, origin: Lanes
) -> tuple[State, Lanes]:
    """The lanes, with other games in place of those that are over."""
    over = np.asarray(_over(world, state))
    if not over.any():
        return state, origin
    fresh, begun = kept.begin(_begin(world, key, len(over)), len(over), origin.root[~over])
    both = (np.where(over, one, other) for one, other in zip(begun, origin, strict=True))
    return either(jnp.asarray(over), fresh, state), Lanes(*both)


@eqx.filter_jit
def _over(world: Game[State], state: State) -> Bool[Array, "lanes"]:
    return jax.vmap(world.over)(state)


@eqx.filter_jit
def _play(
    world: Game[State], act: Act | None, key: PRNGKeyArray, state: State, most: int, steps: Int[Array, ""]
) -> tuple[State, tuple[Array, ...]]:
    """Steps of all lanes; rows (before, after, action, whether the game was not over), of which the rest is empty."""

    def one(state: State, key: PRNGKeyArray) -> tuple[State, tuple[Array, ...]]:
        act_key, step_key = jax.random.split(key)
        over, before = jax.vmap(world.over)(state), jax.vmap(world.attributes)(state)
        action = act(act_key, state) if act else jax.random.randint(act_key, over.shape, 0, len(world.actions))
        state = jax.vmap(world.step)(jax.random.split(step_key, len(over)), state, action)
        return state, (before, jax.vmap(world.attributes)(state), action, ~over)

    def none(state: State, key: PRNGKeyArray) -> tuple[State, tuple[Array, ...]]:
        before = jax.vmap(world.attributes)(state)
        lanes = len(before)
        return state, (before, before, jnp.zeros(lanes, jnp.int32), jnp.zeros(lanes, bool))

    def maybe(state: State, step: tuple[Array, PRNGKeyArray]) -> tuple[State, tuple[Array, ...]]:
        played: tuple[State, tuple[Array, ...]] = jax.lax.cond(step[0] < steps, one, none, state, step[1])
        return played

    return jax.lax.scan(maybe, state, (jnp.arange(most), jax.random.split(key, most)))


@eqx.filter_jit
def _try_all(world: Game[State], key: PRNGKeyArray, state: State) -> tuple[Array, Array, Array]:
    """Whether each coordinate changes under some action, whether it stays under some, and whether the game goes on."""
    before = jax.vmap(world.attributes)(state)
    keys = jax.random.split(key, len(before))  # the same for every action: drift is the same, too

    def stays(action: Int[Array, ""]) -> Bool[Array, "lanes K"]:
        after = jax.vmap(world.step)(keys, state, jnp.full(len(before), action))
        return jax.vmap(world.attributes)(after) == before

    same = jax.lax.map(stays, jnp.arange(len(world.actions)))  # compiled once, however many actions there are
    return ~same.all(axis=0), same.any(axis=0), ~jax.vmap(world.over)(state)
