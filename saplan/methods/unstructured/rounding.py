"""A game with real attributes rounded to integers, for methods that know attributes only as symbols."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from saplan.algebra import Block, Integer, Natural, Product, Real
from saplan.games.game import Game, State
from saplan.games.wrapper import GameWrapper


@dataclass(frozen=True)
class Rounded(GameWrapper[State]):
    """The same game, its real attributes rounded to integers."""

    @property
    def space(self) -> Product:
        return Product(self.game.space.names, tuple(_whole(block) for block in self.game.space.blocks))

    def attributes(self, state: State) -> Float[Array, "K"]:
        real = jnp.array([isinstance(block, Real) for block in self.game.space.blocks])
        rho = self.game.attributes(state)
        return jnp.where(real, jnp.round(rho), rho)

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        """One: rounding hides feasibility, and the table holds only changes that happened."""
        return jnp.ones(())


def _whole(block: Block) -> Block:
    if not isinstance(block, Real):
        return block
    return Natural(bins=block.bins + 1) if block.low >= 0 else Integer()


def rounded(game: Game[State]) -> Game[State]:
    """The game with rounded attributes; the game itself if it has no real ones."""
    return Rounded(game) if any(isinstance(block, Real) for block in game.space.blocks) else game
