"""Checks of a world by random play: attributes, blocks, hidden causes, short or unrepeatable episodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from saplan.algebra import Block, Cyclic, Exogenous, Integer, Natural, Real
from saplan.envs.random_play import RandomPlay, Show, perceive, play_at_random, step_lanes
from saplan.games.game import Game
from saplan.games.world_errors import readable_errors

MANY = 12
"""Different changes of a count beyond which it is hardly a count."""
ENOUGH = 10
"""Observed cases that a statement needs."""
REPLAYED = 16
"""Episodes that are played twice."""
OFTEN = 0.3
"""Share of the trials at which an attribute changes under every action, beyond which it never stays."""
RANDOM = 0.05
"""Share of repeated actions that led to another change, beyond which moves are random."""
SOON = 3
"""A visit is young up to this many times the median age at which the change comes."""
Values = tuple[float, ...]
Counts = tuple[tuple[int, int], tuple[int, int]]
"""(changes, steps) of young visits, and of old ones."""


@dataclass(frozen=True)
class Finding:
    """One statement about a world."""

    wrong: bool
    """Whether it must be fixed; otherwise it is only useful to know."""
    text: str


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
        steps = [perceive(world, state)]
        for t, key in enumerate(jax.random.split(jax.random.key(seed + 3), len(actions))):
            state = step_lanes(world, key, state, actions[t])
            steps.append(perceive(world, state))
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
