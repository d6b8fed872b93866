"""Attributes that belong together: a dial and a flag that are one element of D_n, and the pose of a body."""

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from saplan.algebra import Block, Circle, Cyclic, Dihedral, Integer, Real
from saplan.algebra.integer import Whole
from saplan.perception.description import Counts, symbols
from saplan.perception.dictionary import FEW, Candidate, Seen, resolution
from saplan.perception.selection import Choice, algebra_bits, described, distinct
from saplan.perception.transitions import Transitions

MARGIN = 8.0
"""Bits by which a choice must beat the next one; below, it is undecided."""
FRAME = 8.0
"""Bits that the claim of a pose takes."""
QUARTERS = 4


class Joined(NamedTuple):
    """Attributes that are better described together than apart."""

    columns: tuple[int, ...]
    """A dial and a flag, or the two coordinates of a place and the heading."""
    margin: float
    """Bits that it saves."""
    evidence: str
    candidate: Candidate | None = None
    """Their common block, if they become one attribute."""
    place: Block | None = None
    """The block of the two coordinates of a pose."""


def best_apart(found: Iterable[Joined]) -> list[Joined]:
    """The groups of attributes that save most, of which no two share an attribute."""
    chosen: list[Joined] = []
    for one in sorted(found, key=lambda one: -one.margin):
        if not any(set(one.columns) & set(other.columns) for other in chosen):
            chosen.append(one)
    return chosen


def seen_of(played: Transitions, ks: list[int], sizes: tuple[int, ...] = ()) -> Seen:
    """One attribute of the transitions, or several as one number; equal steps are counted together."""
    weights = np.cumprod([1, *sizes])[: len(ks)]
    before, after = (part[:, ks].astype(float) @ weights for part in (played.before, played.after))
    unique, weight = np.unique(np.stack([played.action, before, after], axis=1), axis=0, return_counts=True)
    return Seen(unique[:, 0].astype(int), unique[:, 1], unique[:, 2], weight)


def dihedral_pairs(
    played: Transitions, seen: list[Seen], choices: list[list[Choice]], drifts: list[str]
) -> Iterator[Joined]:
    """Pairs of a dial and a flag that are one element of D_n: turns go the other way round where it is mirrored."""
    sizes = [
        len(one.values) if np.array_equal(one.values, np.arange(len(one.values))) and not drift else 0
        for one, drift in zip(seen, drifts, strict=True)
    ]
    for turn, n in enumerate(sizes):
        for flag, two in enumerate(sizes):
            if not (3 <= n <= 16 and two == 2 and choices[turn] and choices[flag]):
                continue
            both = seen_of(played, [turn, flag], (n,))
            if len(both.values) != 2 * n:
                continue
            one, apart = described(both)[0], _apart(both, n, choices[turn][0].candidate)
            if not isinstance(one.candidate.block, Dihedral) or one.changes >= apart.changes:
                continue
            if one.bits + MARGIN < apart.bits:
                names = played.names[turn], played.names[flag]
                words = f"{names[0]} turns the other way where {names[1]} is set; {one.changes} changes in all"
                yield Joined((turn, flag), apart.bits - one.bits, words, one.candidate)


