"""Games with a reduced algebra, to measure what each part of the algebra is worth."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields

from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Integer, Product, Real
from saplan.algebra.base import Features, Values, features
from saplan.errors import unknown_name
from saplan.games.game import Game, State
from saplan.games.wrapper import GameWrapper

FULL = "full"


@functools.cache
def _raw_kind(kind: type[Block]) -> type[Block]:
    class Raw(kind):  # type: ignore[misc,valid-type]
        """A block that shows its elements and changes to networks as plain numbers."""

        width = delta_width = 1

        def encode(self, a: Values) -> Features:
            return features(a)

        def encode_delta(self, d: Values) -> Features:
            return features(d)

    return Raw


def raw(block: Block) -> Block:
    """The block with plain numbers as features."""
    return _raw_kind(type(block))(**{field.name: getattr(block, field.name) for field in fields(block)})  # type: ignore[arg-type]


def straight(block: Block) -> Block:
    """ℤ in place of ℤ/q and ℝ in place of S¹: the step from the last position to the first is a separate change."""
    if isinstance(block, Circle):
        return Real(block.resolution, 0.0, block.period, block.max_bins)
    return Integer() if isinstance(block, Cyclic) else block


def labelled(block: Block) -> Block:
    """Labels in place of D_n: a turn is another change at every orientation."""
    return Categorical(tuple(map(block.format, range(block.size)))) if isinstance(block, Dihedral) else block


ALGEBRAS: dict[str, Callable[[Block], Block]] = {"raw": raw, "integers": straight, "labels": labelled}
"""The reduced form of every block."""


@dataclass(frozen=True)
class Ablated(GameWrapper[State]):
    """A game with reduced blocks and the same numbers ρ."""

    algebra: str

    @functools.cached_property
    def space(self) -> Product:
        poorer = ALGEBRAS[self.algebra]
        return Product(self.game.space.names, tuple(poorer(block) for block in self.game.space.blocks))


def ablated(game: Game[State], algebra: str) -> Game[State]:
    """The game with this algebra; the game itself for the full algebra."""
    if algebra == FULL:
        return game
    if algebra not in ALGEBRAS:
        raise unknown_name("algebra", algebra, [FULL, *ALGEBRAS])
    return Ablated(game, algebra)
