"""The common base of worlds from other packages: they have a name, test goals, and rules that saplan cannot read."""

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from saplan.algebra import Natural, Product, Real
from saplan.algebra.marked import inner
from saplan.errors import InputError
from saplan.games import task_set
from saplan.games.game import Game, Observation, goal_among
from saplan.games.scene import Scene
from saplan.goals import Goal, parse_goal


class ExternalState(eqx.Module):
    """A state of an external world with its observation and attributes."""

    seen: eqx.AbstractVar[Observation]
    rho: eqx.AbstractVar[Float[Array, "K"]]
    over: eqx.AbstractVar[Bool[Array, ""]]


State = TypeVar("State", bound=ExternalState)


class ExternalWorld(Game[State]):
    """A game from another package."""

    goals: tuple[str, ...]
    """Goals of test tasks, drawn with equal probability."""
    places: tuple[str, ...]
    """Attributes that identify a place; if there are none, the whole observation does."""
    credit: ClassVar[str] = "attempt"
    alphas: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def observe(self, state: State) -> Observation:
        return state.seen

    def place(self, state: State) -> Observation:
        if not self.places:
            return state.seen
        return state.rho[jnp.array([self.space.names.index(name) for name in self.places])]

    def attributes(self, state: State) -> Float[Array, "K"]:
        return state.rho

    def over(self, state: State) -> Bool[Array, ""]:
        return state.over

    def lost(self, state: State) -> Bool[Array, ""]:
        return state.over

    def tasks(self, key: PRNGKeyArray) -> tuple[State, Goal]:
        state_key, goal_key = jax.random.split(key)
        return self.reset(state_key), goal_among(goal_key, self.space, self.goals)

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        """Empty: the rules are unknown."""
        return ()

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        """Always 1: the rules are unknown, so a change that happened somewhere may be possible here."""
        return jnp.ones(())

    def scene(self, state: State) -> Scene:
        """The environment's own picture, if it has one; there is no map."""
        try:
            picture = self.frame(state)
        except InputError:
            picture = None
        return Scene(0, 0, frozenset(), (0, 0), (), (), picture)

    def as_described(self, world: dict[str, Any]) -> dict[str, Any]:
        """Plain data by which a run recognises this world: `world`, the name, and the rules stored here."""
        rules = {**world, "places": list(self.places), "vital": list(self.vital)}
        return {"game": self.name, "world": {key: rule for key, rule in rules.items() if rule != []}}

    def frame(self, state: State) -> np.ndarray:
        """The environment's own picture of a state: bytes by row, column and colour."""
        raise InputError(f"{self.name} has no picture")


def validate_names(space: Product, goals: Sequence[str], places: Sequence[str], vital: Sequence[str]) -> None:
    """Raises `InputError` for a goal that cannot be parsed, or a `places` or `vital` name that does not fit."""
    for goal in goals:
        parse_goal(space, goal)
    for name in (*places, *vital):
        if name not in space.names:
            raise InputError(f"{name!r} is not an attribute; known: {', '.join(space.names)}")
    for name in vital:
        block = space.blocks[space.names.index(name)]
        if not isinstance(inner(block), Natural | Real):
            raise InputError(f"a vital attribute must be a count or a quantity, but {name} is in {block.symbol}")


def validate_rho(space: Product, rho: Float[Array, "K"] | Float[np.ndarray, "K"]) -> None:
    """Raises `InputError` if the attributes of a first state lie outside the space."""
    if not bool(space.contains(jnp.asarray(rho))):
        raise InputError(f"the attributes of a first state, {rho.tolist()}, lie outside {space}")


def validate_size(space: Product, shape: tuple[int, ...]) -> None:
    """Raises `InputError` unless an attribute function returned one number per attribute."""
    if shape != (space.size,):
        raise InputError(f"attributes must be {space.size} numbers, got an array of shape {shape}")


def success_by_goal(
    world: ExternalWorld[Any], success: Bool[np.ndarray, "tasks"], task_seed: int = 0
) -> dict[str, float]:
    """Share of successful test tasks for every goal."""
    _, goals = task_set(world, len(success), task_seed)
    low, high = np.asarray(goals.low), np.asarray(goals.high)
    shares = {}
    for text in world.goals:
        goal = parse_goal(world.space, text)
        asked = np.all((low == goal.low) & (high == goal.high), axis=1)
        if asked.any():
            shares[text] = round(float(success[asked].mean()), 4)
    return shares
