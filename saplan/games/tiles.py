"""Tiles: pieces that are turned and mirrored until they fit a frame."""

import functools
from dataclasses import dataclass, field
from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int16, PRNGKeyArray

from saplan.algebra import Cyclic, Dihedral, Product
from saplan.errors import InputError
from saplan.games.game import Game, ItemFacts, Words
from saplan.games.grid import INTERACT, MOVES, Map, MapRules, Places, draw_map, move, vocabulary, words
from saplan.games.objects import draw_nearest
from saplan.games.scene import COLOURS, Scene, Thing, ground_scene
from saplan.goals import Goal, exactly

TURN = 1.0
"""The change of a piece on the turntable."""
TURNTABLE, MIRROR, CAROUSEL = range(3)
MOST_PIECES = 4
"""All orientations of all pieces are listed to find goals at a distance: 8^4 of them."""


class TilesState(eqx.Module):
    """`places` holds the turntable, the mirror and the carousel; `pieces` the orientation of every piece."""

    ground: Map
    places: Places
    pieces: Int16[Array, "q"]
    chosen: Int16[Array, ""]

    @property
    def items(self) -> Places:
        """Places of the stations, in the order above."""
        return self.places


@final
@dataclass(frozen=True)
class Tiles(Game[TilesState]):
    """There are q square pieces, and stations that turn and mirror the piece that the carousel has chosen.

    - `interact` on the turntable turns the chosen piece by a quarter to the right. `interact` on the mirror swaps its
      left and its right. `interact` on the carousel chooses the next piece, and after the last one the first.
    - 𝓡 = D_4^q (orientations of the pieces) × ℤ/q (chosen).
    - Admissible δρ: for every piece, a turn and a mirroring; and chosen + 1. These are 2 q + 1 changes. They do not
      commute: a mirrored piece that is turned looks otherwise than a turned piece that is mirrored.
    - The start is uniform among all orientations and choices.
    - A task is to fit all pieces into a frame: each has one orientation that fits, drawn uniformly, not all of them
      those at the start. The choice is free.
    """

    kinds: int = 3
    """q: number of pieces."""
    maps: MapRules = field(default_factory=MapRules)

    name: ClassVar[str] = "tiles"
    actions: ClassVar[tuple[str, ...]] = (*MOVES, "interact")
    credit: ClassVar[str] = "attempt"
    alphas: ClassVar[tuple[float, float]] = (1.0, 0.0)
    farthest_goal: ClassVar[int] = 10
    piece: ClassVar[Dihedral] = Dihedral(4)

    def __post_init__(self) -> None:
        if not 1 <= self.kinds <= MOST_PIECES:
            raise InputError(f"the number of pieces must lie in 1..{MOST_PIECES}, got {self.kinds}")
        self.maps.check_room(3)

    @property
    def slots(self) -> int:
        return 4 + self.maps.max_walls + 3

    @property
    def vocabulary(self) -> int:
        return vocabulary(2 + self.kinds)

    @property
    def space(self) -> Product:
        return Product((*COLOURS[: self.kinds], "chosen"), (self.piece,) * self.kinds + (Cyclic(self.kinds),))

    def reset(self, key: PRNGKeyArray) -> TilesState:
        map_key, piece_key, chosen_key = jax.random.split(key, 3)
        ground, places = draw_map(self.maps, map_key, 3)
        pieces = jax.random.randint(piece_key, (self.kinds,), 0, self.piece.size).astype(jnp.int16)
        chosen = jax.random.randint(chosen_key, (), 0, self.kinds).astype(jnp.int16)
        return TilesState(ground, places, pieces, chosen)

    def step(self, key: PRNGKeyArray, state: TilesState, action: Int[Array, ""]) -> TilesState:
        ground = move(state.ground, action)
        used = (action == INTERACT) & (state.places == ground.agent)
        change = jnp.where(used[TURNTABLE], int(TURN), 0) + jnp.where(used[MIRROR], self.piece.n, 0)
        changed = self.piece.multiply(state.pieces, jnp.broadcast_to(change, state.pieces.shape))
        chosen = jnp.where(used[CAROUSEL], (state.chosen + 1) % self.kinds, state.chosen).astype(jnp.int16)
        pieces = jnp.where(jnp.arange(self.kinds) == state.chosen, changed, state.pieces)
        return TilesState(ground, state.places, pieces, chosen)

    def observe(self, state: TilesState) -> Words:
        kinds = jnp.concatenate([jnp.array([1, 2]), 3 + state.chosen[None].astype(jnp.int32)])
        return words(state.ground, kinds, state.places)

    def attributes(self, state: TilesState) -> Float[Array, "K"]:
        return jnp.concatenate([state.pieces, state.chosen[None]]).astype(jnp.float32)

    def shelf(self, state: TilesState) -> Float[Array, "rows cells"]:
        """A row per piece with one of eight cells filled, and a row for the choice."""
        rows = jnp.concatenate([state.pieces, state.chosen[None]])
        return jax.nn.one_hot(rows, self.piece.size)

    def over(self, state: TilesState) -> Bool[Array, ""]:
        return jnp.zeros((), bool)  # any piece can be turned

    def tasks(self, key: PRNGKeyArray) -> tuple[TilesState, Goal]:
        state_key, goal_key = jax.random.split(key)
        state = self.reset(state_key)
        # One uniform number encodes one of the changes other than none, piece by piece.
        code = jax.random.randint(goal_key, (), 1, self.piece.size**self.kinds)
        changes = (code // self.piece.size ** jnp.arange(self.kinds) % self.piece.size).astype(jnp.float32)
        return state, exactly(self._fit(state.pieces.astype(jnp.float32), changes), 0.0, self._asked)

    @property
    def _asked(self) -> Bool[Array, "K"]:
        return jnp.arange(self.space.size) < self.kinds

    def _fit(self, pieces: Float[Array, "q"], changes: Float[Array, "... q"]) -> Float[Array, "... K"]:
        """Values of the goal of changing all pieces so."""
        fitted = self.piece.compose(jnp.broadcast_to(pieces, changes.shape), changes)
        return jnp.concatenate([fitted, jnp.zeros((*changes.shape[:-1], 1))], axis=-1)

    def goal_at(
        self, key: PRNGKeyArray, rho: Float[Array, "K"], distance: Int[Array, ""]
    ) -> tuple[Float[Array, "K"], Bool[Array, "K"]]:
        """Orientations to reach; the distance is the number of turns, mirrorings and choices that they need."""
        q = self.kinds
        axes = jnp.meshgrid(*[jnp.arange(self.piece.size)] * q, indexing="ij")
        changes = jnp.stack(axes, axis=-1).reshape(-1, q)
        choices = jnp.where(changes > 0, (jnp.arange(q) - rho[q].astype(jnp.int32)) % q, 0)
        length = jnp.sum(jnp.asarray(word_lengths(self.piece))[changes], axis=1) + jnp.max(choices, axis=1)
        chosen = draw_nearest(key, length, length > 0, distance)
        return self._fit(rho[:q], changes[chosen].astype(jnp.float32)), self._asked

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        rows = []
        for verb, change in (("turn", TURN), ("mirror", float(self.piece.n))):
            for k in range(self.kinds):
                rows.append((f"{verb} {COLOURS[k]}", tuple(change * (j == k) for j in range(self.space.size))))
        return (*rows, ("choose the next", (0.0,) * self.kinds + (1.0,))) if self.kinds > 1 else tuple(rows)

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        known = jnp.array([d for _, d in self.admissible()])
        shows = jnp.tile(jnp.arange(self.kinds) == rho[self.kinds], 2)
        possible = jnp.concatenate([shows, jnp.ones(len(known) - len(shows), bool)])
        return jnp.any(jnp.all(known == delta, axis=1) & possible).astype(jnp.float32)

    def item_facts(self) -> ItemFacts:
        q, served = self.kinds, np.zeros((len(self.admissible()), 3), bool)
        served[:q, TURNTABLE] = served[q : 2 * q, MIRROR] = served[2 * q :, CAROUSEL] = True
        return ItemFacts(served, np.full(len(served), INTERACT))

    def scene(self, state: TilesState) -> Scene:
        colour = COLOURS[int(state.chosen)]
        stations = [Thing(0, 0, "turn_right", "grey"), Thing(0, 0, "mirror", "grey"), Thing(0, 0, "switch", colour)]
        things = list(zip(state.places.tolist(), stations, strict=True))
        pieces = tuple((COLOURS[k], COLOURS[k], self.piece.format(x)) for k, x in enumerate(state.pieces.tolist()))
        return ground_scene(state.ground, things, (*pieces, ("chosen", colour, colour)))


@functools.cache
def word_lengths(piece: Dihedral) -> tuple[int, ...]:
    """The fewest turns and mirrorings that make every change of a piece."""
    moves = [dict(piece.row().moves(change)) for change in (TURN, piece.n)]
    lengths, frontier = {0: 0}, {0}
    while frontier:
        frontier = {move[a] for a in frontier for move in moves} - lengths.keys()
        lengths |= dict.fromkeys(frontier, max(lengths.values()) + 1)
    return tuple(lengths[a] for a in range(piece.size))
