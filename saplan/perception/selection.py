"""The choice among the blocks of the dictionary, by description length, with its margin in bits."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from saplan.algebra import Circle, Dihedral
from saplan.perception.description import STAY, Counts, free_bits, pooled_bits, symbols
from saplan.perception.dictionary import FEW, Candidate, Seen, candidates

ASSIGNED = 10.0
"""Bits that an assignment ("set to 4") costs in a block with an algebra, where it is a different change everywhere."""
EXCHANGED = 8.0
"""Bits against a cycle that was never seen to close, for an attribute that is exchanged for another one."""
CLEAR = 12.0
"""Most bits against it for changes that stopped at the ends of the range."""
HOLE = 3.0
"""Most bits, besides the name of the place, for a change that is never made at a place where it would be expected."""
HOLE_IN_NEW_ORDER = 24.0
"""The same where values were put in another order, since some order of a few labels fits almost any rules."""


class Choice(NamedTuple):
    """A candidate with its description length."""

    bits: float
    candidate: Candidate
    changes: int
    """Distinct changes."""


def described(seen: Seen, partner: bool = False) -> list[Choice]:
    """Description length of every candidate for one attribute, the shortest first.

    An attribute with a `partner`, which changes whenever it does, is exchanged for it: a quantity, not a dial.
    """
    assigned = _assignments(seen) if len(seen.values) <= FEW else None
    found = [_describe(seen, one, assigned) for one in candidates(seen)]
    line = next((one.candidate for one in found if one.candidate.line), None)
    if line is not None:
        found = [_unclosed(seen, one, line, partner) for one in found]
    return sorted(found, key=lambda one: one.bits)


def _assignments(seen: Seen) -> Float[np.ndarray, "contexts places ends"]:
    """Steps by context, place and end."""
    ends = np.where(seen.changed, np.searchsorted(seen.values, seen.after) + 1, STAY)
    steps, _ = symbols(seen.context, seen.place, ends, seen.weight)
    return steps


def _parameters(steps: Float[np.ndarray, "contexts places symbols"], names: float) -> Float[np.ndarray, "contexts"]:
    """Bits of the distinct changes of every context: the name and the frequency of each."""
    events = steps[..., STAY + 1 :].sum(axis=1)
    bits: Float[np.ndarray, "contexts"] = np.where(events > 0, np.log2(max(names, 2)) + np.log2(events + 1) / 2, 0)
    total: Float[np.ndarray, "contexts"] = bits.sum(axis=-1)
    return total


def _describe(seen: Seen, one: Candidate, ends: Float[np.ndarray, "contexts places ends"] | None) -> Choice:
    """Structure, parameters and held-out code of one candidate; every context is coded in the shorter of two ways."""
    values = len(seen.values)
    if one.labels:
        assert ends is not None
        pairs = ends.transpose(0, 2, 1)  # every pair is a parameter, named by its two labels
        rows = np.where(pairs > 0, 2 * np.log2(values) + np.log2(pairs + 1) / 2, 0)[:, STAY + 1 :].sum(axis=(1, 2))
        bits = free_bits(ends) + rows
        changes = int((ends[..., 1:].sum(axis=0) > 0).sum())
    else:
        counts = one.counts(seen)
        hole = HOLE if list(one.order) == sorted(one.order) else HOLE_IN_NEW_ORDER
        bits, changes = algebra_bits(counts, hole), distinct(counts)
    if ends is not None:
        set_to = pooled_bits(Counts(ends, None, values)) + _parameters(ends, values)
        bits = np.minimum(bits, set_to + (0 if one.labels else ASSIGNED))
    return Choice(float(bits.sum()) + one.bits, one, changes)


def _holes(counts: Counts, most: float) -> Float[np.ndarray, "contexts"]:
    """Bits of the places where a change was never made, though pooled frequencies lead to expect it."""
    steps = counts.steps
    other = steps.sum(axis=1, keepdims=True) - steps
    shares = other / np.maximum(other.sum(axis=-1, keepdims=True), 1)
    expected = np.where(steps > 0, 0.0, shares * steps.sum(axis=-1, keepdims=True))
    if counts.allowed is not None:
        expected = np.where(counts.allowed, expected, 0.0)
    bits = np.minimum(np.log2(np.e) * expected, most + np.log2(max(2, steps.shape[1])))
    each: Float[np.ndarray, "contexts"] = bits[..., STAY + 1 :].sum(axis=(1, 2))
    return each


def algebra_bits(counts: Counts, hole: float = HOLE) -> Float[np.ndarray, "contexts"]:
    """Bits of changes that are pooled over places: code, parameters and exceptions."""
    parameters = _parameters(counts.steps, 2 * min(counts.ends, FEW))
    bits: Float[np.ndarray, "contexts"] = pooled_bits(counts) + parameters + _holes(counts, hole)
    return bits


def distinct(counts: Counts) -> int:
    """Number of distinct changes."""
    return int((counts.steps[..., STAY + 1 :].sum(axis=(0, 1)) > 0).sum())


def _unclosed(seen: Seen, one: Choice, line: Candidate, partner: bool) -> Choice:
    """The bits of a cycle that was never seen to close: each change that was expected to close it did not happen."""
    if one.candidate.line or one.candidate.labels:
        return one
    straight, turns = line.codes(seen)[seen.changed], one.candidate.codes(seen)[seen.changed]
    if len(np.unique(straight)) > len(np.unique(turns)) or isinstance(one.candidate.block, Dihedral):
        return one
    missed = min(CLEAR, np.log2(np.e) * expected_beyond(seen)) if isinstance(one.candidate.block, Circle) else 0.0
    return one._replace(bits=one.bits + missed + (EXCHANGED if partner else 0))


def expected_beyond(seen: Seen) -> float:
    """Changes that would have left the range of values if they were as frequent at its ends as elsewhere."""
    low, high = seen.values[0], seen.values[-1]
    total = 0.0
    for context in np.unique(seen.context):
        here = seen.context == context
        moved, steps = here & seen.changed, seen.weight[here].sum()
        change = (seen.after - seen.before)[moved]
        for sign in (-1, 1):
            kind = sign * change > 0
            if kind.any():
                size = np.median(change[kind])
                beyond = here & ((seen.before + size < low) | (seen.before + size > high))
                total += float(seen.weight[beyond].sum() * seen.weight[moved][kind].sum() / steps)
    return total


def rival_of(seen: Seen, choices: Sequence[Choice]) -> Choice | None:
    """The best candidate that claims something else than the first."""
    best, *others = choices
    return next((one for one in others if not _same_claim(seen, best.candidate, one.candidate)), None)


def _same_claim(seen: Seen, one: Candidate, other: Candidate) -> bool:
    """Whether two candidates of one kind call the same changes equal."""
    if type(one.block) is not type(other.block) or one.block.bins != other.block.bins:
        return False
    codes = [candidate.codes(seen)[seen.changed] for candidate in (one, other)]
    both = np.unique(np.stack(codes), axis=1).shape[1]
    return all(len(np.unique(each)) == both for each in codes)
