"""Attributes that change by themselves, such as the time of day or hunger."""

from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from saplan.algebra.base import Block, Features, Values


@final
@dataclass(frozen=True)
class Exogenous(Block):
    """A block whose only change is the identity: policies see its values, edges and plans leave them free."""

    of: Block
    delta_width: ClassVar[int] = 0
    bins: ClassVar[int] = 1
    exogenous: ClassVar[bool] = True
    grain: ClassVar[float] = 2.0**40
    """All values are the same node of a graph."""

    @property
    def symbol(self) -> str:
        return f"{self.of.symbol} (exogenous)"

    @property
    def width(self) -> int:
        return self.of.width

    @property
    def embed_width(self) -> int:
        return self.of.embed_width

    def compose(self, a: Values, d: Values) -> Values:
        return a + jnp.zeros_like(d)

    def difference(self, b: Values, a: Values) -> Values:
        return jnp.zeros_like(b - a)

    def then(self, d: Values, e: Values) -> Values:
        return jnp.zeros_like(d + e)

    def inverse(self, d: Values) -> Values:
        return jnp.zeros_like(d)

    def contains(self, a: Values) -> Bool[Array, "..."]:
        return self.of.contains(a)

    def row(self) -> None:
        return None

    def encode(self, a: Values) -> Features:
        return self.of.encode(a)

    def encode_delta(self, d: Values) -> Features:
        return jnp.zeros((*d.shape, 0))

    def bin(self, a: Values) -> Int[Array, "..."]:
        return jnp.zeros(a.shape, jnp.int32)

    def embed(self, a: Values) -> Features:
        return self.of.embed(a)

    def decode(self, y: Features) -> Values:
        return self.of.decode(y)

    def regression_loss(self, y: Features, a: Values) -> Values:
        return self.of.regression_loss(y, a)

    def parse(self, text: str) -> float:
        return self.of.parse(text)

    def format(self, a: float) -> str:
        return self.of.format(a)

    def format_delta(self, d: float) -> str:
        return "unchanged"

    def snap(self, d: Values) -> Values:
        return jnp.zeros_like(d)

    def close(self, a: Values, b: Values) -> Bool[Array, "..."]:
        return jnp.ones((a == b).shape, bool)
