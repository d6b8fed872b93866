"""ℤ: whole numbers, a group under addition. ℕ (see `natural`) shares its geometry but not its inverses."""

from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from saplan.algebra.base import EXACT, Block, Features, Values, features, parse_whole, signed_log
from saplan.algebra.rows import LineRow


class Whole(Block):
    """Common part of ℤ and ℕ: addition, the squared loss, and the features of a change."""

    width: ClassVar[int] = 5
    delta_width: ClassVar[int] = 5
    embed_width: ClassVar[int] = 1

    def compose(self, a: Values, d: Values) -> Values:
        return a + d

    def difference(self, b: Values, a: Values) -> Values:
        return b - a

    def then(self, d: Values, e: Values) -> Values:
        return d + e

    def inverse(self, d: Values) -> Values:
        return -d

    def encode_delta(self, d: Values) -> Features:
        return features(d > 0, d < 0, jnp.abs(d) >= 2, jnp.abs(d) >= 3, signed_log(d))

    def embed(self, a: Values) -> Features:
        return a[..., None]

    def regression_loss(self, y: Features, a: Values) -> Values:
        return (y[..., 0] - a) ** 2

    def format(self, a: float) -> str:
        return f"{a:.0f}"

    def format_delta(self, d: float) -> str:
        return f"{d:+.0f}"


@final
@dataclass(frozen=True)
class Integer(Whole):
    """ℤ. `bins` cells of width one, centred on zero."""

    bins: int = 65
    symbol: ClassVar[str] = "ℤ"

    def contains(self, a: Values) -> Bool[Array, "..."]:
        return (a == jnp.round(a)) & (jnp.abs(a) <= EXACT)

    def row(self) -> LineRow:
        return LineRow(-EXACT, EXACT)

    def encode(self, a: Values) -> Features:
        return features(a > 0, a < 0, jnp.abs(a) >= 2, jnp.abs(a) >= 3, signed_log(a))

    def bin(self, a: Values) -> Int[Array, "..."]:
        return jnp.clip(a + self.bins // 2, 0, self.bins - 1).astype(jnp.int32)

    def decode(self, y: Features) -> Values:
        return jnp.round(y[..., 0])

    def parse(self, text: str) -> float:
        return parse_whole(text)
