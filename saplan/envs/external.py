"""What all worlds from outside have in common: a name, goals to be tested on, and rules that nobody has told us."""

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from saplan.algebra import Exogenous, Natural, Product, Real
from saplan.errors import InputError
from saplan.games import task_set
from saplan.games.game import Game, Observation, goal_among
from saplan.games.scene import Scene
from saplan.goals import Goal, parse_goal

State = TypeVar("State", bound=eqx.Module)


class ForeignWorld(Game[State]):
    """A game that somebody else wrote. Its states carry what is seen, ρ, and whether it is over."""

    named: str
    goals: tuple[str, ...]
    """Goals of test tasks, drawn evenly."""
    places: tuple[str, ...]
    """Attributes by which a place is known again; none: by all that is seen there."""
    credit: ClassVar[str] = "attempt"
    alphas: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.named

    def observe(self, state: Any) -> Observation:
        return state.seen

    def place(self, state: Any) -> Observation:
        if not self.places:
            return state.seen
        return state.rho[jnp.array([self.space.names.index(name) for name in self.places])]

    def attributes(self, state: Any) -> Float[Array, "K"]:
        return state.rho

    def over(self, state: Any) -> Bool[Array, ""]:
        return state.over

    def lost(self, state: Any) -> Bool[Array, ""]:
        return state.over

    def tasks(self, key: PRNGKeyArray) -> tuple[Any, Goal]:
        state_key, goal_key = jax.random.split(key)
        return self.reset(state_key), goal_among(goal_key, self.space, self.goals)

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        """Nobody has said."""
        return ()

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        """Nobody has said; what was seen to be possible somewhere may be possible here."""
        return jnp.ones(())

    def scene(self, state: Any) -> Scene:
        raise InputError(f"{self.name} has no scene of its own")

    def as_described(self, world: dict[str, Any]) -> dict[str, Any]:
        """The name and these rules, with what is given of the rest."""
        rules = {**world, "places": list(self.places), "vital": list(self.vital)}
        return {"game": self.name, "world": {key: rule for key, rule in rules.items() if rule != []}}

    def frame(self, state: Any) -> np.ndarray:
        """The environment's own picture of a state, bytes by row, column and colour."""
        raise InputError(f"{self.name} has no picture")


def complain(space: Product, goals: Sequence[str], places: Sequence[str], vital: Sequence[str]) -> None:
    """Says what is wrong with goals, or with names of attributes."""
    for goal in goals:
        parse_goal(space, goal)
    for name in (*places, *vital):
        if name not in space.names:
            raise InputError(f"{name!r} is no attribute; there are {', '.join(space.names)}")
    for name in vital:
        block = space.blocks[space.names.index(name)]
        if not isinstance(block.of if isinstance(block, Exogenous) else block, Natural | Real):
            raise InputError(f"what is vital must be a count or a quantity, {name} is in {block.symbol}")


def success_by_goal(
    world: ForeignWorld[Any], success: Bool[np.ndarray, "tasks"], task_seed: int = 0
) -> dict[str, float]:
    """The share of test tasks that succeeded, goal by goal."""
    _, goals = task_set(world, len(success), task_seed)
    low, high = np.asarray(goals.low), np.asarray(goals.high)
    each = {}
    for text in world.goals:
        goal = parse_goal(world.space, text)
        asked = np.all((low == goal.low) & (high == goal.high), axis=1)
        if asked.any():
            each[text] = round(float(success[asked].mean()), 4)
    return each
