"""Attributes that belong together: a dial and a flag that are one element of D_n, and the pose of a body on a grid."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from saplan.algebra import Block, Cyclic, Dihedral
from saplan.algebra.integer import Whole
from saplan.perception.description import Counts, symbols
from saplan.perception.dictionary import FEW, Candidate, Seen
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
    played: Transitions, seen: list[Seen], choices: list[list[Choice]], drifts: Int[np.ndarray, "K"]
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


def grid_poses(played: Transitions, blocks: dict[int, Block]) -> Iterator[Joined]:
    """Two counts or integers and a dial of four: a step is the same change everywhere in the frame of the dial.

    Swapped coordinates are the same pose with a heading that turns the other way.
    """
    places = [k for k, block in blocks.items() if isinstance(block, Whole) and np.ptp(played.before[:, k]) > 1]
    for heading, block in blocks.items():
        if not (isinstance(block, Cyclic) and block.q == QUARTERS and set(played.before[:, heading]) <= set(range(4))):
            continue
        for x in places:
            for y in places:
                if x != y:
                    yield from _pose(played, (x, y, heading))


def _pose(played: Transitions, columns: tuple[int, int, int]) -> Iterator[Joined]:
    """The pose of three attributes, if its frame makes fewer changes of them."""
    before, after = (part[:, list(columns)].astype(int) for part in (played.before, played.after))
    rows = np.concatenate([played.action[:, None], before[:, 2:], after - before], axis=1)
    rows, weight = np.unique(rows, axis=0, return_counts=True)
    action, heading, x, y, turn = rows.T
    if not np.any((x != 0) | (y != 0)):
        return
    cosine, sine = np.array([1, 0, -1, 0])[heading], np.array([0, 1, 0, -1])[heading]
    world = _counts(action, heading, weight, x, y, turn % QUARTERS)
    body = _counts(action, heading, weight, cosine * x + sine * y, cosine * y - sine * x, turn % QUARTERS)
    saved = float(algebra_bits(world).sum() - algebra_bits(body).sum()) - FRAME
    if saved > MARGIN and distinct(body) < distinct(world):
        names = [played.names[k] for k in columns[:2]]
        words = f"{names[0]} and {names[1]} move in its frame, {distinct(body)} changes and not {distinct(world)}"
        yield Joined(columns, saved, f"{words} ({saved:.0f} bits)")


def _counts(
    action: Int[np.ndarray, "n"], heading: Int[np.ndarray, "n"], weight: Int[np.ndarray, "n"], *parts: np.ndarray
) -> Counts:
    """Steps by action, heading and joint change."""
    joint = np.stack(parts, axis=1)
    _, codes = np.unique(joint, axis=0, return_inverse=True)
    codes = np.where(joint.any(axis=1), codes.reshape(-1) + 1, 0)
    return Counts(symbols(action, heading, codes, weight)[0], None, FEW)
