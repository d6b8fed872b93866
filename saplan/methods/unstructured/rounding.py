"""A game whose reals are rounded to integers and angles to bins, for methods that know attributes as symbols."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from saplan.algebra import Block, Circle, Integer, Natural, Product, Real
from saplan.algebra.real import Continuous
from saplan.games.game import Game, State
from saplan.games.wrapper import GameWrapper


@dataclass(frozen=True)
class Rounded(GameWrapper[State]):
    """The same game, its real attributes rounded to integers and its angles to bins."""

    @property
    def space(self) -> Product:
        return Product(self.game.space.names, tuple(_whole(block) for block in self.game.space.blocks))

    def attributes(self, state: State) -> Float[Array, "K"]:
        rho = self.game.attributes(state)
        return jnp.stack([_symbol(block, rho[k]) for k, block in enumerate(self.game.space.blocks)])

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        """One: rounding hides feasibility, and the table holds only changes that happened."""
        return jnp.ones(())


def _symbol(block: Block, value: Float[Array, ""]) -> Float[Array, ""]:
    """A real number rounded to an integer, an angle to the middle of its bin, any other value as it is."""
    if isinstance(block, Circle):
        return (block.bin(value) + 0.5) * (block.period / block.bins)
    return jnp.round(value) if isinstance(block, Real) else value


def _whole(block: Block) -> Block:
    if not isinstance(block, Real):
        return block
    return Natural(bins=block.bins + 1) if block.low >= 0 else Integer()


def rounded(game: Game[State]) -> Game[State]:
    """The game with rounded attributes; the game itself if it has no real ones."""
    return Rounded(game) if any(isinstance(block, Continuous) for block in game.space.blocks) else game
