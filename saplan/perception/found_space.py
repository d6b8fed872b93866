"""A game with a found space: raw attributes are read as elements of the blocks that `suggest` chose."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from saplan.algebra import Block, Circle, Dihedral, Product, Real
from saplan.algebra.marked import inner
from saplan.algebra.serialize import TURNS, space_from_json, space_to_json
from saplan.errors import InputError
from saplan.games.game import Game, State
from saplan.games.wrapper import GameWrapper
from saplan.goals import Goal, meets
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
    turns: tuple[str, ...] = ()
    """Of the heading of a pose: the two attributes of its place."""

    @property
    def plain(self) -> Block:
        """The block without the mark of a change by itself."""
        return inner(self.block)

    @property
    def corners(self) -> int:
        """Number of turns of the dial of a pair."""
        return self.plain.bins // 2

    def elements(self, raw: Float[Array, "... parts"]) -> Float[Array, "..."]:
        """The elements that raw values stand for."""
        value = raw[..., 0] if len(self.raw) == 1 else raw[..., 0] + self.corners * raw[..., 1]
        if isinstance(self.plain, Circle):
            return jnp.mod(value, self.plain.period)
        if not self.order:
            return value
        nearest = jnp.argmin(jnp.abs(value[..., None] - jnp.array(self.order, jnp.float32)), axis=-1)
        return nearest.astype(jnp.float32)

    def bounds(self, low: Float[Array, "parts"], high: Float[Array, "parts"], period: float) -> tuple[Array, Array]:
        """Bounds of elements whose raw values lie within bounds; these never allow more than those.

        `period` is that of the raw attribute, where low > high means round through zero. Labels and dials have no
        intervals: the first value within the bounds is chosen, and none if there is none.
        """
        free = jnp.all(jnp.isinf(low) & jnp.isinf(high)) | self.block.exogenous
        if isinstance(self.plain, Circle):
            last = np.nextafter(np.float32(self.plain.period), np.float32(0))
            first, end = (
                jnp.where(jnp.isfinite(x[0]), self.elements(x), other) for x, other in ((low, 0), (high, last))
            )
        elif self.plain.ordered and not self.order:
            upper = period - low[0] >= high[0]  # a line has one side of zero, the wider one
            first = jnp.where((low[0] > high[0]) & ~upper, -jnp.inf, low[0])
            end = jnp.where((low[0] > high[0]) & upper, jnp.inf, high[0])
        else:
            codes = jnp.array(self.order or range(self.plain.bins), jnp.float32)
            shown = (
                codes[:, None] if len(self.raw) == 1 else jnp.stack([codes % self.corners, codes // self.corners], -1)
            )
            inside = jnp.all(meets(low, high, shown), axis=-1)
            first = end = jnp.where(inside.any(), jnp.argmax(inside), len(codes)).astype(jnp.float32)
            free |= jnp.all(inside)
        return jnp.where(free, -jnp.inf, first), jnp.where(free, jnp.inf, end)


@dataclass(frozen=True)
class FoundGame(GameWrapper[State]):
    """The same game with the attributes of a found space; goals of tasks are carried over."""

    found: tuple[FoundAttribute, ...]

    @functools.cached_property
    def space(self) -> Product:
        return found_space(self.found)

    @functools.cached_property
    def same_changes(self) -> bool:
        """Whether changes of ρ are those of the game: the same attributes in the same order, with the same algebra."""
        declared = self.game.space
        if len(self.found) != declared.size or self.space.frames != declared.frames:
            return False
        pairs = zip(self.found, declared.names, declared.blocks, strict=True)
        return all(
            one.raw == (name,) and not one.order and one.block.symbol == block.symbol for one, name, block in pairs
        )

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
        """A goal in raw attributes as a goal in found ones, which is at least as strict."""
        low, high, blocks = jnp.asarray(goal.low), jnp.asarray(goal.high), self.game.space.blocks
        places = [self._places(one) for one in self.found]
        bounds = [
            one.bounds(low[at], high[at], blocks[at[0]].period) for one, at in zip(self.found, places, strict=True)
        ]
        return Goal(*(jnp.stack([pair[side] for pair in bounds]) for side in (0, 1)))

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        return self.game.admissible() if self.same_changes else ()

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        return self.game.feasible(rho, delta) if self.same_changes else jnp.ones(())

    def rules_out(self, goal: Goal) -> str | None:
        return self.game.rules_out(goal) if self.same_changes else None

    def described(self) -> dict[str, Any]:
        return self.game.described()

    def _places(self, one: FoundAttribute) -> np.ndarray:
        return np.array([self.game.space.names.index(name) for name in one.raw])

    def _elements(self, raw: Float[Array, "K"]) -> Float[Array, "K"]:
        return jnp.stack([one.elements(raw[self._places(one)]) for one in self.found])


def found_space(found: tuple[FoundAttribute, ...]) -> Product:
    """The product of found attributes, with their poses."""
    space = Product(tuple(one.name for one in found), tuple(one.block for one in found))
    for one in found:
        if one.turns:
            x, y = one.turns
            space = space.with_pose(x, y, one.name)
    return space


def with_space(game: Game[State], found: Suggestion | tuple[FoundAttribute, ...]) -> FoundGame[State]:
    """The game with a found space; `InputError` if the space was found in another game."""
    if isinstance(found, Suggestion):
        found = tuple(
            FoundAttribute(one.name, one.names, one.block, one.candidate.order, one.turns) for one in found.verdicts
        )
    unknown = [name for one in found for name in one.raw if name not in game.space.names]
    if unknown:
        raise InputError(f"the space names an attribute {unknown[0]!r}, which {game.name} does not have")
    return FoundGame(game, found)


def raw_space(*names: str) -> Product:
    """Plain numbers, for a world whose algebra is still to be found."""
    return Product(names, (Real(),) * len(names))


def found_to_json(found: tuple[FoundAttribute, ...]) -> list[dict[str, Any]]:
    """A found space as JSON data."""
    rows = zip(space_to_json(found_space(found)), found, strict=True)
    return [{**row, "raw": list(one.raw), "order": list(one.order)} for row, one in rows]


def found_from_json(rows: object) -> tuple[FoundAttribute, ...]:
    """The found space in JSON data, of a run or of `saplan suggest --json`; `InputError` if they describe none."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError("a found space is a list of attributes")
    more = ("raw", "order", "decided", "margin", "rival", "evidence")
    space = space_from_json([{key: value for key, value in row.items() if key not in more} for row in rows])
    found = [_attribute(row, block) for row, block in zip(rows, space.blocks, strict=True)]
    return tuple(found)


def _attribute(row: dict[str, Any], block: Block) -> FoundAttribute:
    """One checked row; its name, its block and its place in a frame are known to be right."""
    name, raw, order = row["name"], row.get("raw", [row["name"]]), row.get("order", [])
    if not isinstance(raw, list) or len(raw) not in (1, 2) or not all(isinstance(part, str) for part in raw):
        raise InputError(f"attribute {name!r}: raw must be one or two names")
    if not isinstance(order, list) or not all(type(value) in (int, float) for value in order):
        raise InputError(f"attribute {name!r}: order must be a list of numbers")
    one = FoundAttribute(name, tuple(raw), block, tuple(map(float, order)), tuple(row.get(TURNS, ())))
    if len(raw) == 2 and not isinstance(one.plain, Dihedral):
        raise InputError(f"attribute {name!r}: two raw names make an element of D_n, not of {block.symbol}")
    if order and (one.plain.ordered or isinstance(one.plain, Circle) or len(set(one.order)) != one.plain.bins):
        raise InputError(f"attribute {name!r}: order must list every element of {block.symbol} once")
    if not all(map(math.isfinite, one.order)):
        raise InputError(f"attribute {name!r}: order must be a list of finite numbers")
    return one
