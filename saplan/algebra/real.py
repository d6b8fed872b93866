"""ℝ: quantities with a resolution."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from saplan.algebra.base import Block, Features, Values, features, parse_number
from saplan.algebra.rows import LineRow
from saplan.errors import InputError

LARGEST = 1e15
"""Largest parameter: float32 holds its square."""
PERIODS = (2.0, 4.0, 8.0, 16.0)
"""Wavelengths of the features of a real, in resolutions: from the width of an edge to that of a region."""


class Continuous(Block):
    """Common part of ℝ and S¹: a resolution, cells of changes, and the features of a change."""

    resolution: float
    delta_width: ClassVar[int] = 4

    @property
    def tolerance(self) -> float:
        return self.resolution / 2

    def encode_delta(self, d: Values) -> Features:
        steps = d / self.resolution
        return features(steps > 0.5, steps < -0.5, jnp.abs(steps) > 1.5, jnp.clip(steps, -8, 8) / 2)

    def snap(self, d: Values) -> Values:
        size = jnp.abs(d) / self.resolution
        # A change of less than half a resolution keeps its sign: merged with its opposite it would average to zero.
        cells = jnp.where(size < 0.5, 0.25, jnp.floor(size + 0.5))
        return jnp.where(jnp.abs(d) < self.grain / 2, 0.0, jnp.sign(d) * cells * self.resolution)

    def typical(self, snapped: Values, mean: Values) -> Values:
        return mean

    def close(self, a: Values, b: Values) -> Bool[Array, "..."]:
        # Slightly more than half a resolution, so that float32 rounding does not decide at the bound.
        return jnp.abs(self.difference(b, a)) <= self.tolerance * (1 + 1e-5)

    def format(self, a: float) -> str:
        return f"{a:.2f}"

    def format_delta(self, d: float) -> str:
        return f"{d:+.2f}"


@final
@dataclass(frozen=True)
class Real(Continuous):
    """ℝ, optionally bounded. Two values within half a `resolution` count as the same.

    Two changes count as the same if they fall into the same cell. Cells are `resolution` wide and centred on its
    multiples; the cell around zero is divided by sign. A change below half a grain is the identity.
    """

    resolution: float = 1.0
    low: float = -math.inf
    high: float = math.inf
    max_bins: int = 64
    symbol: ClassVar[str] = "ℝ"
    width: ClassVar[int] = 2 + 2 * len(PERIODS)
    embed_width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not (self.resolution > 0 and math.isfinite(self.resolution)):
            raise InputError(f"ℝ needs a finite resolution above 0, got {self.resolution}")
        if not self.low < self.high:
            raise InputError(f"ℝ needs low < high, got [{self.low}, {self.high}]")
        finite = [abs(x) for x in (self.resolution, self.low, self.high) if math.isfinite(x)]
        if max(finite) > LARGEST or self.resolution < 1 / LARGEST:
            raise InputError(f"ℝ takes numbers from {1 / LARGEST:g} to {LARGEST:g} in size")

    @property
    def grain(self) -> float:
        return self.resolution / 16

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def bins(self) -> int:
        if not self.bounded:
            return self.max_bins
        return min(self.max_bins, max(1, math.ceil((self.high - self.low) / self.resolution)))

    def compose(self, a: Values, d: Values) -> Values:
        return a + d

    def difference(self, b: Values, a: Values) -> Values:
        return b - a

    def then(self, d: Values, e: Values) -> Values:
        return d + e

    def inverse(self, d: Values) -> Values:
        return -d

    def contains(self, a: Values) -> Bool[Array, "..."]:
        return (a >= self.low) & (a <= self.high) & jnp.isfinite(a)

    def row(self) -> LineRow:
        return LineRow(self.low, self.high, whole=False)

    def encode(self, a: Values) -> Features:
        steps = a / self.resolution
        waves = [wave(2 * jnp.pi * steps / period) for period in PERIODS for wave in (jnp.cos, jnp.sin)]
        return features(jnp.clip(steps / 16, -4, 4), jnp.arcsinh(steps) / 4, *waves)

    def bin(self, a: Values) -> Int[Array, "..."]:
        if self.bounded:
            cell = (a - self.low) * (self.bins / (self.high - self.low))
        else:
            cell = a / self.resolution + self.bins // 2
        return jnp.clip(jnp.floor(cell), 0, self.bins - 1).astype(jnp.int32)

    def embed(self, a: Values) -> Features:
        return a[..., None]

    def decode(self, y: Features) -> Values:
        return jnp.clip(y[..., 0], self.low, self.high)

    def regression_loss(self, y: Features, a: Values) -> Values:
        return (y[..., 0] - a) ** 2

    def parse(self, text: str) -> float:
        value = parse_number(text)
        if not self.low <= value <= self.high:
            raise InputError(f"{text!r} is outside [{self.low:g}, {self.high:g}]")
        return value
