"""Maps beyond those of training, shown to an agent as maps that it knows.

A bag of words is a sum over its slots, absent ones included. More objects, more walls or more slots than in training
would move that sum where no training has been. So an agent in another world sees as many items of a kind as its own
world shows at most, the nearest ones, in as many slots.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int16

from saplan.games.game import Game, State, Words
from saplan.games.grid import EDGE_WORDS, OFFSETS, PADDING, RIM, SIDE, WINDOW, GridState
from saplan.games.wrapper import GameWrapper

MAPS = 256
"""Maps on which the words of a game are counted."""
EDGES = 4


@dataclass(frozen=True)
class Sight:
    """How much of a map an agent has learnt to see."""

    slots: int
    """Words of an observation, absent ones included."""
    most: tuple[int, ...]
    """Words of every kind, walls first."""
    side: int
    """Rows or columns of the largest map."""
    rim: int = RIM
    """Largest offset of an item and distance of an edge; what is farther away appears there."""


@dataclass(frozen=True)
class LimitedSight(GameWrapper[State]):
    """A game of which an agent sees no more than it has learnt to see."""

    sight: Sight
    stretch: float = 1.0
    """How much larger its maps are than those of training."""

    @property
    def slots(self) -> int:
        return self.sight.slots

    def observe(self, state: State) -> Words:
        shown: Words = limit(self.game.observe(state), self.sight)
        return shown


def sight_of(game: Game[Any]) -> Sight | None:
    """What an agent of a game has learnt to see; None if the game has no map of words."""
    kinds, other = divmod(game.vocabulary - 1 - EDGE_WORDS, OFFSETS)
    if other or kinds < 1 or not isinstance(game.reset(jax.random.key(0)), GridState):
        return None
    states: Any = jax.vmap(game.reset)(jax.random.split(jax.random.key(0), MAPS))
    kind = kinds_of(jax.vmap(game.observe)(states)[:, EDGES:].astype(jnp.int32))
    counts = np.asarray(jnp.sum(kind[:, :, None] == jnp.arange(kinds), axis=1))
    side = int(max(states.ground.height.max(), states.ground.width.max()))
    return Sight(game.slots, tuple(int(most) for most in counts.max(axis=0)), side)


def limited(game: Game[State], trained: Game[Any]) -> Game[State]:
    """A game as an agent of another one sees it; as it is if either has no map of words.

    On larger maps the rim is half the side of a trained map: two opposite edges then never seem farther apart than in
    training, and offsets at the rim are common there.
    """
    sight, here = sight_of(trained), sight_of(game)
    if sight is None or here is None or game == trained:
        return game
    if here.side <= sight.side:
        return LimitedSight(game, sight)
    return LimitedSight(game, replace(sight, rim=sight.side // 2), here.side / sight.side)


def kinds_of(words: Int[Array, "..."]) -> Int[Array, "..."]:
    """The kind of every word of an item, walls 0; -1 for an absent one."""
    return jnp.where(words == PADDING, -1, (words - 1 - EDGE_WORDS) // OFFSETS)


@partial(jax.jit, static_argnums=1)
def limit(words: Int16[Array, "all"], sight: Sight) -> Int16[Array, "shown"]:
    """The nearest words of every kind, as many as the sight has of it, in its number of slots.

    An item beyond the rim appears where the nearest of its kind does: a policy that sees several items far off in
    opposite directions wanders between them.
    """
    words = words.astype(jnp.int32)
    edges, items = words[:EDGES], words[EDGES:]
    kind, offset = kinds_of(items), (items - 1 - EDGE_WORDS) % OFFSETS
    down, right = offset // WINDOW - RIM, offset % WINDOW - RIM
    # Distances that cannot tie, so that exactly as many words stay as may.
    distance = (jnp.abs(down) + jnp.abs(right)) * len(items) + jnp.arange(len(items))
    nearer = jnp.sum((kind[:, None] == kind) & (distance < distance[:, None]), axis=1)
    seen = (kind >= 0) & (nearer < jnp.array(sight.most)[kind])
    seen &= (kind > 0) | (jnp.maximum(jnp.abs(down), jnp.abs(right)) <= sight.rim)
    rim = sight.rim
    at = (jnp.clip(down, -rim, rim) + RIM) * WINDOW + jnp.clip(right, -rim, rim) + RIM
    far = (kind > 0) & (jnp.maximum(jnp.abs(down), jnp.abs(right)) > rim)
    nearest = (kind[:, None] == kind) & (nearer == 0)
    at = jnp.where(far, jnp.sum(jnp.where(nearest, at, 0), axis=1), at)
    kept = jnp.where(seen, 1 + EDGE_WORDS + kind * OFFSETS + at, PADDING)
    first = SIDE * jnp.arange(EDGES)
    edges = 1 + first + jnp.minimum(edges - 1 - first, rim)
    room = max(0, sight.slots - EDGES - len(items))
    kept = jnp.pad(-jnp.sort(-kept), (0, room))[: sight.slots - EDGES]  # absent ones last
    return jnp.concatenate([edges, kept]).astype(jnp.int16)
