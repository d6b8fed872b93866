"""Attributes whose value does not decide which changes are possible, such as a place in rooms of any size."""

from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
from jaxtyping import Array, Bool

from saplan.algebra.base import Features, Values
from saplan.algebra.marked import Marked
from saplan.algebra.rows import Row
from saplan.errors import InputError


@final
@dataclass(frozen=True)
class Homogeneous(Marked):
    """A block that plans and goals use as usual, and that networks and counts of visits do not see.

    What is possible then depends on the observation and on the other attributes alone, so it holds for values that
    training never met.
    """

    mark: ClassVar[str] = "homogeneous"
    width: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if isinstance(self.of, Marked):
            raise InputError(f"a homogeneous attribute cannot be {self.of.symbol} as well")

    @property
    def delta_width(self) -> int:
        return self.of.delta_width

    @property
    def identity(self) -> float:
        return self.of.identity

    @property
    def ordered(self) -> bool:
        return self.of.ordered

    @property
    def grain(self) -> float:
        return self.of.grain

    @property
    def period(self) -> float:
        return self.of.period

    @property
    def tolerance(self) -> float:
        return self.of.tolerance

    def compose(self, a: Values, d: Values) -> Values:
        return self.of.compose(a, d)

    def difference(self, b: Values, a: Values) -> Values:
        return self.of.difference(b, a)

    def then(self, d: Values, e: Values) -> Values:
        return self.of.then(d, e)

    def inverse(self, d: Values) -> Values:
        return self.of.inverse(d)

    def row(self) -> Row | None:
        return self.of.row()

    def encode(self, a: Values) -> Features:
        return jnp.zeros((*a.shape, 0))

    def encode_delta(self, d: Values) -> Features:
        return self.of.encode_delta(d)

    def format_delta(self, d: float) -> str:
        return self.of.format_delta(d)

    def snap(self, d: Values) -> Values:
        return self.of.snap(d)

    def typical(self, snapped: Values, mean: Values) -> Values:
        return self.of.typical(snapped, mean)

    def interval(self, a: float, slack: float) -> tuple[float, float]:
        return self.of.interval(a, slack)

    def close(self, a: Values, b: Values) -> Bool[Array, "..."]:
        return self.of.close(a, b)
