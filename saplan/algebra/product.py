"""The product 𝓡 = G_1 × ... × G_K of named blocks: the space of ρ."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from saplan.algebra.base import EXACT, Block, Features
from saplan.algebra.frame import Frame
from saplan.algebra.rows import LineRow
from saplan.errors import InputError, unknown_name

Rho = Float[Array, "... K"]
"""ρ, or a batch of them: one float32 per attribute."""
Delta = Float[Array, "... K"]
"""δρ, or a batch of them."""


NAME = re.compile(r"[\w-]+")
"""Names that the text of a goal can contain."""
FORWARD, SIDEWAYS = "forward", "sideways"
"""Names of the changes of a place in the body's own frame."""


@final
@dataclass(frozen=True)
class Product:
    """Named coordinates, each with its block. Every law holds coordinate by coordinate.

    Neighbouring coordinates with equal blocks are computed together, for speed.
    """

    names: tuple[str, ...]
    blocks: tuple[Block, ...]
    frames: tuple[Frame, ...] = ()
    """Poses among the coordinates, whose changes are taken in the body's own frame."""

    def __post_init__(self) -> None:
        if not self.names or len(self.names) != len(self.blocks):
            raise InputError(f"a product needs one name per block, got {len(self.names)} and {len(self.blocks)}")
        for name in self.names:
            if not isinstance(name, str) or not NAME.fullmatch(name) or not name.isprintable():
                raise InputError(f"attribute name {name!r}: use letters, digits, '_' and '-'")
        if len(set(self.names)) != len(self.names):
            raise InputError(f"attribute names must differ, got {', '.join(self.names)}")
        for frame in self.frames:
            frame.check(self.blocks)
        framed = [column for frame in self.frames for column in frame.columns]
        if len(set(framed)) != len(framed):
            raise InputError("an attribute can belong to one frame only")

    @classmethod
    def of(cls, **blocks: Block) -> "Product":
        """A product from keywords, such as `Product.of(red=Natural(), switch=Cyclic(3))`."""
        return cls(tuple(blocks), tuple(blocks.values()))

    def with_pose(self, x: str, y: str, heading: str) -> "Product":
        """The same product where changes of a place and a heading are taken in the body's own frame."""
        return replace(self, frames=(*self.frames, Frame(self.index(x), self.index(y), self.index(heading))))

    @property
    def size(self) -> int:
        """K, the number of attributes."""
        return len(self.names)

    @cached_property
    def runs(self) -> tuple[tuple[int, int, Block], ...]:
        """Maximal stretches (start, stop, block) of equal neighbouring blocks."""
        runs: list[tuple[int, int, Block]] = []
        for k, block in enumerate(self.blocks):
            if runs and runs[-1][2] == block:
                runs[-1] = (runs[-1][0], k + 1, block)
            else:
                runs.append((k, k + 1, block))
        return tuple(runs)

    def index(self, name: str) -> int:
        """The coordinate of a name; `InputError` with the nearest known name if there is none."""
        if name not in self.names:
            raise unknown_name("attribute", name, self.names)
        return self.names.index(name)

    def _elementwise(self, method: Callable[..., Array], *operands: Rho) -> Array:
        return jnp.concatenate([method(block, *(x[..., i:j] for x in operands)) for i, j, block in self.runs], axis=-1)

    def _framed(self, method: Callable[..., Array], apart: Array, *operands: Rho) -> Array:
        """The result of an operation coordinate by coordinate, with the poses replaced by their own law."""
        for frame in self.frames:
            columns = np.array(frame.columns)
            pose = method(frame, self.blocks[frame.heading], *(x[..., columns] for x in operands))
            apart = apart.at[..., columns].set(pose)
        return apart

    def _features(self, method: Callable[[Block, Array], Array], operand: Rho) -> Features:
        parts = [method(block, operand[..., i:j]) for i, j, block in self.runs]
        return jnp.concatenate([p.reshape(*p.shape[:-2], p.shape[-2] * p.shape[-1]) for p in parts], axis=-1)

    def compose(self, a: Rho, d: Delta) -> Rho:
        """ρ + δρ. It may lie outside the space: see `contains`."""
        apart = self._elementwise(lambda block, x, y: block.compose(x, y), a, d)
        return self._framed(Frame.compose, apart, a, d)

    def difference(self, b: Rho, a: Rho) -> Delta:
        """The change from `a` to `b`."""
        apart = self._elementwise(lambda block, x, y: block.difference(x, y), b, a)
        return self._framed(Frame.difference, apart, b, a)

    def then(self, d: Delta, e: Delta) -> Delta:
        """The change `d` followed by the change `e`."""
        apart = self._elementwise(lambda block, x, y: block.then(x, y), d, e)
        return self._framed(Frame.then, apart, d, e)

    def inverse(self, d: Delta) -> Delta:
        """The change that undoes `d`."""
        apart = self._elementwise(lambda block, x: block.inverse(x), d)
        return self._framed(Frame.inverse, apart, d)

    def snap(self, d: Delta) -> Delta:
        """The canonical representative of the changes that count as the same as `d`."""
        return self._elementwise(lambda block, x: block.snap(x), d)

    def typical(self, snapped: Delta, mean: Delta) -> Delta:
        """The expected change, given the canonical one and the mean of the observed ones."""
        return self._elementwise(lambda block, x, y: block.typical(x, y), snapped, mean)

    @property
    def identity(self) -> Delta:
        """The delta that changes nothing."""
        return jnp.array([block.identity for block in self.blocks], jnp.float32)

    def contains(self, a: Rho) -> Bool[Array, "..."]:
        """Whether every coordinate lies in its block."""
        return jnp.all(self._elementwise(lambda block, x: block.contains(x), a), axis=-1)

    def close(self, a: Rho, b: Rho) -> Bool[Array, "..."]:
        """Whether every coordinate counts as the same."""
        return jnp.all(self._elementwise(lambda block, x, y: block.close(x, y), a, b), axis=-1)

    def same_change(self, d: Delta, e: Delta) -> Bool[Array, "..."]:
        """Whether two changes count as the same."""
        return jnp.all(self.snap(d) == self.snap(e), axis=-1)

    @cached_property
    def exogenous(self) -> Bool[np.ndarray, "K"]:
        """Mask of the coordinates that change by themselves."""
        return np.array([block.exogenous for block in self.blocks])

    def changed(self, a: Rho, b: Rho) -> Bool[Array, "..."]:
        """Whether a coordinate differs that is not exogenous."""
        return jnp.any((a != b) & ~self.exogenous, axis=-1)

    def bin(self, a: Rho) -> Int[Array, "... K"]:
        """The cell of every coordinate for marginal counts."""
        return self._elementwise(lambda block, x: block.bin(x), a)

    @property
    def grain(self) -> tuple[float, ...]:
        """Spacing of the nodes of a graph, per coordinate."""
        return tuple(block.grain for block in self.blocks)

    @property
    def bins(self) -> tuple[int, ...]:
        """Number of cells per coordinate."""
        return tuple(block.bins for block in self.blocks)

    @property
    def width(self) -> int:
        """Number of features of `encode`."""
        return sum(block.width for block in self.blocks)

    @property
    def delta_width(self) -> int:
        """Number of features of `encode_delta`."""
        return sum(block.delta_width for block in self.blocks)

    @property
    def embed_width(self) -> int:
        """Number of coordinates of `embed`."""
        return sum(block.embed_width for block in self.blocks)

    @cached_property
    def open_sides(self) -> Bool[np.ndarray, "2 K"]:
        """Whether values of every coordinate can lie ever farther out, below and above."""
        rows = [block.row() for block in self.blocks]
        lines = [row if isinstance(row, LineRow) and not row.wound else LineRow(0.0, 0.0) for row in rows]
        return np.array([[row.low <= -EXACT for row in lines], [row.high >= EXACT for row in lines]])

    def encode(self, a: Rho) -> Features:
        """Features of ρ for a network."""
        return self._features(lambda block, x: block.encode(x), a)

    def encode_delta(self, d: Delta) -> Features:
        """Features of δρ for a network."""
        return self._features(lambda block, x: block.encode_delta(x), d)

    def embed(self, a: Rho) -> Features:
        """The regressor output that stands for `a`."""
        return self._features(lambda block, x: block.embed(x), a)

    def _embedded(self, y: Features) -> Iterator[tuple[int, Block, Features]]:
        start = 0
        for k, block in enumerate(self.blocks):
            yield k, block, y[..., start : start + block.embed_width]
            start += block.embed_width

    def decode(self, y: Features) -> Rho:
        """The element nearest to a regressor's output."""
        return jnp.stack([block.decode(part) for _, block, part in self._embedded(y)], axis=-1)

    def regression_loss(self, y: Features, a: Rho) -> Float[Array, "..."]:
        """Sum of the losses of all coordinates, each in the geometry of its block."""
        return jnp.sum(self.regression_losses(y, a), axis=-1)

    def regression_losses(self, y: Features, a: Rho) -> Float[Array, "... K"]:
        """The loss of every coordinate."""
        return jnp.stack([block.regression_loss(part, a[..., k]) for k, block, part in self._embedded(y)], axis=-1)

    def parse(self, text: str) -> tuple[float, ...]:
        """Element from text that gives every attribute once, as `name=value`; for partial goals see `saplan.goals`."""
        values: dict[int, float] = {}
        for token in text.replace(",", " ").split():
            name, sign, value = token.partition("=")
            if not sign:
                raise InputError(f"{token!r}: write attributes as name=value")
            k = self.index(name)
            if k in values:
                raise InputError(f"attribute {name!r} is given twice")
            try:
                values[k] = self.blocks[k].parse(value)
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
        missing = [name for k, name in enumerate(self.names) if k not in values]
        if missing:
            raise InputError(f"missing attributes: {', '.join(missing)}")
        return tuple(values[k] for k in range(self.size))

    def format(self, a: Rho | np.ndarray | tuple[float, ...]) -> str:
        """An element as text, such as `red=2 blue=1 switch=0`."""
        return " ".join(
            f"{name}={block.format(float(x))}"
            for name, block, x in zip(self.names, self.blocks, np.asarray(a), strict=True)
        )

    def format_delta(self, d: Delta | np.ndarray | tuple[float, ...]) -> str:
        """The changed attributes as text, such as `map_red -1, red +1`; `nothing` for the identity."""
        names = list(self.names)
        for frame in self.frames:
            names[frame.x], names[frame.y] = FORWARD, SIDEWAYS
        changed = [
            f"{name} {block.format_delta(float(x))}"
            for name, block, x in zip(names, self.blocks, np.asarray(d), strict=True)
            if float(x) != block.identity
        ]
        return ", ".join(changed) or "nothing"

    def __str__(self) -> str:
        frames = "".join(f", {self.names[f.x]} and {self.names[f.y]} in the frame of {self.names[f.heading]}"
                         for f in self.frames)  # fmt: skip
        parts = (f"{name}∈{block.symbol}" for name, block in zip(self.names, self.blocks, strict=True))
        return " × ".join(parts) + frames
