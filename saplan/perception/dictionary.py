"""The dictionary of blocks: candidates for the algebra of one attribute, given its values and changes."""

import functools
import itertools
import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Integer, Natural, Real
from saplan.algebra.real import Continuous
from saplan.perception.description import Counts, symbols

FEW = 64
"""Values up to which each is a place of its own, and labels are considered."""
PLACES = 24
"""Places into which more values are divided."""
SHUFFLED = 7
"""Values up to which every cyclic order is considered."""
CLOSED = 3
"""Jumps that show where a circle closes."""
MANY = 12
"""Distinct whole changes beyond which an attribute may be a quantity."""
PERIODS = (1.0, 2.0, 2 * math.pi, 12.0, 24.0, 60.0, 360.0)
"""Periods that a measured one is rounded to, if it is within a hundredth."""


@dataclass(frozen=True)
class Seen:
    """What was seen of one attribute: weighted changes, and steps without a change."""

    context: Int[np.ndarray, "n"]
    before: Float[np.ndarray, "n"]
    after: Float[np.ndarray, "n"]
    weight: Int[np.ndarray, "n"]

    @property
    def values(self) -> Float[np.ndarray, "v"]:
        """Distinct values in order."""
        return np.unique(np.concatenate([self.before, self.after]))

    @property
    def changed(self) -> Bool[np.ndarray, "n"]:
        """Rows with a change."""
        changed: Bool[np.ndarray, "n"] = self.before != self.after
        return changed

    @property
    def place(self) -> Int[np.ndarray, "n"]:
        """The place of every row: its value before, or the part of the range where that lies."""
        values = self.values
        if len(values) > FEW:
            low, high = values[0], values[-1]
            share = (self.before - low) / (high - low)
            part: Int[np.ndarray, "n"] = np.minimum((share * PLACES).astype(int), PLACES - 1)
            return part
        return np.searchsorted(values, self.before)


