"""Switches: what can be picked up hangs on a dial (the paper's modular environment)."""

from dataclasses import dataclass, field
from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int16, PRNGKeyArray

from saplan.algebra import Cyclic, Natural, Product
from saplan.errors import InputError
from saplan.games.game import Game, Words
from saplan.games.grid import INTERACT, MOVES, NOWHERE, Map, MapRules, Place, Places, draw_map, move, vocabulary, words
from saplan.games.scene import COLOURS, Scene, Thing, ground_scene
from saplan.goals import Goal, exactly


class SwitchesState(eqx.Module):
    """`objects` holds the places of all objects, kind by kind; a picked or absent one is NOWHERE."""

    ground: Map
    objects: Places
    held: Int16[Array, "q"]
    switch_place: Place
    switch: Int16[Array, ""]


@final
@dataclass(frozen=True)
class Switches(Game[SwitchesState]):
    """Objects of q kinds and one switch that shows a kind.

    - `interact` on an object picks it up if the switch shows its kind; on the switch it advances it by one, cyclically.
    - 𝓡 = ℕ^q (on the map) × ℕ^q (held) × ℤ/q (switch).
    - Admissible δρ: for every kind j, one less on the map and one more held; and switch + 1. That is q + 1 changes.
    - A task: hold exactly (n_1..n_q), not all zero and each at most what the map offers; the switch is free.
    """

    kinds: int = 3
    """q: kinds of objects, and positions of the switch."""
    fewest: int = 1
    """Least number of objects of a kind."""
    most: int = 4
    """Greatest number of objects of a kind."""
    maps: MapRules = field(default_factory=MapRules)

    name: ClassVar[str] = "switches"
    actions: ClassVar[tuple[str, ...]] = (*MOVES, "interact")
    credit: ClassVar[str] = "attempt"
    alphas: ClassVar[tuple[float, float]] = (1.0, 0.0)

    def __post_init__(self) -> None:
        check_counts(self.kinds, self.fewest, self.most, extra=1)
        self.maps.check_room(self.kinds * self.most + 1)

    @property
    def slots(self) -> int:
        return 4 + self.maps.max_walls + self.kinds * self.most + 1

    @property
    def vocabulary(self) -> int:
        return vocabulary(2 * self.kinds)

    @property
    def space(self) -> Product:
        names = COLOURS[: self.kinds]
        return Product(
            (*(f"map_{name}" for name in names), *names, "switch"),
            (Natural(),) * (2 * self.kinds) + (Cyclic(self.kinds),),
        )

    @property
    def object_kinds(self) -> Int[Array, "objects"]:
        """The kind of every object slot, from 0."""
        return jnp.repeat(jnp.arange(self.kinds), self.most)

    def reset(self, key: PRNGKeyArray) -> SwitchesState:
        map_key, count_key, switch_key = jax.random.split(key, 3)
        ground, places = draw_map(self.maps, map_key, self.kinds * self.most + 1)
        return SwitchesState(
            ground=ground,
            objects=scatter_objects(count_key, places[1:], self.kinds, self.fewest, self.most),
            held=jnp.zeros(self.kinds, jnp.int16),
            switch_place=places[0],
            switch=jax.random.randint(switch_key, (), 0, self.kinds).astype(jnp.int16),
        )

    def step(self, key: PRNGKeyArray, state: SwitchesState, action: Int[Array, ""]) -> SwitchesState:
        interacts = action == INTERACT
        ground = move(state.ground, action)
        wanted = self.object_kinds == state.switch
        picked = interacts & wanted & (state.objects == ground.agent)
        turned = interacts & (state.switch_place == ground.agent)
        return SwitchesState(
            ground=ground,
            objects=jnp.where(picked, NOWHERE, state.objects).astype(jnp.int16),
            held=state.held + count_by_kind(picked, self.kinds),
            switch_place=state.switch_place,
            switch=jnp.where(turned, (state.switch + 1) % self.kinds, state.switch).astype(jnp.int16),
        )

    def observe(self, state: SwitchesState) -> Words:
        switch_kind = 1 + self.kinds + state.switch.astype(jnp.int32)
        kinds = jnp.concatenate([1 + self.object_kinds, switch_kind[None]])
        return words(state.ground, kinds, jnp.concatenate([state.objects, state.switch_place[None]]))

    def attributes(self, state: SwitchesState) -> Float[Array, "K"]:
        on_map = count_by_kind(state.objects != NOWHERE, self.kinds)
        return jnp.concatenate([on_map, state.held, state.switch[None]]).astype(jnp.float32)

    def anywhere(self, key: PRNGKeyArray) -> SwitchesState:
        state_key, share_key, pick_key = jax.random.split(key, 3)
        state = self.reset(state_key)
        picked = pick_some(share_key, pick_key, state.objects)
        objects = jnp.where(picked, NOWHERE, state.objects).astype(jnp.int16)
        held = count_by_kind(picked, self.kinds)
        return SwitchesState(state.ground, objects, held, state.switch_place, state.switch)

    def shelf(self, state: SwitchesState) -> Float[Array, "rows cells"]:
        return (jnp.arange(self.most) < state.held[:, None]).astype(jnp.float32)

    def over(self, state: SwitchesState) -> Bool[Array, ""]:
        return jnp.zeros((), bool)  # the switch can always be turned

    def tasks(self, key: PRNGKeyArray) -> tuple[SwitchesState, Goal]:
        state_key, goal_key = jax.random.split(key)
        state = self.reset(state_key)
        offers = self.attributes(state)[: self.kinds].astype(jnp.int32) + 1
        # One uniform number names one of the goals other than (0, ..., 0), in mixed radix.
        code = jax.random.randint(goal_key, (), 1, jnp.prod(offers))
        place_values = jnp.concatenate([jnp.ones(1, jnp.int32), jnp.cumprod(offers)[:-1]])
        asked_counts = code // place_values % offers
        zeros, asked = jnp.zeros(self.kinds), jnp.arange(self.space.size)
        value = jnp.concatenate([zeros, asked_counts.astype(jnp.float32), jnp.zeros(1)])
        return state, exactly(value, 0.0, (asked >= self.kinds) & (asked < 2 * self.kinds))

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        picks = pick_deltas(self.kinds, self.space.size)
        turn = (0.0,) * (2 * self.kinds) + (float(1 % self.kinds),)
        return (*picks, ("turn the switch", turn)) if self.kinds > 1 else picks

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        q = self.kinds
        known = jnp.array([d for _, d in self.admissible()])
        shows = jnp.arange(q) == rho[2 * q]
        possible = jnp.concatenate([(rho[:q] >= 1) & shows, jnp.ones(len(known) - q, bool)])
        return jnp.any(jnp.all(known == delta, axis=1) & possible).astype(jnp.float32)

    def scene(self, state: SwitchesState) -> Scene:
        shown = COLOURS[int(state.switch)]
        things = [
            (place, Thing(0, 0, "object", COLOURS[slot // self.most]))
            for slot, place in enumerate(state.objects.tolist())
        ]
        things.append((int(state.switch_place), Thing(0, 0, "switch", shown)))
        held = tuple((COLOURS[k], COLOURS[k], str(int(n))) for k, n in enumerate(state.held))
        return ground_scene(state.ground, things, (*held, ("switch", shown, shown)))


def check_counts(kinds: int, fewest: int, most: int, extra: int) -> None:
    """`InputError` unless the numbers of kinds and objects make a playable game."""
    if not 1 <= kinds <= len(COLOURS):
        raise InputError(f"the number of kinds q must lie in 1..{len(COLOURS)}, got {kinds}")
    if not 1 <= fewest <= most:
        raise InputError(f"the numbers of objects must satisfy 1 <= fewest <= most, got {fewest} and {most}")
    if kinds * most + extra > 30:
        raise InputError(f"{kinds} kinds of up to {most} objects do not fit on the smallest map")


def scatter_objects(key: PRNGKeyArray, places: Places, kinds: int, fewest: int, most: int) -> Places:
    """Fills `most` slots per kind with places, leaving a random number of them absent."""
    counts = jax.random.randint(key, (kinds, 1), fewest, most + 1)
    present = jnp.arange(most)[None, :] < counts
    return jnp.where(present.reshape(-1), places, NOWHERE).astype(jnp.int16)


def count_by_kind(mask: Bool[Array, "objects"], kinds: int) -> Int16[Array, "kinds"]:
    """How many slots of every kind are marked."""
    return jnp.sum(mask.reshape(kinds, -1), axis=1, dtype=jnp.int16)


def pick_some(share_key: PRNGKeyArray, pick_key: PRNGKeyArray, objects: Places) -> Bool[Array, "objects"]:
    """Marks a random share of the objects that are there."""
    share = jax.random.uniform(share_key)
    return (objects != NOWHERE) & (jax.random.uniform(pick_key, objects.shape) < share)


def pick_deltas(kinds: int, size: int) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """The change "one less on the map, one more held" for every kind."""
    rows = []
    for k in range(kinds):
        delta = [0.0] * size
        delta[k], delta[kinds + k] = -1.0, 1.0
        rows.append((f"pick up {COLOURS[k]}", tuple(delta)))
    return tuple(rows)
