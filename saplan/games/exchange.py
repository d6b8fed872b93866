"""Exchange: held objects can be traded at a loss, anywhere (the paper's exchangeable environment)."""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int16, PRNGKeyArray

from saplan.algebra import Natural, Product
from saplan.errors import InputError
from saplan.games.game import Game, ItemFacts, Words
from saplan.games.grid import INTERACT, MOVES, NOWHERE, Map, MapRules, Places, draw_map, move, vocabulary, words
from saplan.games.objects import (
    check_counts,
    count_by_kind,
    draw_nearest,
    drawn_counts,
    drawn_objects,
    hold,
    pick_deltas,
    pick_some,
    remove,
    scatter_objects,
    served_by_slots,
)
from saplan.games.scene import COLOURS, Scene, ground_scene
from saplan.goals import Goal, exactly

Rates = tuple[tuple[int, ...], ...]
GIVES: Rates = ((0, 2, 3), (3, 0, 2), (2, 3, 0))
"""e_ij: how many of kind i a trade i→j takes."""
TAKES: Rates = ((0, 1, 2), (2, 0, 1), (1, 2, 0))
"""f_ij: how many of kind j it gives."""
LARGEST_COUNT = 1000
"""Bound of the rules about held objects."""


class ExchangeState(eqx.Module):
    """`objects` holds the places of all objects, kind by kind; a picked or absent one is NOWHERE."""

    ground: Map
    objects: Places
    held: Int16[Array, "q"]

    @property
    def items(self) -> Places:
        """Places of the objects."""
        return self.objects