@dataclass(frozen=True)
class Candidate:
    """A block that may be the algebra of an attribute."""

    block: Block
    bits: float
    """Bits that its name takes."""
    order: tuple[float, ...] = ()
    """The raw value of every element of the block; empty if raw values are elements."""

    def elements(self, raw: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The elements that raw values stand for."""
        if isinstance(self.block, Circle):
            turned: Float[np.ndarray, "..."] = np.mod(raw, self.block.period)
            return turned
        if not self.order:
            return raw
        ranked = np.argsort(self.order)
        found: Float[np.ndarray, "..."] = ranked[np.searchsorted(np.sort(self.order), raw)].astype(np.float32)
        return found

    @property
    def line(self) -> bool:
        """Whether values have an order and a range."""
        return self.block.ordered

    @property
    def labels(self) -> bool:
        """Whether the block has no algebra."""
        return isinstance(self.block, Categorical)

    def changes(self, before: Float[np.ndarray, "n"], after: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        """The change from one raw value to another, by the block."""
        # Padded to few lengths, each of which JAX compiles once.
        pad = (0, 2 ** max(6, math.ceil(math.log2(len(before)))) - len(before))
        a, b = (jnp.asarray(np.pad(self.elements(x), pad, "edge"), jnp.float32) for x in (before, after))
        return np.asarray(self.block.difference(b, a), float)[: len(before)]

    def codes(self, seen: Seen) -> Int[np.ndarray, "n"]:
        """A number for every change; equal changes have equal numbers, and no change has 0."""
        change = self.changes(seen.before, seen.after)
        if isinstance(self.block, Continuous):
            pad = (0, 2 ** math.ceil(math.log2(len(change))) - len(change))
            change = np.asarray(self.block.snap(jnp.asarray(np.pad(change, pad), jnp.float32)), float)[: len(change)]
            change = change / self.block.grain
        codes: Int[np.ndarray, "n"] = np.rint(change).astype(np.int64)
        return codes

    def counts(self, seen: Seen) -> Counts:
        """Steps by context, place and change."""
        code, values = self.codes(seen), seen.values
        steps, codes = symbols(seen.context, seen.place, code, seen.weight)
        if len(values) > FEW:
            return Counts(steps, None, FEW)
        if not self.line or isinstance(self.block, Continuous):
            return Counts(steps, None, len(values))
        ends = values[: steps.shape[1], None] + codes  # the last values may never have been left
        return Counts(steps, (ends >= values[0]) & (ends <= values[-1]), len(values))


def candidates(seen: Seen) -> list[Candidate]:
    """Blocks to compare for an attribute that changes."""
    values = seen.values
    whole = bool(np.all(values == np.rint(values)))
    found = [*_lines(seen, whole), *_dials(seen, whole), *([] if whole else _circles(seen)), *_polygons(seen)]
    named = tuple(f"{value:g}" for value in values)
    if len(values) <= FEW and len(set(named)) == len(values):  # numbers that differ by rounding are not labels
        plain = np.array_equal(values, np.arange(len(values)))
        found.append(Candidate(Categorical(named), 3.0, () if plain else tuple(values.tolist())))
    return found


def _lines(seen: Seen, whole: bool) -> list[Candidate]:
    change = np.unique((seen.after - seen.before)[seen.changed])
    found = []
    if whole:
        high = int(np.abs(seen.values).max())
        bins = max(32, high + high // 2)
        found.append(Candidate(Natural(bins), 1.0) if seen.values[0] >= 0 else Candidate(Integer(2 * bins + 1), 1.0))
    if not whole or len(change) > MANY:
        found.append(Candidate(Real(resolution(seen)), 2.0))
    return found


def _dials(seen: Seen, whole: bool) -> list[Candidate]:
    values = seen.values
    found = []
    if whole and values[0] >= 0:
        last = int(values[-1])
        found += [Candidate(Cyclic(q), 2.0 + math.log2(q) + (q - last - 1)) for q in (last + 1, last + 2) if q > 2]
    n = len(values)
    if found and n > FEW:  # such as degrees in steps of 5
        closed = [round(period) for period in _periods(seen)]
        q = int(np.median(closed)) if closed else 0
        found += [Candidate(Cyclic(q), 4.0 + math.log2(q))] if q > last + 2 else []
    if 2 < n <= FEW and not (whole and np.array_equal(values, np.arange(n))):
        # Numbers that do not begin with 0, 1, 2 are rarely those of a dial.
        found.append(Candidate(Cyclic(n), 6.0 + math.log2(n), tuple(values.tolist())))
    if 3 < n <= SHUFFLED:
        found += _shuffled(seen)
    return found


def _shuffled(seen: Seen) -> list[Candidate]:
    """The most promising cyclic orders other than the plain one."""
    values = seen.values
    n = len(values)
    pairs = np.zeros((n, n))
    moved = seen.changed
    a, b = (np.searchsorted(values, x[moved]) for x in (seen.before, seen.after))
    np.add.at(pairs, (a, b), seen.weight[moved])
    present = pairs > 0
    turn = (np.arange(n)[None, :] - np.arange(n)[:, None]) % n
    orders = [order for order in map(np.array, circular_orders(n)) if not np.array_equal(order, np.arange(n))]
    # Few distinct turns, each made everywhere: the fewer the better.
    ranked = sorted(orders, key=lambda order: len(np.unique(turn[present[np.ix_(order, order)]])))
    bits = 8.0 + math.log2(n) + math.log2(1 + len(orders))
    return [Candidate(Cyclic(n), bits, tuple(values[order].tolist())) for order in ranked[:6]]


@functools.cache
def circular_orders(n: int) -> tuple[tuple[int, ...], ...]:
    """Orders of n values on a circle, one of those that differ only by the unit of a turn."""
    units = [u for u in range(1, n) if math.gcd(u, n) == 1]
    found = []
    for rest in itertools.permutations(range(1, n)):
        order = (0, *rest)
        if order == min(tuple(order[u * k % n] for k in range(n)) for u in units):
            found.append(order)
    return tuple(found)


def _circles(seen: Seen) -> list[Candidate]:
    """Circles by the jumps that close them, and by common periods that the range of values nearly fills."""
    values, step = seen.values, resolution(seen)
    span = float(values[-1] - values[0])
    measured = _periods(seen)
    common = [period for period in PERIODS if span < period <= 1.1 * span]
    if measured:
        period = max(float(np.median(measured)), span)
        rounded = [float(f"{size:.4g}") for size in (period, period * 1.0005)]
        common = [one for one in (*PERIODS, *rounded) if abs(one / period - 1) < 0.01 and one >= span][:1]
    return [Candidate(Circle(period, min(step, period / 2)), 4.0) for period in common]


def _periods(seen: Seen) -> list[float]:
    """For every action that closes a circle: the size of a jump and of a small change the other way, together."""
    span = np.ptp(seen.values)
    change = seen.after - seen.before
    measured = []
    for context in np.unique(seen.context):
        here = change[(seen.context == context) & seen.changed]
        for sign in (-1, 1):
            jumps, small = here[sign * here > span / 2], here[(-sign * here > 0) & (-sign * here <= span / 2)]
            if len(jumps) >= CLOSED and len(small):
                measured.append(float(np.median(np.abs(jumps)) + np.median(np.abs(small))))
    return measured


def _polygons(seen: Seen) -> list[Candidate]:
    """D_n for 2n values: codes with turns or mirror images counted first, changes from either side."""
    values = seen.values
    n, odd = divmod(len(values), 2)
    if odd or n < 3 or not np.array_equal(values, np.arange(2 * n)):
        return []
    turns, mirrored = np.tile(np.arange(n), 2), np.repeat([0, 1], n)
    bits = 12.0 + math.log2(n)
    found = []
    for order in (turns + n * mirrored, 2 * turns + mirrored):
        # Read as inverses, changes are made before the present element and not after it.
        inverse = np.where(mirrored == 0, -turns % n, turns) + n * mirrored
        found += [Candidate(Dihedral(n), bits + 1, tuple(map(float, one))) for one in (order, order[inverse])]
    found[0] = Candidate(Dihedral(n), bits)
    return found


def resolution(seen: Seen) -> float:
    """The resolution of a quantity: the typical size of its smallest kind of change, with two digits."""
    change = np.where(seen.changed, seen.after - seen.before, 0.0)
    total = seen.weight[seen.changed].sum()
    sizes = []
    for context in np.unique(seen.context):
        for sign in (-1, 1):
            kind = (seen.context == context) & (sign * change > 0)
            if seen.weight[kind].sum() >= max(20, 0.02 * total):
                sizes.append(float(np.median(np.abs(change[kind]))))
    size = min(sizes) if sizes else float(np.median(np.abs(change[seen.changed])))
    return float(f"{max(size, float(np.abs(change).max()) / 64):.2g}")
