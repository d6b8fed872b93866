"""D_n: the turns and the mirror images of a regular polygon with n corners, a group that is not commutative."""

from dataclasses import dataclass
from typing import ClassVar, TypeVar, final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from saplan.algebra.base import Block, Features, Values, cross_entropy, likeliest, one_hot, parse_whole
from saplan.algebra.rows import GroupRow
from saplan.errors import InputError

Codes = TypeVar("Codes", Array, np.ndarray)
MIRRORED = "m"
MOST_CORNERS = 64


@final
@dataclass(frozen=True)
class Dihedral(Block):
    """D_n. The code k + n·f stands for "mirror left and right if f = 1, then turn by k steps", elements and changes.

    `compose(a, d)` makes the change after a, as one sees it: for any a, turning adds one to k, and mirroring takes k to
    -k and f to 1 - f. In product notation from left to right this is a·d, so the difference of b and a is a⁻¹·b and not
    b·a⁻¹. As text, `1` is a turn by one step, and `m1` is mirrored first.
    """

    n: int = 4
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1 <= self.n <= MOST_CORNERS:
            raise InputError(f"D_n needs n from 1 to {MOST_CORNERS}, got n = {self.n}")

    @property
    def symbol(self) -> str:
        return f"D_{self.n}"

    @property
    def size(self) -> int:
        """Number of elements."""
        return 2 * self.n

    @property
    def width(self) -> int:
        return self.size

    @property
    def delta_width(self) -> int:
        return self.size

    @property
    def embed_width(self) -> int:
        return self.size

    @property
    def bins(self) -> int:
        return self.size

    def multiply(self, a: Codes, d: Codes) -> Codes:
        """Codes of "a, then d", for arrays of JAX and of NumPy."""
        # In integers: a compiled float division by a constant is a product with its reciprocal, which rounds.
        first, second = a.astype(np.int32), d.astype(np.int32)
        mirrors = second // self.n
        turn = (second + (1 - 2 * mirrors) * first) % self.n
        product: Codes = (turn + self.n * ((first // self.n + mirrors) % 2)).astype(a.dtype)
        return product

    def compose(self, a: Values, d: Values) -> Values:
        return self.multiply(a, d)

    def difference(self, b: Values, a: Values) -> Values:
        return self.multiply(self.inverse(a), b)

    def then(self, d: Values, e: Values) -> Values:
        return self.multiply(d, e)

    def inverse(self, d: Values) -> Values:
        # A mirror image is its own inverse.
        return jnp.where((d > 0) & (d < self.n), self.n - d, d)

    def contains(self, a: Values) -> Bool[Array, "..."]:
        return (a == jnp.round(a)) & (a >= 0) & (a < self.size)

    def row(self) -> GroupRow:
        return GroupRow(self.size, self.multiply)

    def encode(self, a: Values) -> Features:
        return one_hot(a, self.size)

    def encode_delta(self, d: Values) -> Features:
        return self.encode(d)

    def bin(self, a: Values) -> Int[Array, "..."]:
        return jnp.clip(a, 0, self.size - 1).astype(jnp.int32)

    def embed(self, a: Values) -> Features:
        return self.encode(a)

    def decode(self, y: Features) -> Values:
        return likeliest(y)

    def regression_loss(self, y: Features, a: Values) -> Values:
        return cross_entropy(y, a)

    def parse(self, text: str) -> float:
        turns = parse_whole(text.removeprefix(MIRRORED))
        if not 0 <= turns < self.n:
            raise InputError(f"{text!r} is outside {self.symbol} (0 to {self.n - 1}, mirrored m0 to m{self.n - 1})")
        return turns + self.n * text.startswith(MIRRORED)

    def format(self, a: float) -> str:
        mirrored, turns = divmod(int(a), self.n)
        return f"{MIRRORED * mirrored}{turns}"

    def format_delta(self, d: float) -> str:
        mirrored, turns = divmod(int(d), self.n)
        words = ["mirrored"] * mirrored + [f"turned by {turns}"] * (turns > 0)
        return " and ".join(words) or "unchanged"
