"""The geometries that attributes can be regressed in: each block's own, or a plain one for comparison."""

import functools
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from saplan.algebra import Block, Circle, Cyclic, Natural, Product
from saplan.algebra.base import Features, Values, cross_entropy, likeliest, one_hot
from saplan.errors import unknown_name

STRUCTURED = "structured"


def _as(kind: type[Block], block: Block) -> Block:
    return kind(**{field.name: getattr(block, field.name) for field in fields(block)})  # type: ignore[arg-type]


@functools.cache
def _plain(kind: type[Block]) -> type[Block]:
    class Plain(kind):  # type: ignore[misc,valid-type]
        """A block regressed as one number."""

        embed_width = 1

        def embed(self, a: Values) -> Features:
            return a[..., None]

        def decode(self, y: Features) -> Values:
            low, high = _range(self)
            nearest = y[..., 0] if self.grain < 1 else jnp.round(y[..., 0])
            return jnp.clip(nearest, low, high)

        def regression_loss(self, y: Features, a: Values) -> Values:
            return (y[..., 0] - a) ** 2

    return Plain


@functools.cache
def _one_hot(kind: type[Block]) -> type[Block]:
    class OneHot(kind):  # type: ignore[misc,valid-type]
        """A block regressed as one class per element, a real as one class per grain."""

        @property
        def embed_width(self) -> int:
            low, high = _range(self)
            classes: int = round((high - low) / self.grain) + 1
            return classes

        def _class(self, a: Values) -> Int[Array, "..."]:
            place = jnp.round((a - _range(self)[0]) / self.grain)
            return jnp.clip(place, 0, self.embed_width - 1).astype(jnp.int32)

        def embed(self, a: Values) -> Features:
            return one_hot(self._class(a), self.embed_width)

        def decode(self, y: Features) -> Values:
            nearest: Values = _range(self)[0] + self.grain * likeliest(y)
            return nearest

        def regression_loss(self, y: Features, a: Values) -> Values:
            return cross_entropy(y, self._class(a))

    return OneHot


def _range(block: Any) -> tuple[float, float]:
    """The least and the greatest element in a plain geometry."""
    if isinstance(block, Cyclic):
        return 0.0, block.q - 1.0
    if isinstance(block, Circle):
        return 0.0, block.period - block.grain
    if hasattr(block, "low") and block.bounded:
        return block.low, block.high
    half = block.bins // 2
    return (0.0, block.bins - 1.0) if isinstance(block, Natural) or not block.ordered else (-half, half)


GEOMETRIES: dict[str, Callable[[Block], Block]] = {
    STRUCTURED: lambda block: block,
    "squared": lambda block: _as(_plain(type(block)), block),
    "one-hot": lambda block: _as(_one_hot(type(block)), block),
}
"""The regressed form of every block."""


def with_geometry(space: Product, geometry: str) -> Product:
    """The same space with another geometry."""
    if geometry not in GEOMETRIES:
        raise unknown_name("geometry", geometry, GEOMETRIES)
    return replace(space, blocks=tuple(GEOMETRIES[geometry](block) for block in space.blocks))
