"""ℤ/q: a dial of q positions."""

from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from saplan.algebra.base import EXACT, Block, Features, Values, cosine_loss, parse_whole
from saplan.algebra.rows import CircleRow
from saplan.errors import InputError


@final
@dataclass(frozen=True)
class Cyclic(Block):
    """ℤ/q, elements and changes both written 0..q-1.

    Networks see the first harmonics of the angle 2π a / q, on which a turn of the dial acts as a rotation. The output
    of a regressor is the point (cos, sin) on the circle; float32 distinguishes all of them up to q = 2^22.
    """

    q: int
    embed_width: ClassVar[int] = 2
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1 <= self.q <= EXACT:
            raise InputError(f"ℤ/q needs q from 1 to 2^24, got q = {self.q}")

    @property
    def symbol(self) -> str:
        return f"ℤ/{self.q}"

    @property
    def bins(self) -> int:
        return min(self.q, 64)

    @property
    def harmonics(self) -> int:
        return min(max(self.q // 2, 1), 4)

    @property
    def width(self) -> int:
        return 2 * self.harmonics

    @property
    def delta_width(self) -> int:
        return 2 * self.harmonics

    def compose(self, a: Values, d: Values) -> Values:
        # Both lie in 0..q-1, so one subtraction wraps; float `mod` near 2^24 would round.
        return jnp.where(d >= self.q - a, d - (self.q - a), a + d)

    def difference(self, b: Values, a: Values) -> Values:
        return jnp.where(b >= a, b - a, (self.q - a) + b)

    def then(self, d: Values, e: Values) -> Values:
        return self.compose(d, e)

    def inverse(self, d: Values) -> Values:
        return self.difference(jnp.zeros_like(d), d)

    def contains(self, a: Values) -> Bool[Array, "..."]:
        return (a == jnp.round(a)) & (a >= 0) & (a < self.q)

    def row(self) -> CircleRow:
        return CircleRow(self.q)

    def encode(self, a: Values) -> Features:
        angles = (2 * jnp.pi / self.q) * a[..., None] * jnp.arange(1, self.harmonics + 1, dtype=jnp.float32)
        return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=-1)

    def encode_delta(self, d: Values) -> Features:
        return self.encode(d)

    def bin(self, a: Values) -> Int[Array, "..."]:
        if self.q == self.bins:
            return a.astype(jnp.int32)
        return jnp.clip(jnp.floor(a * (self.bins / self.q)), 0, self.bins - 1).astype(jnp.int32)

    def embed(self, a: Values) -> Features:
        angle = (2 * jnp.pi / self.q) * a
        return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)

    def decode(self, y: Features) -> Values:
        turns = jnp.arctan2(y[..., 1], y[..., 0]) / (2 * jnp.pi)
        nearest = jnp.round(turns * self.q)
        wrapped = jnp.where(nearest < 0, nearest + self.q, nearest)
        return jnp.where(wrapped >= self.q, wrapped - self.q, wrapped)

    def regression_loss(self, y: Features, a: Values) -> Values:
        return cosine_loss(y, self.embed(a))

    def parse(self, text: str) -> float:
        value = parse_whole(text)
        if not 0 <= value < self.q:
            raise InputError(f"{text!r} is outside {self.symbol} (0 to {self.q - 1})")
        return value

    def format(self, a: float) -> str:
        return f"{a:.0f}"

    def format_delta(self, d: float) -> str:
        return f"{d:+.0f} mod {self.q}"