def _apart(both: Seen, n: int, turn: Candidate) -> Choice:
    """A dial and a flag as two attributes, described together: at the same places as D_n."""
    parts = [Seen(both.context, both.before % n, both.after % n, both.weight),
             Seen(both.context, both.before // n, both.after // n, both.weight)]  # fmt: skip
    codes = turn.codes(parts[0]) * 4 + np.where(parts[1].changed, 1, 0)
    steps, kinds = symbols(both.context, both.place, codes, both.weight)
    places = both.values[: steps.shape[1]] % n
    moved = places[:, None] + kinds // 4
    allowed = (moved >= 0) & (moved < n) if turn.line else None
    counts = Counts(steps, allowed, 2 * n)
    ends = np.where(parts[0].changed, parts[0].after + 1, 0) * 2 + parts[1].changed
    assigned = Counts(symbols(both.context, both.place, ends.astype(int), both.weight)[0], None, 2 * n)
    bits = np.minimum(algebra_bits(counts), algebra_bits(assigned))
    return Choice(float(bits.sum()) + turn.bits + 1, turn, distinct(counts))


def poses(played: Transitions, blocks: dict[int, Block]) -> Iterator[Joined]:
    """Places with a heading: a step is the same change everywhere in the frame of the heading.

    On a grid these are two counts or integers and a dial of four, in the plane two quantities and an angle. Swapped
    coordinates are the same pose with a heading that turns the other way.
    """
    for heading, block in blocks.items():
        plane = isinstance(block, Circle)
        grid = isinstance(block, Cyclic) and block.q == QUARTERS and set(played.before[:, heading]) <= set(range(4))
        if not (plane or grid):
            continue
        kind, least = (Real, 0) if plane else (Whole, 1)
        places = [k for k, one in blocks.items() if isinstance(one, kind) and np.ptp(played.before[:, k]) > least]
        for x, y in itertools.permutations(places, 2):
            yield from _pose(played, (x, y, heading), block)


def _pose(played: Transitions, columns: tuple[int, int, int], heading: Block) -> Iterator[Joined]:
    """The pose of three attributes, if its frame makes fewer changes of them."""
    before, after = (part[:, list(columns)].astype(float) for part in (played.before, played.after))
    moved = after[:, :2] - before[:, :2]
    if not moved.any():
        return
    angle = before[:, 2] * (2 * np.pi / (heading.period if isinstance(heading, Circle) else QUARTERS))
    turning = Seen(played.action, before[:, 2], after[:, 2], np.ones(len(moved), int))
    place = stride(played.action, moved) if isinstance(heading, Circle) else Integer()
    turn = Candidate(heading, 0.0).codes(turning)
    world, body = (_cells(place, played.action, moved, by) for by in (np.zeros(len(angle)), angle))
    rows = np.stack([played.action, turning.place, turn, *world, *body], axis=1)
    rows, weight = np.unique(rows, axis=0, return_counts=True)
    action, where, turn, *steps = rows.T
    apart, joint = (_counts(action, where, weight, *part, turn) for part in (steps[:2], steps[2:]))
    saved = float(algebra_bits(apart).sum() - algebra_bits(joint).sum()) - FRAME
    if saved > MARGIN and distinct(joint) < distinct(apart):
        names = [played.names[k] for k in columns[:2]]
        words = f"{names[0]} and {names[1]} move in its frame, {distinct(joint)} changes and not {distinct(apart)}"
        yield Joined(columns, saved, f"{words} ({saved:.0f} bits)", place=place)


def stride(action: Int[np.ndarray, "n"], moved: Float[np.ndarray, "n 2"]) -> Real:
    """ℝ with the length of the shortest kind of step in the plane as its resolution."""
    length = np.hypot(*moved.T)
    return Real(resolution(Seen(action, np.zeros(len(length)), length, np.ones(len(length), int))))


def _cells(
    place: Block, action: Int[np.ndarray, "n"], moved: Float[np.ndarray, "n 2"], angle: Float[np.ndarray, "n"]
) -> list[Int[np.ndarray, "n"]]:
    """The cells of steps along and across a direction, which is an angle from the first coordinate."""
    x, y = moved.T
    along, across = np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x
    none, once = np.zeros(len(x)), np.ones(len(x), int)
    return [Candidate(place, 0.0).codes(Seen(action, none, step, once)) for step in (along, across)]


def _counts(
    action: Int[np.ndarray, "n"], heading: Int[np.ndarray, "n"], weight: Int[np.ndarray, "n"], *parts: np.ndarray
) -> Counts:
    """Steps by action, heading and joint change."""
    joint = np.stack(parts, axis=1)
    _, codes = np.unique(joint, axis=0, return_inverse=True)
    codes = np.where(joint.any(axis=1), codes.reshape(-1) + 1, 0)
    return Counts(symbols(action, heading, codes, weight)[0], None, FEW)
