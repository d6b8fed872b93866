"""How the changes of one attribute add up, as a program that solves for counts of changes needs to know it.

A block answers `Block.row()` with one of these, or with None where its values never restrict a plan. They compute with
NumPy in float64, so that long sums stay exact and a planner pays no dispatch per operation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float

Numbers = Float[np.ndarray, "..."]

NOWHERE = -1.0
"""The value after a change that does not apply: no label, so `contains` refuses it."""


@final
@dataclass(frozen=True)
class LineRow:
    """A value on a line: after counts n_j of changes d_j it is a + Σ n_j d_j, and stays between the bounds.

    With a period the line is wound up: real values from 0 up to the period, and sums count modulo it.
    """

    low: float = -math.inf
    high: float = math.inf
    whole: bool = True
    """Whether every value is a whole number."""
    period: float = math.inf

    @property
    def wound(self) -> bool:
        """Whether the values go round in a circle."""
        return math.isfinite(self.period)

    def repeat(self, a: Numbers, d: Numbers, times: Numbers) -> Numbers:
        """The value after a change was made several times in a row."""
        return np.asarray(np.mod(a + times * d, self.period) if self.wound else a + times * d)

    def contains(self, a: Numbers) -> Bool[np.ndarray, "..."]:
        """Whether a value lies within the bounds."""
        return (a >= self.low) & (a <= self.high)


@final
@dataclass(frozen=True)
class CircleRow:
    """A value on a circle of `size` positions: sums count modulo `size`."""

    size: int

    def repeat(self, a: Numbers, d: Numbers, times: Numbers) -> Numbers:
        """The value after a change was made several times in a row."""
        return np.asarray(np.mod(a + times * d, self.size))

    def contains(self, a: Numbers) -> Bool[np.ndarray, "..."]:
        """Whether a value is a position."""
        return (a >= 0) & (a < self.size)

    def moves(self, d: float) -> tuple[tuple[int, int], ...]:
        """Every (from, to) pair of positions that a change leads along."""
        return tuple((v, (v + int(d)) % self.size) for v in range(self.size))


@final
@dataclass(frozen=True)
class LabelRow:
    """One of `size` labels: a change 1 + size·from + to leads from one label to another and applies only there."""

    size: int

    def repeat(self, a: Numbers, d: Numbers, times: Numbers) -> Numbers:
        """The label after a change was made several times; NOWHERE where it did not apply each time."""
        start, end = np.divmod(d - 1, self.size)
        moved = np.where((d > 0) & (a == start) & ((times == 1) | (start == end)), end, NOWHERE)
        return np.where((d == 0) | (times == 0), a, moved)

    def contains(self, a: Numbers) -> Bool[np.ndarray, "..."]:
        """Whether a value is a label."""
        return (a >= 0) & (a < self.size)

    def moves(self, d: float) -> tuple[tuple[int, int], ...]:
        """Every (from, to) pair of labels that a change leads along."""
        if d == 0:
            return tuple((v, v) for v in range(self.size))
        return (divmod(int(d) - 1, self.size),) if d > 0 else ()


@final
@dataclass(frozen=True)
class GroupRow:
    """An element of a finite group, numbered from 0: a change multiplies it, so that the order of changes matters."""

    size: int
    multiply: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def repeat(self, a: Numbers, d: Numbers, times: Numbers) -> Numbers:
        """The element after a change was made several times, by powers of two of the change."""
        end, power, left = (
            np.array(np.broadcast_to(a, np.broadcast(a, d, times).shape), float),
            d,
            np.asarray(times, int),
        )
        while left.any():
            end = np.where(left % 2 == 1, self.multiply(end, power), end)
            power, left = self.multiply(power, power), left // 2
        return end

    def contains(self, a: Numbers) -> Bool[np.ndarray, "..."]:
        """Whether a value is an element."""
        return (a >= 0) & (a < self.size)

    def moves(self, d: float) -> tuple[tuple[int, int], ...]:
        """Every (from, to) pair of elements that a change leads along."""
        elements = np.arange(self.size)
        return tuple(zip(elements.tolist(), self.multiply(elements, np.full(self.size, int(d))).tolist(), strict=True))


Row = LineRow | CircleRow | LabelRow | GroupRow
