"""How attributes and wishes are shown to a network. Methods that see them differently differ here."""

import abc
from dataclasses import dataclass

from jaxtyping import Array, Float

from saplan.algebra import Delta, Product, Rho
from saplan.algebra.base import Features


class Encoder(abc.ABC):
    """Features of ρ and of a wish. Frozen and hashable, so that it is static under `jax.jit`."""

    subgoal_size: int
    """Numbers in a wish."""
    state_width: int
    """Features of ρ."""
    subgoal_width: int
    """Features of a wish."""

    @abc.abstractmethod
    def state(self, rho: Rho) -> Features:
        """Features of ρ."""

    @abc.abstractmethod
    def subgoal(self, subgoal: Float[Array, "... W"]) -> Features:
        """Features of a wish."""


@dataclass(frozen=True)
class AlgebraEncoder(Encoder):
    """By the algebra of each attribute; a wish is a change δρ. This is the paper's claim."""

    space: Product

    @property
    def subgoal_size(self) -> int:  # type: ignore[override]
        return self.space.size

    @property
    def state_width(self) -> int:  # type: ignore[override]
        return self.space.width

    @property
    def subgoal_width(self) -> int:  # type: ignore[override]
        return self.space.delta_width

    def state(self, rho: Rho) -> Features:
        return self.space.encode(rho)

    def subgoal(self, subgoal: Delta) -> Features:
        return self.space.encode_delta(subgoal)
