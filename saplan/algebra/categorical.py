"""Categories: labels without a group law. A change is a pair (from, to)."""

from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from saplan.algebra.base import EXACT, Block, Features, Values, cross_entropy, likeliest, one_hot
from saplan.algebra.rows import NOWHERE, LabelRow
from saplan.errors import InputError, unknown_name


@final
@dataclass(frozen=True)
class Categorical(Block):
    """A finite set of labels, numbered from 0.

    Codes of changes: 0 is the identity; 1 + n·from + to leads from one label to another, and applies only there; -1
    applies nowhere (`then` returns it for two changes that cannot follow each other).
    """

    labels: tuple[str, ...]
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.labels or len(set(self.labels)) != len(self.labels):
            raise InputError(f"a categorical attribute needs distinct labels, got {self.labels}")
        if not all(isinstance(label, str) and label.isprintable() for label in self.labels):
            raise InputError(f"labels must be printable texts, got {self.labels}")
        if self.n**2 > EXACT:
            raise InputError(f"a categorical attribute takes up to 4096 labels, got {self.n}")

    @property
    def n(self) -> int:
        return len(self.labels)

    @property
    def symbol(self) -> str:
        return "{" + ", ".join(self.labels) + "}"

    @property
    def width(self) -> int:
        return self.n

    @property
    def delta_width(self) -> int:
        return 2 * self.n

    @property
    def embed_width(self) -> int:
        return self.n

    @property
    def bins(self) -> int:
        return self.n

    def ends(self, d: Values) -> tuple[Values, Values]:
        """The labels a pair code leads from and to."""
        # In integers: a compiled float division by a constant is a product with its reciprocal, which rounds.
        code = d.astype(jnp.int32) - 1
        return (code // self.n).astype(jnp.float32), (code % self.n).astype(jnp.float32)

    def pair(self, start: Values, end: Values) -> Values:
        """The code of the change from one label to another."""
        return 1 + self.n * start + end

    def compose(self, a: Values, d: Values) -> Values:
        start, end = self.ends(d)
        return jnp.where(d == 0, a, jnp.where((d > 0) & (a == start), end, NOWHERE))

    def difference(self, b: Values, a: Values) -> Values:
        return jnp.where(a == b, 0.0, self.pair(a, b))

    def then(self, d: Values, e: Values) -> Values:
        start, middle = self.ends(d)
        meets, end = self.ends(e)
        joined = jnp.where((d > 0) & (e > 0) & (middle == meets), self.pair(start, end), NOWHERE)
        return jnp.where(d == 0, e, jnp.where(e == 0, d, joined))

    def inverse(self, d: Values) -> Values:
        start, end = self.ends(d)
        return jnp.where(d <= 0, d, self.pair(end, start))

    def contains(self, a: Values) -> Bool[Array, "..."]:
        return (a == jnp.round(a)) & (a >= 0) & (a < self.n)

    def row(self) -> LabelRow:
        return LabelRow(self.n)

    def encode(self, a: Values) -> Features:
        return one_hot(a, self.n)

    def encode_delta(self, d: Values) -> Features:
        moves = (d > 0)[..., None]
        start, end = self.ends(d)
        return jnp.concatenate([self.encode(start) * moves, self.encode(end) * moves], axis=-1)

    def bin(self, a: Values) -> Int[Array, "..."]:
        return jnp.clip(a, 0, self.n - 1).astype(jnp.int32)

    def embed(self, a: Values) -> Features:
        return self.encode(a)

    def decode(self, y: Features) -> Values:
        return likeliest(y)

    def regression_loss(self, y: Features, a: Values) -> Values:
        return cross_entropy(y, a)

    def parse(self, text: str) -> float:
        if text not in self.labels:
            raise unknown_name("label", text, self.labels)
        return float(self.labels.index(text))

    def format(self, a: float) -> str:
        return self.labels[int(a)] if 0 <= a < self.n else "nowhere"

    def format_delta(self, d: float) -> str:
        if d <= 0:
            return "0" if d == 0 else "nowhere"
        start, end = divmod(int(d) - 1, self.n)
        return f"{self.labels[start]}→{self.labels[end]}"
