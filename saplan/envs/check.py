"""Checks of a world by random play: attributes, blocks, hidden causes, short or unrepeatable episodes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from saplan.algebra import Block, Cyclic, Exogenous, Integer, Natural, Real
from saplan.games.game import Game, State
from saplan.games.world_errors import readable_errors

MANY = 12
"""Different changes of a count beyond which it is hardly a count."""
ENOUGH = 10
"""Observed cases that a statement needs."""
REPLAYED = 16
"""Episodes that are played twice."""
TRIALS = 12
"""Steps at which actions are tried, most of them early: on the host, going back means replaying an episode."""
TRIED, LATEST = 400, 10_000
"""With many actions they are tried in fewer lanes and in earlier steps: one step tries at most so many actions in all
its lanes, and the number of actions times the latest such step is at most so large."""
FIRST, NEXT = 4, 32
"""Actions that are tried at a time, until each attribute has stayed under one of them: mostly the first few suffice."""
OFTEN = 0.3
"""Share of the trials at which an attribute changes under every action, beyond which it never stays."""
RANDOM = 0.05
"""Share of repeated actions that led to another change, beyond which moves are random."""
SOON = 3
"""A visit is young up to this many times the median age at which the change comes."""
Show = Callable[[str], None]
Values = tuple[float, ...]
Counts = tuple[tuple[int, int], tuple[int, int]]
"""(changes, steps) of young visits, and of old ones."""


@dataclass(frozen=True)
class Finding:
    """One statement about a world."""

    wrong: bool
    """Whether it must be fixed; otherwise it is only useful to know."""
    text: str


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


def check_world(
    world: Game[Any], steps: int = 500, lanes: int = 32, seed: int = 0, show: Show = lambda line: None
) -> list[Finding]:
    """Findings about a world from random play, those that must be fixed first; `show` receives the progress."""
    with readable_errors(world):
        played = play_at_random(world, steps, lanes, seed, show)
        checks = (_outside, _wrong_blocks, _uncaused, _random_moves, _hidden, _short)
        found = [finding for check in checks for finding in check(world, played)]
        found += _not_repeatable(world, seed)
    return sorted(found, key=lambda finding: not finding.wrong)


def findings_text(found: list[Finding]) -> list[str]:
    """The findings as lines for people."""
    lines = [f"{'✗' if finding.wrong else '·'} {finding.text}" for finding in found]
    if not any(finding.wrong for finding in found):
        lines.append("✓ no problems found")
    return lines


def play_at_random(world: Game[Any], steps: int, lanes: int, seed: int, show: Show = lambda line: None) -> RandomPlay:
    """Random steps in every lane, with other actions tried at a few of them."""
    reset_key, act_key, step_key = jax.random.split(jax.random.key(seed), 3)
    state = jax.jit(jax.vmap(world.reset))(jax.random.split(reset_key, lanes))
    action = jax.random.randint(act_key, (steps, lanes), 0, len(world.actions))
    latest = min(steps - 1, max(TRIALS, LATEST // len(world.actions)))
    trials = set(np.geomspace(1, latest, TRIALS).astype(int).tolist())
    some = min(lanes, max(1, TRIED // len(world.actions)))
    caused, tried = np.ones((steps, lanes, world.space.size), bool), np.zeros((steps, lanes), bool)
    rows: list[tuple[Array, ...]] = [_perceive(world, state)]
    seen = []
    for t, key in enumerate(jax.random.split(step_key, steps)):
        if t % max(1, steps // 5) == 0:
            show(f"playing at random: {t} of {steps} steps in {lanes} lanes")
        seen.append([hash(one.tobytes()) for one in np.asarray(rows[-1][1])])
        rows[-1] = rows[-1][::2]
        if t in trials:
            caused[t, :some], tried[t, :some] = _stays(world, key, jax.tree.map(lambda x: x[:some], state), seed), True
        state = _step(world, key, state, action[t])
        rows.append(_perceive(world, state))
    rows[-1] = rows[-1][::2]
    rho, over = (np.stack([np.asarray(row[k]) for row in rows]) for k in (0, 1))
    return RandomPlay(rho, over, caused, tried, np.asarray(action), np.array(seen))


@eqx.filter_jit
def _perceive(world: Game[State], state: State) -> tuple[Array, Array, Array]:
    return jax.vmap(world.attributes)(state), jax.vmap(world.observe)(state), jax.vmap(world.over)(state)


@eqx.filter_jit
def _step(world: Game[State], key: PRNGKeyArray, state: State, action: Array) -> State:
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


def _coordinates(world: Game[Any]) -> Iterator[tuple[int, str, Block]]:
    yield from ((k, *pair) for k, pair in enumerate(zip(world.space.names, world.space.blocks, strict=True)))


def _outside(world: Game[Any], played: RandomPlay) -> Iterator[Finding]:
    """Values that are not elements of their blocks."""
    for k, name, block in _coordinates(world):
        values = played.rho[..., k]
        bad = ~(np.asarray(block.contains(jnp.asarray(values))) & np.isfinite(values))
        if bad.any():
            shown = ", ".join(f"{value:g}" for value in np.unique(values[bad])[:3])
            yield Finding(True, f"{name}: {shown} is not in {block.symbol} ({bad.sum()} of {bad.size} values)")


def _wrong_blocks(world: Game[Any], played: RandomPlay) -> Iterator[Finding]:
    """Blocks that do not fit the observed values."""
    for k, name, block in _coordinates(world):
        before, after = played.changes(k)
        if not len(before):
            yield Finding(False, f"{name}: never changed; goals that name it need luck or longer training")
        elif isinstance(block, Natural | Integer):
            yield from _not_a_count(name, before, after)
        elif isinstance(block, Cyclic) and block.q > 2:
            yield from _not_a_cycle(name, block, before, after)
        elif isinstance(block, Real) and np.all(played.rho[..., k] == np.round(played.rho[..., k])):
            yield Finding(True, f"{name}: all values were integers; a Natural or an Integer plans exactly")


def _not_a_count(name: str, before: np.ndarray, after: np.ndarray) -> Iterator[Finding]:
    changes, often = np.unique(after - before, return_counts=True)
    least, most = min(before.min(), after.min()), max(before.max(), after.max())
    back = (before == most) & (after == least)
    if most - least >= 2 and back.sum() >= 3 and not np.any((after < before) & ~back):
        q = int(most - least) + 1
        yield Finding(True, f"{name}: goes up, and from {most:g} back to {least:g}: a cycle, Cyclic({q}), not a count")
    elif len(changes) > MANY and often.max() < 0.5 * often.sum():
        yield Finding(True, f"{name}: changed by {len(changes)} different amounts; is it a quantity, Real(resolution)?")


def _not_a_cycle(name: str, block: Cyclic, before: np.ndarray, after: np.ndarray) -> Iterator[Finding]:
    last = block.q - 1
    wraps = (before == last) & (after == 0) | (before == 0) & (after == last)
    at_ends = np.isin(before, (0, last))
    if at_ends.sum() >= 2 * ENOUGH and not wraps.any():
        text = f"{name}: never went from {last} to 0 or back in {at_ends.sum()} tries; a count, not a cycle?"
        yield Finding(True, text)


def _uncaused(world: Game[Any], played: RandomPlay) -> Iterator[Finding]:
    """Changes that happen under every action; if all attributes have them, the world does not fit."""
    names, exogenous = world.space.names, world.space.exogenous
    free = (~played.caused & played.alive[..., None]).sum(axis=(0, 1))
    steps = (played.alive & played.tried).sum()
    if np.all(exogenous | (free > OFTEN * steps)):
        text = "changes by itself under every action" if len(names) == 1 else "change by themselves under every action"
        yield Finding(
            True,
            f"this world does not fit: {', '.join(names)} {text}, so no change is left to plan with; name attributes "
            "that stay until an action changes them, such as regions or stages of a task",
        )
        return
    for k, name, block in _coordinates(world):
        if free[k] and not block.exogenous:
            yield Finding(True, f"{name}: changed under every action at {free[k]} steps; mark it Exogenous(...)")
        elif isinstance(block, Exogenous) and not len(played.changes(k)[0]):
            yield Finding(False, f"{name}: is marked Exogenous and never changed")


def _random_moves(world: Game[Any], played: RandomPlay) -> Iterator[Finding]:
    """Different changes after the same action at the same observation of the same game.

    A variable outside the observation would decide the same way each time in one game; chance does not.
    """
    space = world.space
    rho = np.where(space.exogenous, 0, played.rho)
    deltas = np.asarray(space.snap(space.difference(jnp.asarray(rho[1:]), jnp.asarray(rho[:-1]))))
    last: dict[tuple[int, int, bytes], bytes] = {}
    again, other = 0, 0
    for t, lane in np.argwhere(played.alive):
        case = int(lane), int(played.action[t, lane]), played.seen[t, lane].tobytes() + rho[t, lane].tobytes()
        change = deltas[t, lane].tobytes()
        again += case in last
        other += last.get(case, change) != change
        last[case] = change
    if other >= ENOUGH and other >= RANDOM * again:
        yield Finding(
            False,
            f"moves are random: the same action at the same observation led to another change {other} of {again} "
            "times; train with StructuredSettings(random_moves=True), which plans with the chances of every action",
        )


def _hidden(world: Game[Any], played: RandomPlay) -> Iterator[Finding]:
    """A change that comes soon or never at the same ρ, so that a variable outside ρ decides.

    A visit is a stretch of one lane at one ρ. If all visits were alike, a change that often comes early would also come
    late in the visits that last long.
    """
    visits = _visits(world, played)
    for (rho, delta), (early, late) in sorted(visits.items(), key=lambda item: -item[1][0][0])[:200]:
        (hits, exposed), (late_hits, late_exposed) = early, late
        if hits < ENOUGH or not late_exposed:
            continue
        expected = hits / exposed * late_exposed
        if expected >= ENOUGH and late_hits < 0.1 * expected:
            text = world.space.format_delta(np.array(delta, np.float32))
            yield Finding(
                True,
                f"{text} at {world.space.format(rho)}: came {hits} times early in a visit, but only {late_hits} times "
                f"late, where {expected:.0f} would be expected; a variable outside the attributes decides",
            )
            return


def _visits(world: Game[Any], played: RandomPlay) -> dict[tuple[Values, Values], Counts]:
    """For every (ρ, δρ): how often the change came to young and to old visits, and how many steps those had."""
    space, alive = world.space, played.alive
    rho = np.where(space.exogenous, 0, played.rho)
    changed = np.any(rho[1:] != rho[:-1], axis=-1) & alive
    deltas = np.asarray(space.snap(space.difference(jnp.asarray(rho[1:]), jnp.asarray(rho[:-1]))))
    ages: dict[tuple[Values, Values], list[int]] = {}
    stays: dict[Values, list[int]] = {}
    for lane in range(rho.shape[1]):
        began = 0
        for t in range(rho.shape[0] - 1):
            if not alive[t, lane]:
                break
            if changed[t, lane] or t == rho.shape[0] - 2:
                here = tuple(rho[t, lane].tolist())
                stays.setdefault(here, []).append(t + 1 - began)
                if changed[t, lane]:
                    ages.setdefault((here, tuple(deltas[t, lane].tolist())), []).append(t + 1 - began)
                began = t + 1
    counts: dict[tuple[Values, Values], Counts] = {}
    for (here, delta), times in ages.items():
        young, stay, when = SOON * np.median(times), np.array(stays[here]), np.array(times)
        soon = int(np.minimum(stay, young).sum())
        early, late = int((when <= young).sum()), int((when > young).sum())
        counts[here, delta] = (early, soon), (late, int(stay.sum()) - soon)
    return counts


def _short(world: Game[Any], played: RandomPlay) -> Iterator[Finding]:
    """Episodes that end before an agent can learn from them."""
    length = np.median(np.where(played.over.any(axis=0), played.over.argmax(axis=0), len(played.over)))
    if length < 10:
        yield Finding(True, f"episodes end after {length:.0f} steps of random play; can they continue (`endless`)?")


def _not_repeatable(world: Game[Any], seed: int) -> list[Finding]:
    """Different results from the same seed and actions, played twice with other episodes in between."""
    keys = jax.random.split(jax.random.key(seed + 1), REPLAYED)
    actions = jax.random.randint(jax.random.key(seed + 2), (20, REPLAYED), 0, len(world.actions))

    def episode() -> list[tuple[Array, Array, Array]]:
        state = jax.jit(jax.vmap(world.reset))(keys)
        steps = [_perceive(world, state)]
        for t, key in enumerate(jax.random.split(jax.random.key(seed + 3), len(actions))):
            state = _step(world, key, state, actions[t])
            steps.append(_perceive(world, state))
        return steps

    same = [
        all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))
        for one, other in zip(episode(), episode(), strict=True)
    ]
    if not same[0]:
        return [Finding(True, "the same seed starts differently after other episodes: reset does not clear all state")]
    if not all(same):
        return [Finding(True, "the same seed and actions lead to different states: unseeded randomness")]
    return []
