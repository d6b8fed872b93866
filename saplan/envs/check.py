"""What would go wrong with a world, found by random play and said in plain words."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from saplan.algebra import Cyclic, Exogenous, Integer, Natural, Real
from saplan.games import Game
from saplan.games.world_errors import readable_errors

MANY = 12
"""Different changes of a count beyond which it is hardly one."""
ENOUGH = 10
"""Times that something must have happened before anything is said of it."""
AGAIN = 16
"""Episodes that are played twice."""
TRIALS = 12
"""Moments at which all actions are tried, most of them early: on the host, to go back is to play an episode again."""
Show = Callable[[str], None]


@dataclass(frozen=True)
class Finding:
    """Something that is worth knowing about a world."""

    wrong: bool
    """Whether it must be mended; else it is good to know."""
    text: str


@dataclass(frozen=True)
class Played:
    """Random play: arrays over (time, lanes)."""

    rho: np.ndarray
    """Before every step, one moment more than there are steps."""
    over: np.ndarray
    """Whether the episode is over at a moment; nothing that follows in this lane counts."""
    caused: np.ndarray
    """Whether every coordinate stayed as it was under some other action, where that was tried; else True."""

    @property
    def alive(self) -> np.ndarray:
        """Steps that were taken in an episode that was not over."""
        return ~np.logical_or.accumulate(self.over, axis=0)[:-1]


def check_world(
    world: Game[Any], steps: int = 500, lanes: int = 32, seed: int = 0, show: Show = lambda line: None
) -> list[Finding]:
    """Plays at random and says what would go wrong, and then what is good to know; `show` is told of the progress."""
    with readable_errors(world):
        played = play_at_random(world, steps, lanes, seed, show)
        found = [finding for look in (_outside, _blocks, _by_itself, _hidden, _ends) for finding in look(world, played)]
        found += _again(world, seed)
    return sorted(found, key=lambda finding: not finding.wrong)


def play_at_random(world: Game[Any], steps: int, lanes: int, seed: int, show: Show = lambda line: None) -> Played:
    """So many random steps in every lane, with all actions tried at a few moments."""
    reset_key, act_key, step_key = jax.random.split(jax.random.key(seed), 3)
    state = jax.jit(jax.vmap(world.reset))(jax.random.split(reset_key, lanes))
    action = jax.random.randint(act_key, (steps, lanes), 0, len(world.actions))
    trials = set(np.geomspace(1, steps - 1, TRIALS).astype(int).tolist())
    rows: list[tuple[Array, ...]] = [_seen(world, state)[::2]]
    caused = []
    for t, key in enumerate(jax.random.split(step_key, steps)):
        if t % max(1, steps // 5) == 0:
            show(f"playing at random: {t} of {steps} steps in {lanes} lanes")
        following, stays = _one(world, key, state, action[t], t in trials)
        rows.append(_seen(world, following)[::2])
        caused.append(stays)
        state = following
    rho, over = (np.stack([np.asarray(row[k]) for row in rows]) for k in (0, 1))
    return Played(rho, over, np.stack([np.asarray(row) for row in caused]))


@eqx.filter_jit
def _seen(world: Game[Any], state: Any) -> tuple[Array, Array, Array]:
    return jax.vmap(world.attributes)(state), jax.vmap(world.observe)(state), jax.vmap(world.over)(state)


@eqx.filter_jit
def _one(world: Game[Any], key: PRNGKeyArray, state: Any, action: Array, all_actions: bool) -> tuple[Any, Array]:
    """One step of every lane, and whether each coordinate would have stayed under some action."""
    keys = jax.random.split(key, len(action))
    step = jax.vmap(world.step)
    before = jax.vmap(world.attributes)(state)
    stays = jnp.ones(before.shape, bool)
    if all_actions:
        each = [step(keys, state, jnp.full_like(action, k)) for k in range(len(world.actions))]
        stays = jnp.stack([jax.vmap(world.attributes)(one) == before for one in each]).any(axis=0)
    return step(keys, state, action), stays


def _outside(world: Game[Any], played: Played) -> Iterator[Finding]:
    """Values that are no elements of their blocks."""
    for k, (name, block) in enumerate(zip(world.space.names, world.space.blocks, strict=True)):
        values = played.rho[..., k]
        bad = ~(np.asarray(block.contains(jnp.asarray(values))) & np.isfinite(values))
        if bad.any():
            shown = ", ".join(f"{value:g}" for value in np.unique(values[bad])[:3])
            yield Finding(True, f"{name}: {shown} is not in {block.symbol} ({bad.sum()} of {bad.size} moments)")


def _blocks(world: Game[Any], played: Played) -> Iterator[Finding]:
    """Blocks that do not fit what is seen."""
    for k, (name, block) in enumerate(zip(world.space.names, world.space.blocks, strict=True)):
        before, after = (moments[played.alive] for moments in (played.rho[:-1, :, k], played.rho[1:, :, k]))
        moved = before != after
        if not moved.any():
            yield Finding(False, f"{name}: never changed; goals that ask for it need luck or longer training")
            continue
        if isinstance(block, Natural | Integer):
            yield from _whole(name, before[moved], after[moved])
        elif isinstance(block, Cyclic) and block.q > 2:
            yield from _cycle(name, block, before[moved], after[moved])
        elif isinstance(block, Real) and np.all(played.rho[..., k] == np.round(played.rho[..., k])):
            yield Finding(True, f"{name}: only whole numbers were seen; a Natural or an Integer plans exactly")


def _whole(name: str, before: np.ndarray, after: np.ndarray) -> Iterator[Finding]:
    changes, often = np.unique(after - before, return_counts=True)
    least, most = min(before.min(), after.min()), max(before.max(), after.max())
    back = (before == most) & (after == least)
    if most - least >= 2 and back.sum() >= 3 and not np.any((after < before) & ~back):
        q = int(most - least) + 1
        yield Finding(True, f"{name}: goes up, and from {most:g} back to {least:g}: a cycle, Cyclic({q}), not a count")
    elif len(changes) > MANY and often.max() < 0.5 * often.sum():
        yield Finding(True, f"{name}: changed by {len(changes)} different amounts; is it a quantity, Real(resolution)?")


def _cycle(name: str, block: Cyclic, before: np.ndarray, after: np.ndarray) -> Iterator[Finding]:
    ends = (before == block.q - 1) & (after == 0) | (before == 0) & (after == block.q - 1)
    at_ends = np.isin(before, (0, block.q - 1))
    if at_ends.sum() >= 2 * ENOUGH and not ends.any():
        yield Finding(
            True, f"{name}: never went from {block.q - 1} to 0 or back in {at_ends.sum()} tries; a count, not a cycle?"
        )


def _by_itself(world: Game[Any], played: Played) -> Iterator[Finding]:
    """Changes that no action prevents."""
    for k, (name, block) in enumerate(zip(world.space.names, world.space.blocks, strict=True)):
        free = (~played.caused[..., k] & played.alive).sum()
        if free and not block.exogenous:
            yield Finding(True, f"{name}: changed whatever the agent did at {free} moments; mark it Exogenous(...)")
        elif isinstance(block, Exogenous):
            moved = (played.rho[1:, :, k] != played.rho[:-1, :, k])[played.alive].any()
            if not moved:
                yield Finding(False, f"{name}: is marked Exogenous and never changed")


def _hidden(world: Game[Any], played: Played) -> Iterator[Finding]:
    """Changes that come soon or never at the same ρ: something that ρ does not say decides.

    A visit is a stretch of one lane at one ρ. If all visits were alike, a change that often comes early would still
    come to those that have waited long.
    """
    visits = _visits(world, played)
    for (rho, delta), (early, late) in sorted(visits.items(), key=lambda item: -item[1][0][0])[:200]:
        (hits, exposed), (late_hits, late_exposed) = early, late
        if hits < ENOUGH or not late_exposed:
            continue
        expected = hits / exposed * late_exposed
        if expected >= ENOUGH and late_hits < 0.1 * expected:
            text = world.space.format_delta(np.array(delta, np.float32))
            where = world.space.format(rho)
            yield Finding(
                True,
                f"{text} at {where}: came {hits} times soon, but only {late_hits} times to those that waited longer, "
                f"where {expected:.0f} would be expected; something that the attributes do not say decides",
            )
            return


Counts = tuple[tuple[int, int], tuple[int, int]]
SOON = 3
"""A visit is young until it is this many times as old as changes are in the middle."""


def _visits(world: Game[Any], played: Played) -> dict[tuple[tuple[float, ...], tuple[float, ...]], Counts]:
    """For every (ρ, δρ): how often the change came to young and to old visits, and how many steps those had."""
    space, alive = world.space, played.alive
    rho = np.where(space.exogenous, 0, played.rho)
    changed = np.any(rho[1:] != rho[:-1], axis=-1) & alive
    deltas = np.asarray(space.snap(space.difference(jnp.asarray(rho[1:]), jnp.asarray(rho[:-1]))))
    ages: dict[tuple[Any, Any], list[int]] = {}
    stays: dict[tuple[float, ...], list[int]] = {}
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
    counts: dict[tuple[tuple[float, ...], tuple[float, ...]], Counts] = {}
    for (here, delta), times in ages.items():
        young, stay, when = SOON * np.median(times), np.array(stays[here]), np.array(times)
        soon = int(np.minimum(stay, young).sum())
        counts[here, delta] = (
            (int((when <= young).sum()), soon), (int((when > young).sum()), int(stay.sum()) - soon)
        )  # fmt: skip
    return counts


def _ends(world: Game[Any], played: Played) -> Iterator[Finding]:
    """Episodes that are over before anything can be learnt."""
    lengths = np.where(played.over.any(axis=0), played.over.argmax(axis=0), len(played.over))
    if np.median(lengths) < 10:
        yield Finding(
            True, f"episodes are over after {np.median(lengths):.0f} steps of random play; can they go on (`endless`)?"
        )


def _again(world: Game[Any], seed: int) -> list[Finding]:
    """Whether the same beginning and the same actions lead to the same again, with other episodes between."""
    keys = jax.random.split(jax.random.key(seed + 1), AGAIN)
    actions = jax.random.randint(jax.random.key(seed + 2), (20, AGAIN), 0, len(world.actions))

    def episode() -> tuple[list[Any], list[Any]]:
        state = jax.jit(jax.vmap(world.reset))(keys)
        moments = [_seen(world, state)]
        for t, key in enumerate(jax.random.split(jax.random.key(seed + 3), len(actions))):
            state, _ = _one(world, key, state, actions[t], False)
            moments.append(_seen(world, state))
        return moments[:1], moments[1:]

    first, second = episode(), episode()
    same = [
        all(np.array_equal(a, b, equal_nan=True) for x, y in zip(*pair, strict=True) for a, b in zip(x, y, strict=True))
        for pair in zip(first, second, strict=True)
    ]
    if not same[0]:
        return [Finding(True, "the same seed begins differently after other episodes: reset leaves something behind")]
    if not same[1]:
        text = "the same seed and actions lead elsewhere the second time: chance that the seed does not decide"
        return [Finding(True, text)]
    return []


def summary(found: list[Finding]) -> list[str]:
    """The findings as lines for people."""
    lines = [f"{'✗' if finding.wrong else '·'} {finding.text}" for finding in found]
    if not any(finding.wrong for finding in found):
        lines.append("✓ nothing that would go wrong was seen")
    return lines