@final
@dataclass(frozen=True)
class Exchange(Game[ExchangeState]):
    """There are objects of q kinds. Held objects can be traded, wherever the agent stands.

    - `interact` on an object picks it up. `trade i→j` takes e_ij held objects of kind i and gives f_ij of kind j, if
      that many of kind i are held. Every trade loses objects: e_ij > f_ij for all pairs.
    - 𝓡 = ℕ^q (on the map) × ℕ^q (held).
    - Admissible δρ: for every kind j, one less on the map and one more held; for every pair i ≠ j, held_i - e_ij and
      held_j + f_ij. These are q + q(q-1) changes.
    - The game is over when no change is possible any more.
    - Two rules are off by default. With a `purse`, a change after which more of a kind would be held is refused. With
      `rates_change_at`, trades take one more of a kind of which at least so many are held.
    - A task is to hold exactly (n_1..n_q). Its distance, the length of the shortest attribute path, is uniform over
      the distances that the map allows, up to `farthest`. The goal is uniform among those at that distance.
    """

    kinds: int = 3
    """q: kinds of objects."""
    fewest: int = 1
    """Smallest number of objects of a kind."""
    most: int = 8
    """Largest number of objects of a kind."""
    gives: Rates = GIVES
    """e_ij: how many of kind i a trade i→j takes."""
    takes: Rates = TAKES
    """f_ij: how many of kind j it gives."""
    farthest: int = 30
    """Largest distance of a task."""
    purse: int = 0
    """Most objects of a kind that can be held; 0 for any number."""
    rates_change_at: int = 0
    """Number of held objects of a kind from which on its trades take one more; 0 for never."""
    maps: MapRules = field(default_factory=MapRules)

    name: ClassVar[str] = "exchange"
    credit: ClassVar[str] = "game"
    alphas: ClassVar[tuple[float, float]] = (0.0, 1.0)
    farthest_goal: ClassVar[int] = 30

    def __post_init__(self) -> None:
        check_counts(self.kinds, self.fewest, self.most, 0, self.maps)
        for rates in (self.gives, self.takes):
            if len(rates) != self.kinds or any(len(row) != self.kinds for row in rates):
                raise InputError(f"gives and takes must be tables of {self.kinds} × {self.kinds} numbers")
        if not 1 <= self.farthest <= 1000:
            raise InputError(f"farthest must lie in 1..1000, got {self.farthest}")
        if any(not self.gives[i][j] > self.takes[i][j] >= 1 for i, j in self.pairs):
            raise InputError("every trade must take more than it gives, and give at least one")
        if not 0 <= self.purse <= LARGEST_COUNT or not 0 <= self.rates_change_at <= LARGEST_COUNT:
            numbers = f"{self.purse} and {self.rates_change_at}"
            raise InputError(f"purse and rates_change_at must lie in 0..{LARGEST_COUNT}, got {numbers}")

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The trades i→j in the order of their actions."""
        return tuple((i, j) for i in range(self.kinds) for j in range(self.kinds) if i != j)

    @property
    def actions(self) -> tuple[str, ...]:
        return (*MOVES, "interact", *(f"trade {COLOURS[i]}→{COLOURS[j]}" for i, j in self.pairs))

    @property
    def slots(self) -> int:
        return 4 + self.maps.max_walls + self.kinds * self.most

    @property
    def vocabulary(self) -> int:
        return vocabulary(self.kinds)

    @property
    def space(self) -> Product:
        names = COLOURS[: self.kinds]
        return Product((*(f"map_{name}" for name in names), *names), (Natural(),) * (2 * self.kinds))

    @property
    def object_kinds(self) -> Int[Array, "objects"]:
        """The kind of every object slot, from 0."""
        return jnp.repeat(jnp.arange(self.kinds), self.most)

    @property
    def trade_changes(self) -> tuple[tuple[int, ...], ...]:
        """The change of the held objects by every trade."""
        return self._changes(0)

    @property
    def late_changes(self) -> tuple[tuple[int, ...], ...]:
        """The same for trades of a kind whose rates have changed, because enough of it are held."""
        return self._changes(1) if self.rates_change_at else self._changes(0)

    def _changes(self, more: int) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(-(self.gives[i][j] + more) * (k == i) + self.takes[i][j] * (k == j) for k in range(self.kinds))
            for i, j in self.pairs
        )

    def rates_changed(self, held: Int[Array, "... q"] | Float[Array, "... q"]) -> Bool[Array, "... trades"]:
        """Whether the rates of every trade have changed."""
        given = held[..., jnp.array([i for i, _ in self.pairs])]
        return (given >= self.rates_change_at) & (self.rates_change_at > 0)

    def allowed(self, held: Int[Array, "... q"] | Float[Array, "... q"]) -> Bool[Array, "..."]:
        """Whether these numbers of objects can be held."""
        fits = jnp.all(held >= 0, axis=-1)
        return fits & jnp.all(held <= self.purse, axis=-1) if self.purse else fits

    def reset(self, key: PRNGKeyArray) -> ExchangeState:
        map_key, count_key = jax.random.split(key)
        ground, places = draw_map(self.maps, map_key, self.kinds * self.most)
        objects = scatter_objects(count_key, places, self.kinds, self.fewest, self.most)
        return ExchangeState(ground, objects, jnp.zeros(self.kinds, jnp.int16))

    def step(self, key: PRNGKeyArray, state: ExchangeState, action: Int[Array, ""]) -> ExchangeState:
        ground = move(state.ground, action)
        picked = (action == INTERACT) & (state.objects == ground.agent)
        if self.purse:
            picked &= state.held[self.object_kinds] < self.purse
        held = state.held + count_by_kind(picked, self.kinds)
        changes = self._present_changes(held)
        # A one-hot sum instead of an indexed read: it vectorises, and it is zero for the other actions.
        chosen = jnp.arange(len(self.pairs)) == action - (INTERACT + 1)
        traded = held + jnp.sum(changes * chosen[:, None], axis=0, dtype=jnp.int16)
        return ExchangeState(
            ground=ground,
            objects=remove(state.objects, picked),
            held=jnp.where(self.allowed(traded), traded, held),
        )

    def _present_changes(self, held: Int16[Array, "q"]) -> Int16[Array, "trades q"]:
        """The change of the held objects by every trade, given how many are held."""
        changes = jnp.array(self.trade_changes, jnp.int16)
        if not self.rates_change_at:
            return changes
        return jnp.where(self.rates_changed(held)[:, None], jnp.array(self.late_changes, jnp.int16), changes)

    def observe(self, state: ExchangeState) -> Words:
        return words(state.ground, 1 + self.object_kinds, state.objects)

    def attributes(self, state: ExchangeState) -> Float[Array, "K"]:
        on_map = count_by_kind(state.objects != NOWHERE, self.kinds)
        return jnp.concatenate([on_map, state.held]).astype(jnp.float32)

    def anywhere(self, key: PRNGKeyArray) -> ExchangeState:
        state_key, share_key, pick_key, most_key, held_key = jax.random.split(key, 5)
        state = self.reset(state_key)
        picked = pick_some(share_key, pick_key, state.objects)
        most = jax.random.randint(most_key, (self.kinds,), 1, self.goal_side + 1)
        held = jax.random.randint(held_key, (self.kinds,), 0, most).astype(jnp.int16)
        return ExchangeState(state.ground, remove(state.objects, picked), held)

    def shelf(self, state: ExchangeState) -> Float[Array, "rows cells"]:
        return (jnp.arange(self.kinds * self.most) < state.held[:, None]).astype(jnp.float32)

    def over(self, state: ExchangeState) -> Bool[Array, ""]:
        after = state.held + self._present_changes(state.held)
        return jnp.all(state.objects == NOWHERE) & ~jnp.any(self.allowed(after))

    def tasks(self, key: PRNGKeyArray) -> tuple[ExchangeState, Goal]:
        state_key, distance_key, goal_key = jax.random.split(key, 3)
        state = self.reset(state_key)
        distance = self.goal_distances(self.attributes(state)[: self.kinds].astype(jnp.int32))
        flat = distance.reshape(-1)
        lengths = jnp.arange(1, self.farthest + 1)
        possible = jnp.any(flat[:, None] == lengths, axis=0)
        length = jax.random.categorical(distance_key, jnp.where(possible, 0.0, -jnp.inf)) + 1
        index = jax.random.categorical(goal_key, jnp.where(flat == length, 0.0, -jnp.inf))
        value, asked = hold(jnp.stack(jnp.unravel_index(index, distance.shape)), self.space.size)
        return state, exactly(value, 0.0, asked)

    def goal_at(
        self, key: PRNGKeyArray, rho: Float[Array, "K"], distance: Int[Array, ""]
    ) -> tuple[Float[Array, "K"], Bool[Array, "K"]]:
        """Counts to hold; the distance is the length of the shortest attribute path."""
        lengths = self.goal_distances(rho[: self.kinds].astype(jnp.int32))
        index = draw_nearest(key, lengths.reshape(-1), lengths.reshape(-1) > 0, distance)
        return hold(jnp.stack(jnp.unravel_index(index, lengths.shape)), self.space.size)

    def task_groups(self, states: ExchangeState, goals: Goal) -> dict[str, Bool[np.ndarray, "tasks"]]:
        offers = np.asarray(jax.vmap(self.attributes)(states))[:, : self.kinds]
        trades = np.any(np.asarray(goals.low)[:, self.kinds :] > offers, axis=1)
        return {"needs a trade": trades, "needs no trade": ~trades}

    @property
    def goal_side(self) -> int:
        """One more than the largest count that a goal asks for."""
        return min(2 * self.most, self.purse or 2 * self.most) + 1

    @partial(jax.jit, static_argnums=0)
    def goal_distances(self, offers: Int[Array, "q"]) -> Int[Array, "..."]:
        """Length of the shortest attribute path from nothing held to every vector of held counts; -1 if there is none.

        Picking never prevents a later trade, so some shortest path picks first: p costs |p|, and from there costs are
        relaxed trade by trade until none falls. Paths through `goal_side` or more objects of a kind are left out. With
        a purse, or rates that change, some goals have a shorter path that trades before it picks.
        """
        side, q = self.goal_side, self.kinds
        grid = jnp.indices((side,) * q)
        picks = jnp.all(grid <= offers.reshape(-1, *(1,) * q), axis=0)
        cost = jnp.where(picks, jnp.sum(grid, axis=0), UNREACHED)

        def trade_once(cost: Array) -> Array:
            best, late = cost, jnp.moveaxis(self.rates_changed(jnp.moveaxis(grid, 0, -1)), -1, 0)
            for trade, (early_change, late_change) in enumerate(
                zip(self.trade_changes, self.late_changes, strict=True)
            ):
                best = jnp.minimum(best, _shift(jnp.where(late[trade], UNREACHED, cost), early_change) + 1)
                if self.rates_change_at:
                    best = jnp.minimum(best, _shift(jnp.where(late[trade], cost, UNREACHED), late_change) + 1)
            return best

        _, cost = jax.lax.while_loop(
            lambda pair: jnp.any(pair[0] != pair[1]), lambda pair: (pair[1], trade_once(pair[1])), (cost + 1, cost)
        )
        return jnp.where((cost < UNREACHED) & (cost > 0), cost, -1)

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        def named(suffix: str, changes: tuple[tuple[int, ...], ...]) -> tuple[tuple[str, tuple[float, ...]], ...]:
            rows = zip(self.pairs, changes, strict=True)
            return tuple((f"trade {COLOURS[i]}→{COLOURS[j]}{suffix}", (0.0,) * self.kinds + tuple(map(float, change)))
                         for (i, j), change in rows)  # fmt: skip

        late = named(" at the other rate", self.late_changes) if self.rates_change_at else ()
        return (*pick_deltas(self.kinds, self.space.size), *named("", self.trade_changes), *late)

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        known = jnp.array([d for _, d in self.admissible()])
        allowed = jnp.all(rho + known >= 0, axis=1) & self.allowed((rho + known)[:, self.kinds :])
        if self.rates_change_at:
            late = self.rates_changed(rho[self.kinds :])
            allowed &= jnp.concatenate([jnp.ones(self.kinds, bool), ~late, late])
        return jnp.any(jnp.all(known == delta, axis=1) & allowed).astype(jnp.float32)

    def item_facts(self) -> ItemFacts:
        picks, trades = np.full(self.kinds, INTERACT), INTERACT + 1 + np.arange(len(self.pairs))
        trades = np.concatenate([trades, trades]) if self.rates_change_at else trades
        served = served_by_slots(len(self.admissible()), self.kinds, self.most, others=0)
        return ItemFacts(served, np.concatenate([picks, trades]))

    def scene(self, state: ExchangeState) -> Scene:
        return ground_scene(state.ground, drawn_objects(state.objects, self.most), drawn_counts(state.held))


UNREACHED = 1 << 20
"""A length beyond that of every path."""


def _shift(cost: Array, change: tuple[int, ...]) -> Array:
    """cost[n - change] at every n, UNREACHED where n - change lies outside the table."""
    padded = jnp.pad(cost, [(max(c, 0), max(-c, 0)) for c in change], constant_values=UNREACHED)
    window = tuple(slice(max(-c, 0), max(-c, 0) + side) for c, side in zip(change, cost.shape, strict=True))
    return padded[window]
