"""Rigid motions: two coordinates of a place and a heading whose changes are taken in the body's own frame.

A pose is an element of SE(2), or on a grid of ℤ² ⋊ ℤ/4. Its change (forward, sideways, turn) means the same at every
pose, where the same step in world coordinates would be another change for every heading. The three stay coordinates of
their own, with their own blocks, so that goals, features, bins and pictures treat them like any others; only the laws
of composition treat them together.
"""

import math
from dataclasses import dataclass
from typing import final

import jax.numpy as jnp
from jaxtyping import Array, Float

from saplan.algebra.base import Block, Values
from saplan.algebra.circle import Circle
from saplan.algebra.cyclic import Cyclic
from saplan.algebra.integer import Whole
from saplan.algebra.marked import inner
from saplan.algebra.real import Real
from saplan.errors import InputError

QUARTERS = 4
Pose = Float[Array, "... 3"]


@final
@dataclass(frozen=True)
class Frame:
    """The coordinates x, y and heading of a pose. A heading of 0 looks along x, and turning leads towards y."""

    x: int
    y: int
    heading: int

    @property
    def columns(self) -> tuple[int, int, int]:
        """The three coordinates."""
        return self.x, self.y, self.heading

    def check(self, blocks: tuple[Block, ...]) -> None:
        """Raises `InputError` unless the blocks are those of a pose."""
        if len(set(self.columns)) < 3:
            raise InputError("a frame needs three different attributes")
        place, heading = (inner(blocks[self.x]), inner(blocks[self.y])), blocks[self.heading]
        grid = all(isinstance(block, Whole) for block in place) and isinstance(heading, Cyclic)
        grid = grid and heading.bins == QUARTERS
        plane = all(isinstance(block, Real) for block in place) and isinstance(heading, Circle)
        if not grid and not plane:
            raise InputError("a frame needs two counts or integers and ℤ/4 (a grid), or two reals and S¹ (a plane)")

    def compose(self, heading: Block, a: Pose, d: Pose) -> Pose:
        """The pose after a change in the body's own frame, or the change after another one."""
        x, y = self._turned(heading, d[..., 0], d[..., 1], a[..., 2])
        return jnp.stack([a[..., 0] + x, a[..., 1] + y, heading.compose(a[..., 2], d[..., 2])], axis=-1)

    def then(self, heading: Block, d: Pose, e: Pose) -> Pose:
        """The change `d` followed by the change `e`."""
        x, y = self._turned(heading, e[..., 0], e[..., 1], d[..., 2])
        return jnp.stack([d[..., 0] + x, d[..., 1] + y, heading.then(d[..., 2], e[..., 2])], axis=-1)

    def difference(self, heading: Block, b: Pose, a: Pose) -> Pose:
        """The change from `a` to `b`, as seen from `a`."""
        back = heading.inverse(heading.difference(a[..., 2], jnp.zeros_like(a[..., 2])))
        x, y = self._turned(heading, b[..., 0] - a[..., 0], b[..., 1] - a[..., 1], back)
        return jnp.stack([x, y, heading.difference(b[..., 2], a[..., 2])], axis=-1)

    def inverse(self, heading: Block, d: Pose) -> Pose:
        """The change that undoes `d`."""
        back = heading.inverse(d[..., 2])
        x, y = self._turned(heading, d[..., 0], d[..., 1], back)
        return jnp.stack([-x, -y, back], axis=-1)

    @staticmethod
    def _turned(heading: Block, x: Values, y: Values, by: Values) -> tuple[Values, Values]:
        """A step turned by a heading: exactly on a grid."""
        if isinstance(heading, Circle):
            angle = (2 * math.pi / heading.period) * by
            return jnp.cos(angle) * x - jnp.sin(angle) * y, jnp.sin(angle) * x + jnp.cos(angle) * y
        cosine = jnp.where(by == 0, 1.0, jnp.where(by == 2, -1.0, 0.0))
        sine = jnp.where(by == 1, 1.0, jnp.where(by == 3, -1.0, 0.0))
        # Adding zero makes a minus zero a zero: keys of changes are compared.
        return cosine * x - sine * y + 0.0, sine * x + cosine * y + 0.0
