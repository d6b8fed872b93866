"""Attributes whose block carries a mark: they change by themselves, or their value decides nothing."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from saplan.algebra.base import Block, Features, Values


@dataclass(frozen=True)
class Marked(Block):
    """A block inside another one, which keeps its elements, their texts and their regression, and counts no visits."""

    of: Block
    mark: ClassVar[str]
    """The word behind the symbol."""
    bins: ClassVar[int] = 1

    @property
    def symbol(self) -> str:
        return f"{self.of.symbol} ({self.mark})"

    @property
    def embed_width(self) -> int:
        return self.of.embed_width

    def contains(self, a: Values) -> Bool[Array, "..."]:
        return self.of.contains(a)

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


def inner(block: Block) -> Block:
    """The block that a marked one is made of; any other block itself."""
    return block.of if isinstance(block, Marked) else block
