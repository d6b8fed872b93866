"""A game with a found space: raw attributes are read as elements of the blocks that `suggest` chose."""

import functools
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from saplan.algebra import Block, Circle, Product, Real
from saplan.algebra.serialize import space_from_json, space_to_json
from saplan.errors import InputError
from saplan.games.game import Game, State
from saplan.games.wrapper import GameWrapper
from saplan.goals import Goal
from saplan.perception.suggest import Suggestion


@dataclass(frozen=True)
class FoundAttribute:
    """One attribute of a found space."""

    name: str
    raw: tuple[str, ...]
    """The raw attributes that it is made of: one, or a dial and a flag."""
    block: Block
    order: tuple[float, ...] = ()
    """The raw value of every element; empty if raw values are elements."""

    def elements(self, raw: Float[Array, "... parts"], sizes: int) -> Float[Array, "..."]:
        """The elements that raw values stand for."""
        value = raw[..., 0] if len(self.raw) == 1 else raw[..., 0] + sizes * raw[..., 1]
        if isinstance(self.block, Circle):
            return jnp.mod(value, self.block.period)
        if not self.order:
            return value
        nearest = jnp.argmin(jnp.abs(value[..., None] - jnp.array(self.order, jnp.float32)), axis=-1)
        return nearest.astype(jnp.float32)

    @property
    def corners(self) -> int:
        """Number of turns of the dial of a pair."""
        return self.block.bins // 2


@dataclass(frozen=True)
class FoundGame(GameWrapper[State]):
    """The same game with the attributes of a found space; goals of tasks are carried over."""

    found: tuple[FoundAttribute, ...]

    @functools.cached_property
    def space(self) -> Product:
        return Product(tuple(one.name for one in self.found), tuple(one.block for one in self.found))

    def attributes(self, state: State) -> Float[Array, "K"]:
        return self._elements(self.game.attributes(state))

    def truth(self, state: State) -> Float[Array, "K"]:
        return self._elements(self.game.truth(state))

    def confidence(self, state: State) -> Float[Array, "K"]:
        each = self.game.confidence(state)
        return jnp.stack([jnp.min(each[self._places(one)]) for one in self.found])

    def tasks(self, key: PRNGKeyArray) -> tuple[State, Goal]:
        state, goal = self.game.tasks(key)
        return state, self.goal(goal)

    def goal(self, goal: Goal) -> Goal:
        """A goal in raw attributes as a goal in found ones. A value that a goal asks for becomes its element."""
        low, high = jnp.asarray(goal.low), jnp.asarray(goal.high)
        named: Bool[Array, "K"] = low == high
        bounds = []
        for one in self.found:
            places = self._places(one)
            exact = jnp.all(named[places])
            element = one.elements(low[places], one.corners)
            plain = len(one.raw) == 1 and not one.order and one.block.ordered
            free = (low[places[0]], high[places[0]]) if plain else (-jnp.inf, jnp.inf)
            bounds.append([jnp.where(exact, element, free[0]), jnp.where(exact, element, free[1])])
        return Goal(*(jnp.stack([pair[side] for pair in bounds]) for side in (0, 1)))

    def described(self) -> dict[str, Any]:
        return self.game.described()

    def _places(self, one: FoundAttribute) -> np.ndarray:
        return np.array([self.game.space.names.index(name) for name in one.raw])

    def _elements(self, raw: Float[Array, "K"]) -> Float[Array, "K"]:
        return jnp.stack([one.elements(raw[self._places(one)], one.corners) for one in self.found])


def with_space(game: Game[State], found: Suggestion | tuple[FoundAttribute, ...]) -> FoundGame[State]:
    """The game with a found space; `InputError` if the space was found in another game."""
    if isinstance(found, Suggestion):
        found = tuple(FoundAttribute(one.name, one.names, one.block, one.candidate.order) for one in found.verdicts)
    unknown = [name for one in found for name in one.raw if name not in game.space.names]
    if unknown:
        raise InputError(f"the space names an attribute {unknown[0]!r}, which {game.name} does not have")
    return FoundGame(game, found)


def raw_space(*names: str) -> Product:
    """Plain numbers, for a world whose algebra is still to be found."""
    return Product(names, (Real(),) * len(names))


def found_to_json(found: tuple[FoundAttribute, ...]) -> list[dict[str, Any]]:
    """A found space as JSON data."""
    space = Product(tuple(one.name for one in found), tuple(one.block for one in found))
    rows = zip(space_to_json(space), found, strict=True)
    return [{**row, "raw": list(one.raw), "order": list(one.order)} for row, one in rows]


def found_from_json(rows: object) -> tuple[FoundAttribute, ...]:
    """The found space in JSON data, of a run or of `saplan suggest --json`; `InputError` if they describe none."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError("a found space is a list of attributes")
    more = ("raw", "order", "decided", "margin", "rival", "evidence")
    space = space_from_json([{key: value for key, value in row.items() if key not in more} for row in rows])
    found = []
    for row, name, block in zip(rows, space.names, space.blocks, strict=True):
        raw, order = row.get("raw", [name]), row.get("order", [])
        if not isinstance(raw, list) or len(raw) not in (1, 2) or not all(isinstance(part, str) for part in raw):
            raise InputError(f"attribute {name!r}: raw must be one or two names")
        if not isinstance(order, list) or not all(type(value) in (int, float) for value in order):
            raise InputError(f"attribute {name!r}: order must be a list of numbers")
        found.append(FoundAttribute(name, tuple(raw), block, tuple(map(float, order))))
    return tuple(found)
