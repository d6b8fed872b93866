"""The interface and the laws of attribute blocks.

A block is the algebra of one attribute. Its elements and its changes ("deltas") are both float32 scalars, and every
method below is elementwise over arrays of any shape, so a block works on one number or on a batch of a million.
"""

import abc
import math
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from saplan.algebra.rows import Row
from saplan.errors import InputError

EXACT = 2.0**24
"""float32 holds every integer up to this one; larger counts are refused."""
LARGEST = (2 - 2.0**-23) * 2.0**127
"""The largest finite float32."""

Values = Float[Array, "..."]
Features = Float[Array, "... features"]


class Block(abc.ABC):
    """One attribute's algebra: a group, a monoid (ℕ) or, for categories, a groupoid of (from, to) pairs.

    The order of composition is explicit: `compose(a, d)` is "d applied to a" and `then(d, e)` is "d first, e second",
    so that a non-abelian block fits this interface unchanged.
    """

    # Read-only for type checkers, so that a class variable, a dataclass field or a property can implement them.
    if TYPE_CHECKING:

        @property
        def symbol(self) -> str:
            """The algebra as people write it: ℕ, ℤ, ℤ/3, ℝ, ..."""

        @property
        def width(self) -> int:
            """Number of features of `encode`."""

        @property
        def delta_width(self) -> int:
            """Number of features of `encode_delta`."""

        @property
        def embed_width(self) -> int:
            """Number of coordinates of `embed`, the output space of a regressor."""

        @property
        def bins(self) -> int:
            """Number of cells of `bin`."""

        @property
        def identity(self) -> float:
            """The delta that changes nothing."""

        @property
        def ordered(self) -> bool:
            """Whether `>=` has a meaning."""

        @property
        def grain(self) -> float:
            """Spacing of the nodes of a graph: well above rounding, well below the tolerance."""

        @property
        def period(self) -> float:
            """The length of a circle of real numbers; infinite elsewhere."""

        @property
        def tolerance(self) -> float:
            """How near a value must come to a goal, unless the goal has its own tolerance."""

        @property
        def exogenous(self) -> bool:
            """Whether the attribute changes by itself: policies see it; changes, plans and goals leave it out."""
    else:
        identity = 0.0
        ordered = True
        grain = 1.0
        period = math.inf
        tolerance = 0.0
        exogenous = False

    @abc.abstractmethod
    def compose(self, a: Values, d: Values) -> Values:
        """The element that the change `d` leads to from `a`. It may lie outside the space: see `contains`."""

    @abc.abstractmethod
    def difference(self, b: Values, a: Values) -> Values:
        """The change from `a` to `b`: composing `a` with it gives `b`."""

    @abc.abstractmethod
    def then(self, d: Values, e: Values) -> Values:
        """The change `d` followed by the change `e`."""

    @abc.abstractmethod
    def inverse(self, d: Values) -> Values:
        """The change that undoes `d`."""

    @abc.abstractmethod
    def contains(self, a: Values) -> Bool[Array, "..."]:
        """Whether `a` is an element of the space."""

    @abc.abstractmethod
    def row(self) -> Row | None:
        """How sums of changes restrict a plan: on a line, on a circle, between labels, or not at all."""

    @abc.abstractmethod
    def encode(self, a: Values) -> Features:
        """Features of an element for a network."""

    @abc.abstractmethod
    def encode_delta(self, d: Values) -> Features:
        """Features of a change for a network."""

    @abc.abstractmethod
    def bin(self, a: Values) -> Int[Array, "..."]:
        """The cell of `a` for marginal counts, in 0..bins-1; the outermost cells include all values beyond them."""

    @abc.abstractmethod
    def embed(self, a: Values) -> Features:
        """The regressor output that stands for `a`: `decode(embed(a)) == a`."""

    @abc.abstractmethod
    def decode(self, y: Features) -> Values:
        """The element nearest to a regressor's output (the paper rounds up, where it means to the nearest)."""

    @abc.abstractmethod
    def regression_loss(self, y: Features, a: Values) -> Values:
        """Loss of a regressor's output `y` for the true element `a`, in the block's own geometry."""

    @abc.abstractmethod
    def parse(self, text: str) -> float:
        """The element that a text stands for; `InputError` if there is none."""

    @abc.abstractmethod
    def format(self, a: float) -> str:
        """An element as text."""

    @abc.abstractmethod
    def format_delta(self, d: float) -> str:
        """A change as text."""

    def snap(self, d: Values) -> Values:
        """The canonical representative of the changes that count as the same change as `d`."""
        return d

    def typical(self, snapped: Values, mean: Values) -> Values:
        """The expected change, given the canonical one and the mean of the observed ones: the former, except on ℝ."""
        return snapped

    def interval(self, a: float, slack: float) -> tuple[float, float]:
        """Bounds of the elements within `slack` of one; low > high on a circle, where they go round through zero."""
        return a - slack, a + slack

    def close(self, a: Values, b: Values) -> Bool[Array, "..."]:
        """Whether two elements count as the same: exactly for discrete blocks, within `tolerance` on ℝ."""
        return a == b


def features(*columns: ArrayLike) -> Features:
    """Elementwise features, stacked along a new last axis as float32."""
    return jnp.stack([jnp.asarray(c, jnp.float32) for c in columns], axis=-1)


def cosine_loss(y: Features, target: Features) -> Values:
    """One minus the cosine of the angle between a regressor's output and a point on the unit circle."""
    # The norm is kept away from zero so that the gradient of a zero output is finite.
    norm = jnp.sqrt(jnp.sum(y**2, axis=-1) + 1e-12)
    return 1 - jnp.sum(y * target, axis=-1) / norm


def one_hot(a: Values | Int[Array, "..."], size: int) -> Features:
    """A feature for each of `size` elements that have no order; the features of `a` are also its embedding."""
    return jax.nn.one_hot(a.astype(jnp.int32), size)


def likeliest(y: Features) -> Values:
    """The element whose score in a regressor's output is highest."""
    return jnp.argmax(y, axis=-1).astype(jnp.float32)


def cross_entropy(y: Features, a: Values | Int[Array, "..."]) -> Values:
    """Minus the log-probability that the scores of a regressor's output give to the element `a`."""
    return -jnp.sum(one_hot(a, y.shape[-1]) * jax.nn.log_softmax(y, axis=-1), axis=-1)


def signed_log(x: Values) -> Values:
    """A feature of order one for any count: 0 at 0, ±1 at ±15."""
    return jnp.sign(x) * jnp.log2(1 + jnp.abs(x)) / 4


def parse_number(text: str) -> float:
    """The finite number that a text stands for, or `InputError`."""
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{text!r} is not a number") from None
    if not abs(value) <= LARGEST:
        raise InputError(f"{text!r} is not a finite number")
    return value


def parse_whole(text: str) -> float:
    """The whole number that a text stands for, if float32 holds it exactly, or `InputError`."""
    value = parse_number(text)
    if value != int(value):
        raise InputError(f"{text!r} is not a whole number")
    if abs(value) > EXACT:
        raise InputError(f"{text!r} is beyond 2^24, the largest exact count")
    return value
