"""A game seen through whole numbers, for methods that know attributes only as symbols."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from saplan.algebra import Block, Integer, Natural, Product, Real
from saplan.games import Game
from saplan.games.base import Words
from saplan.games.scene import Scene
from saplan.goals import Goal


@dataclass(frozen=True)
class Rounded(Game[Any]):
    """The same game, its real attributes rounded to integers."""

    game: Game[Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "game"), name)

    @property
    def space(self) -> Product:
        return Product(self.game.space.names, tuple(_whole(block) for block in self.game.space.blocks))

    def attributes(self, state: Any) -> Float[Array, "K"]:
        real = jnp.array([isinstance(block, Real) for block in self.game.space.blocks])
        rho = self.game.attributes(state)
        return jnp.where(real, jnp.round(rho), rho)

    def reset(self, key: PRNGKeyArray) -> Any:
        return self.game.reset(key)

    def step(self, key: PRNGKeyArray, state: Any, action: Int[Array, ""]) -> Any:
        return self.game.step(key, state, action)

    def observe(self, state: Any) -> Words:
        return self.game.observe(state)

    def over(self, state: Any) -> Bool[Array, ""]:
        return self.game.over(state)

    def tasks(self, key: PRNGKeyArray) -> tuple[Any, Goal]:
        return self.game.tasks(key)

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        return self.game.admissible()

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        """Rounding hides whether a change is possible; what is in a table was seen, so it is."""
        return jnp.ones(())

    def scene(self, state: Any) -> Scene:
        return self.game.scene(state)


def _whole(block: Block) -> Block:
    if not isinstance(block, Real):
        return block
    return Natural(bins=block.bins + 1) if block.low >= 0 else Integer()


def rounded(game: Game[Any]) -> Game[Any]:
    """The game in whole numbers; the game itself if it is already."""
    return Rounded(game) if any(isinstance(block, Real) for block in game.space.blocks) else game
