"""ℕ: counts, a monoid. A change may lead below zero, where `contains` is false."""

from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from saplan.algebra.base import EXACT, Features, Values, features, parse_whole, signed_log
from saplan.algebra.integer import Whole
from saplan.algebra.rows import LineRow
from saplan.errors import InputError


@final
@dataclass(frozen=True)
class Natural(Whole):
    """ℕ. Changes are whole numbers of either sign; `bins` cells of width one from zero up."""

    bins: int = 32
    symbol: ClassVar[str] = "ℕ"

    def contains(self, a: Values) -> Bool[Array, "..."]:
        return (a == jnp.round(a)) & (a >= 0) & (a <= EXACT)

    def row(self) -> LineRow:
        return LineRow(0.0, EXACT)

    def encode(self, a: Values) -> Features:
        # Thresholds, because rules ask for "at least n", and one smooth feature for larger counts.
        return features(a >= 1, a >= 2, a >= 3, a >= 4, signed_log(a))

    def bin(self, a: Values) -> Int[Array, "..."]:
        return jnp.clip(a, 0, self.bins - 1).astype(jnp.int32)

    def decode(self, y: Features) -> Values:
        return jnp.maximum(jnp.round(y[..., 0]), 0)

    def parse(self, text: str) -> float:
        value = parse_whole(text)
        if value < 0:
            raise InputError(f"{text!r} is negative, but this is a count (ℕ: 0, 1, 2, ...)")
        return value
