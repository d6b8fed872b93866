"""S¹: an angle, a real number modulo a period."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from saplan.algebra.base import Features, Values, cosine_loss, parse_number
from saplan.algebra.real import LARGEST, Continuous
from saplan.algebra.rows import LineRow
from saplan.errors import InputError

MOST_CELLS = 2.0**16
"""Largest number of resolutions around a circle: float32 then still distinguishes a sixteenth of one."""
MOST_HARMONICS = 8


@final
@dataclass(frozen=True)
class Circle(Continuous):
    """S¹, elements in [0, period). A change is the shortest way round, in [-period/2, period/2).

    Networks see the first harmonics of the angle, up to a wavelength of two resolutions. The output of a regressor is
    the point (cos, sin). Two values within half a `resolution` count as the same, also across zero.
    """

    period: float = 360.0
    resolution: float = 30.0
    max_bins: int = 64
    embed_width: ClassVar[int] = 2
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (0 < self.resolution <= self.period / 2 and 1 / LARGEST <= self.period <= LARGEST):
            raise InputError(
                f"S¹ needs a period and a resolution of at most half of it, got {self.period} and {self.resolution}"
            )
        if self.period / self.resolution > MOST_CELLS:
            raise InputError(f"S¹ takes up to {MOST_CELLS:.0f} resolutions around, got {self.period / self.resolution}")

    @property
    def symbol(self) -> str:
        return f"S¹ (period {self.period:g})"

    @property
    def grain(self) -> float:
        # A whole number of grains goes round, so that the nodes of a graph meet again after a turn.
        return self.period / math.ceil(16 * self.period / self.resolution)

    @property
    def bins(self) -> int:
        return min(self.max_bins, math.ceil(self.period / self.resolution))

    @property
    def harmonics(self) -> int:
        return min(MOST_HARMONICS, round(self.period / self.resolution / 2))

    @property
    def width(self) -> int:
        return 2 * self.harmonics

    def _wrap(self, x: Values) -> Values:
        """The element of a number within one turn of the circle."""
        # Compared, not divided: a compiled division rounds, and would move values next to the period.
        turned = jnp.where(x < 0, x + self.period, jnp.where(x >= self.period, x - self.period, x))
        return jnp.where(turned >= self.period, 0.0, turned)

    def _shortest(self, x: Values) -> Values:
        """The change of at most half a turn in either direction that a number within one turn stands for."""
        half = self.period / 2
        return jnp.where(x >= half, x - self.period, jnp.where(x < -half, x + self.period, x))

    def compose(self, a: Values, d: Values) -> Values:
        return self._wrap(a + d)

    def difference(self, b: Values, a: Values) -> Values:
        return self._shortest(b - a)

    def then(self, d: Values, e: Values) -> Values:
        return self._shortest(d + e)

    def inverse(self, d: Values) -> Values:
        return self._shortest(-d)

    def contains(self, a: Values) -> Bool[Array, "..."]:
        return (a >= 0) & (a < self.period)

    def row(self) -> LineRow:
        return LineRow(whole=False, period=self.period)

    def encode(self, a: Values) -> Features:
        angles = (2 * jnp.pi / self.period) * a[..., None] * jnp.arange(1, self.harmonics + 1, dtype=jnp.float32)
        return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=-1)

    def bin(self, a: Values) -> Int[Array, "..."]:
        return jnp.clip(jnp.floor(a * (self.bins / self.period)), 0, self.bins - 1).astype(jnp.int32)

    def embed(self, a: Values) -> Features:
        angle = (2 * jnp.pi / self.period) * a
        return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)

    def decode(self, y: Features) -> Values:
        return self._wrap(jnp.arctan2(y[..., 1], y[..., 0]) * (self.period / (2 * jnp.pi)))

    def regression_loss(self, y: Features, a: Values) -> Values:
        return cosine_loss(y, self.embed(a))

    def interval(self, a: float, slack: float) -> tuple[float, float]:
        if 2 * slack >= self.period:
            return -math.inf, math.inf
        return (a - slack) % self.period, (a + slack) % self.period

    def parse(self, text: str) -> float:
        return parse_number(text) % self.period

    def format(self, a: float) -> str:
        written = f"{a:.2f}"
        return written if float(written) < self.period else f"{0:.2f}"  # 359.999 is 0, not 360
