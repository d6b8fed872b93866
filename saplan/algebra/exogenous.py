"""Attributes that change by themselves, such as the time of day or hunger."""

from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
from jaxtyping import Array, Bool

from saplan.algebra.base import Features, Values
from saplan.algebra.marked import Marked


@final
@dataclass(frozen=True)
class Exogenous(Marked):
    """A block whose only change is the identity: policies see its values, edges and plans leave them free."""

    mark: ClassVar[str] = "exogenous"
    delta_width: ClassVar[int] = 0
    exogenous: ClassVar[bool] = True
    grain: ClassVar[float] = 2.0**40
    """All values are the same node of a graph."""

    @property
    def width(self) -> int:
        return self.of.width

    def compose(self, a: Values, d: Values) -> Values:
        return a + jnp.zeros_like(d)

    def difference(self, b: Values, a: Values) -> Values:
        return jnp.zeros_like(b - a)

    def then(self, d: Values, e: Values) -> Values:
        return jnp.zeros_like(d + e)

    def inverse(self, d: Values) -> Values:
        return jnp.zeros_like(d)

    def row(self) -> None:
        return None

    def encode(self, a: Values) -> Features:
        return self.of.encode(a)

    def encode_delta(self, d: Values) -> Features:
        return jnp.zeros((*d.shape, 0))

    def format_delta(self, d: float) -> str:
        return "unchanged"

    def snap(self, d: Values) -> Values:
        return jnp.zeros_like(d)

    def close(self, a: Values, b: Values) -> Bool[Array, "..."]:
        return jnp.ones((a == b).shape, bool)
