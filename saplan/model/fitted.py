"""A game whose attributes are read off what is seen, by f̂ in place of f."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from saplan.algebra import Real
from saplan.games.base import Words
from saplan.games.scene import Scene
from saplan.games.sight import Sight
from saplan.games.view import View
from saplan.goals import Goal
from saplan.model.regressor import SURE, Regressor


class Perceived(eqx.Module):
    """A state, and ρ as it is perceived there."""

    state: Any
    rho: Float[Array, "K"]
    sure: Float[Array, "K"]


@dataclass(frozen=True, eq=False)
class Fitted(View):
    """The same game, seen through f̂.

    A reading that is unsure, and for a real one that is within a quarter of its resolution, leaves the coordinate as it
    was perceived before: else every step would look like a change.
    """

    regressor: Regressor
    sight: str
    digest: str
    """Tells apart what was fitted: the SHA-256 of its file."""
    source: Any = None
    """What the file was made of, to write it again."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fitted) and (self.game, self.sight, self.digest) == (
            other.game, other.sight, other.digest,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.game, self.sight, self.digest))

    def read(self, state: Any) -> Perceived:
        """A first look at a state."""
        rho, sure = self.regressor(Sight(self.game, self.sight)(state)[None])
        return Perceived(state, rho[0], sure[0])

    def _go_on(self, before: Perceived, state: Any) -> Perceived:
        now = self.read(state)
        space = self.game.space
        slack = jnp.array([block.resolution / 4 if isinstance(block, Real) else 0.0 for block in space.blocks])
        keeps = (jnp.abs(now.rho - before.rho) <= slack) | (now.sure < SURE)
        return Perceived(state, jnp.where(keeps, before.rho, now.rho), now.sure)

    def reset(self, key: PRNGKeyArray) -> Perceived:
        return self.read(self.game.reset(key))

    def step(self, key: PRNGKeyArray, state: Perceived, action: Int[Array, ""]) -> Perceived:
        return self._go_on(state, self.game.step(key, state.state, action))

    def tasks(self, key: PRNGKeyArray) -> tuple[Perceived, Goal]:
        state, goal = self.game.tasks(key)
        return self.read(state), goal

    def attributes(self, state: Perceived) -> Float[Array, "K"]:
        return state.rho

    def confidence(self, state: Perceived) -> Float[Array, "K"]:
        return state.sure

    def truth(self, state: Perceived) -> Float[Array, "K"]:
        return self.game.truth(state.state)

    def observe(self, state: Perceived) -> Words:
        return self.game.observe(state.state)

    def shelf(self, state: Perceived) -> Float[Array, "rows cells"]:
        return self.game.shelf(state.state)

    def over(self, state: Perceived) -> Bool[Array, ""]:
        return self.game.over(state.state)

    def scene(self, state: Perceived) -> Scene:
        return self.game.scene(state.state)
