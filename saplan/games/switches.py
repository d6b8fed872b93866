"""Switches: a dial decides which objects can be picked up (the paper's modular environment)."""

from dataclasses import dataclass, field
from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int16, PRNGKeyArray

from saplan.algebra import Cyclic, Natural, Product
from saplan.games.game import Game, ItemFacts, Words
from saplan.games.grid import INTERACT, MOVES, NOWHERE, Map, MapRules, Place, Places, draw_map, move, vocabulary, words
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
from saplan.games.scene import COLOURS, Scene, Thing, ground_scene
from saplan.goals import Goal, exactly


class SwitchesState(eqx.Module):
    """`objects` holds the places of all objects, kind by kind; a picked or absent one is NOWHERE."""

    ground: Map
    objects: Places
    held: Int16[Array, "q"]
    switch_place: Place
    switch: Int16[Array, ""]

    @property
    def items(self) -> Places:
        """Places of the objects, then of the switch."""
        return jnp.concatenate([self.objects, self.switch_place[None]])


@final
@dataclass(frozen=True)
class Switches(Game[SwitchesState]):
    """There are objects of q kinds, and one switch that shows a kind.

    - `interact` on an object picks it up if the switch shows its kind. `interact` on the switch advances it to the next
      kind, and from the last kind back to the first.
    - 𝓡 = ℕ^q (on the map) × ℕ^q (held) × ℤ/q (switch).
    - Admissible δρ: for every kind j, one less on the map and one more held; and switch + 1. These are q + 1 changes.
    - A task is to hold exactly (n_1..n_q): not all zero, and of each kind at most as many as are on the map. The
      position of the switch is free.
    """

    kinds: int = 3
    """q: kinds of objects, and positions of the switch."""
    fewest: int = 1
    """Smallest number of objects of a kind."""
    most: int = 4
    """Largest number of objects of a kind."""
    maps: MapRules = field(default_factory=MapRules)

    name: ClassVar[str] = "switches"
    actions: ClassVar[tuple[str, ...]] = (*MOVES, "interact")
    credit: ClassVar[str] = "attempt"
    alphas: ClassVar[tuple[float, float]] = (1.0, 0.0)
    farthest_goal: ClassVar[int] = 15

    def __post_init__(self) -> None:
        check_counts(self.kinds, self.fewest, self.most, 1, self.maps)

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
        shown = self.object_kinds == state.switch
        picked = interacts & shown & (state.objects == ground.agent)
        turned = interacts & (state.switch_place == ground.agent)
        return SwitchesState(
            ground=ground,
            objects=remove(state.objects, picked),
            held=state.held + count_by_kind(picked, self.kinds),
            switch_place=state.switch_place,
            switch=jnp.where(turned, (state.switch + 1) % self.kinds, state.switch).astype(jnp.int16),
        )

    def observe(self, state: SwitchesState) -> Words:
        switch_kind = 1 + self.kinds + state.switch.astype(jnp.int32)
        kinds = jnp.concatenate([1 + self.object_kinds, switch_kind[None]])
        return words(state.ground, kinds, state.items)

    def attributes(self, state: SwitchesState) -> Float[Array, "K"]:
        on_map = count_by_kind(state.objects != NOWHERE, self.kinds)
        return jnp.concatenate([on_map, state.held, state.switch[None]]).astype(jnp.float32)

    def anywhere(self, key: PRNGKeyArray) -> SwitchesState:
        state_key, share_key, pick_key = jax.random.split(key, 3)
        state = self.reset(state_key)
        picked = pick_some(share_key, pick_key, state.objects)
        objects, held = remove(state.objects, picked), count_by_kind(picked, self.kinds)
        return SwitchesState(state.ground, objects, held, state.switch_place, state.switch)

    def shelf(self, state: SwitchesState) -> Float[Array, "rows cells"]:
        return (jnp.arange(self.most) < state.held[:, None]).astype(jnp.float32)

    def over(self, state: SwitchesState) -> Bool[Array, ""]:
        return jnp.zeros((), bool)  # the switch can always be turned

    def tasks(self, key: PRNGKeyArray) -> tuple[SwitchesState, Goal]:
        state_key, goal_key = jax.random.split(key)
        state = self.reset(state_key)
        offers = self.attributes(state)[: self.kinds].astype(jnp.int32) + 1
        # One uniform number encodes one of the goals other than (0, ..., 0), in mixed radix.
        code = jax.random.randint(goal_key, (), 1, jnp.prod(offers))
        place_values = jnp.concatenate([jnp.ones(1, jnp.int32), jnp.cumprod(offers)[:-1]])
        value, asked = hold(code // place_values % offers, self.space.size)
        return state, exactly(value, 0.0, asked)

    def goal_at(
        self, key: PRNGKeyArray, rho: Float[Array, "K"], distance: Int[Array, ""]
    ) -> tuple[Float[Array, "K"], Bool[Array, "K"]]:
        """Counts to hold; the distance is the number of picks and of turns of the switch that they need."""
        q = self.kinds
        counts = jnp.stack(jnp.meshgrid(*[jnp.arange(self.most + 1)] * q, indexing="ij"), axis=-1).reshape(-1, q)
        turns = jnp.max(jnp.where(counts > 0, (jnp.arange(q) - rho[2 * q].astype(jnp.int32)) % q, 0), axis=1)
        length = jnp.sum(counts, axis=1) + turns
        possible = jnp.all(counts <= rho[:q], axis=1) & (length > 0)
        return hold(counts[draw_nearest(key, length, possible, distance)], self.space.size)

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

    def item_facts(self) -> ItemFacts:
        served = served_by_slots(len(self.admissible()), self.kinds, self.most, others=1)
        served[self.kinds :, -1] = True
        return ItemFacts(served, np.full(len(served), INTERACT))

    def scene(self, state: SwitchesState) -> Scene:
        shown = COLOURS[int(state.switch)]
        switch = (int(state.switch_place), Thing(0, 0, "switch", shown))
        things = [*drawn_objects(state.objects, self.most), switch]
        return ground_scene(state.ground, things, (*drawn_counts(state.held), ("switch", shown, shown)))
