"""How attributes and subgoals are shown to a network. This is where methods differ in what they see."""

import abc
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from saplan.algebra import Delta, Product, Rho
from saplan.algebra.base import Features


@dataclass(frozen=True)
class Encoder(abc.ABC):
    """Features of ρ and of a subgoal. Frozen and hashable, so that it is static under `jax.jit`."""

    space: Product

    @property
    @abc.abstractmethod
    def subgoal_size(self) -> int:
        """Numbers in a subgoal."""

    @property
    @abc.abstractmethod
    def state_width(self) -> int:
        """Features of ρ."""

    @property
    @abc.abstractmethod
    def subgoal_width(self) -> int:
        """Features of a subgoal."""

    @abc.abstractmethod
    def state(self, rho: Rho) -> Features:
        """Features of ρ."""

    @abc.abstractmethod
    def subgoal(self, subgoal: Float[Array, "... W"]) -> Features:
        """Features of a subgoal."""

    def drop(self, rho: Float[Array, "n K"]) -> Float[Array, "n K"]:
        """ρ of the examples of a gradient step as the network learns from it."""
        return rho


@dataclass(frozen=True)
class AlgebraEncoder(Encoder):
    """By the algebra of each attribute; a subgoal is a change δρ. This is the paper's claim."""

    @property
    def subgoal_size(self) -> int:
        return self.space.size

    @property
    def state_width(self) -> int:
        return self.space.width

    @property
    def subgoal_width(self) -> int:
        return self.space.delta_width

    def state(self, rho: Rho) -> Features:
        return self.space.encode(rho)

    def subgoal(self, subgoal: Delta) -> Features:
        return self.space.encode_delta(subgoal)


@dataclass(frozen=True)
class ChangeEncoder(AlgebraEncoder):
    """Changes alone: the policy does not see ρ, for worlds where the way to a change does not depend on it."""

    @property
    def state_width(self) -> int:
        return 1

    def state(self, rho: Rho) -> Features:
        return jnp.ones((*rho.shape[:-1], 1))


@dataclass(frozen=True)
class DropoutEncoder(AlgebraEncoder):
    """The algebra, where coordinates may be hidden: NaN has no features, and the last feature says that it is there.

    A part of the examples of every gradient step hides all coordinates whose values can lie ever farther out, so that
    the network knows how to act without them, too.
    """

    share: float

    @property
    def state_width(self) -> int:
        return self.space.width + 1

    def state(self, rho: Rho) -> Features:
        hidden = jnp.isnan(rho)
        features = self.space.encode(jnp.where(hidden, 0.0, rho))
        widths = np.array([block.width for block in self.space.blocks])
        known = features * ~jnp.repeat(hidden, widths, axis=-1, total_repeat_length=int(widths.sum()))
        return jnp.concatenate([known, jnp.any(hidden, axis=-1, keepdims=True)], axis=-1)

    def drop(self, rho: Float[Array, "n K"]) -> Float[Array, "n K"]:
        rows = jnp.arange(len(rho)) < self.share * len(rho)
        return jnp.where(rows[:, None] & self.space.open_sides.any(axis=0), jnp.nan, rho)


@dataclass(frozen=True)
class OneHotEncoder(Encoder):
    """One flag per value of every attribute, for ρ and for a target ρ alike: all values are equally far apart."""

    @property
    def subgoal_size(self) -> int:
        return self.space.size

    @property
    def state_width(self) -> int:
        return sum(self.space.bins)

    @property
    def subgoal_width(self) -> int:
        return sum(self.space.bins)

    def state(self, rho: Rho) -> Features:
        cells = self.space.bin(rho)
        flags = [jax.nn.one_hot(cells[..., k], size) for k, size in enumerate(self.space.bins)]
        return jnp.concatenate(flags, axis=-1)

    def subgoal(self, subgoal: Rho) -> Features:
        return self.state(subgoal)


@dataclass(frozen=True)
class GoalEncoder(Encoder):
    """ρ by its algebra; a subgoal is the whole goal: the values asked for, and which attributes are asked for."""

    @property
    def subgoal_size(self) -> int:
        return 2 * self.space.size

    @property
    def state_width(self) -> int:
        return self.space.width

    @property
    def subgoal_width(self) -> int:
        return self.space.width + self.space.size

    def state(self, rho: Rho) -> Features:
        return self.space.encode(rho)

    def subgoal(self, subgoal: Float[Array, "... W"]) -> Features:
        value, asked = jnp.split(subgoal, 2, axis=-1)
        return jnp.concatenate([self.space.encode(value * asked), asked], axis=-1)
