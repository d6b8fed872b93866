"""States with rare values of attributes, kept so that play can go back to them.

Random play seldom opens a door, and hardly ever does what needs an open door. Games that begin where a value is rare
see what changes there, and what it makes possible. At most one of the games of a batch continues each game: a host
keeps one environment for it.
"""

from collections import Counter
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int

State = TypeVar("State")
SLOTS, PER_VALUE = 128, 4
"""States kept, and those of them for one value of an attribute."""
FEW = 16
"""An attribute with more values has no rare ones: all are."""
DEEPEST = 400
"""Steps from the start of its first game within which a state is kept: on the host, going back means replaying."""


class Place(NamedTuple):
    """One value of one attribute."""

    attribute: int
    value: float

    def met(self, rho: Float32[np.ndarray, "n K"]) -> Bool[np.ndarray, "n"]:
        """Which rows have it."""
        has: Bool[np.ndarray, "n"] = rho[:, self.attribute] == self.value
        return has


class Lanes(NamedTuple):
    """Where the games of a batch come from."""

    root: Int[np.ndarray, "n"]
    """The number of the first game of each: games with the same number are continuations of one."""
    depth: Int[np.ndarray, "n"]
    """Steps since its start."""

    def some(self, index: Int[np.ndarray, "m"]) -> "Lanes":
        """Those at these places."""
        return Lanes(self.root[index], self.depth[index])


class RareStates(Generic[State]):
    """The latest states for every value of every attribute that has few of them, as far as there is room."""

    def __init__(self, seed: int, slots: int = SLOTS) -> None:
        """Begins empty, with room for so many states."""
        self.rng, self.roots, self.slots = np.random.default_rng(seed), 0, slots
        self.seen: list[Counter[float]] = []
        self.drifting: Bool[np.ndarray, "K"] | None = None
        """Which attributes change by themselves: play need not go back to their values, and hunger ends in death."""
        self.states: State | None = None
        self.rho: Float32[np.ndarray, "slots K"] | None = None
        self.origin = Lanes(np.zeros(0, np.int64), np.zeros(0, np.int64))

    def count(self, rho: Float32[np.ndarray, "n K"]) -> None:
        """Takes note of values that were met."""
        self.seen = self.seen or [Counter[float]() for _ in range(rho.shape[-1])]
        for column, seen in zip(rho.T, self.seen, strict=True):
            if len(seen) <= FEW:
                seen.update(dict(zip(*(part.tolist() for part in np.unique(column, return_counts=True)), strict=True)))

    def rarest(self) -> list[Place]:
        """The values of attributes with few of them, the rarest first."""
        drifting = [False] * len(self.seen) if self.drifting is None else self.drifting
        found = [(n, Place(k, value)) for k, seen in enumerate(self.seen) if 1 < len(seen) <= FEW and not drifting[k]
                 for value, n in seen.items()]  # fmt: skip
        return [place for _, place in sorted(found)]

    def keep(self, states: State, rho: np.ndarray, origin: Lanes, alive: Bool[np.ndarray, "n"]) -> None:
        """Keeps those of these states that are wanted more than states kept so far."""
        if not self.slots:
            return
        kept = 0 if self.rho is None else len(self.rho)
        everything = rho if self.rho is None else np.concatenate([self.rho, rho])
        origins = Lanes(*(np.concatenate(parts) for parts in zip(self.origin, origin, strict=True)))
        usable = np.concatenate([np.ones(kept, bool), alive & (origin.depth <= DEEPEST)])
        chosen = dict.fromkeys(
            int(one)
            for place in self.rarest()
            for one in latest_of_each(np.flatnonzero(usable & place.met(everything)), origins.root)[-PER_VALUE:]
        )
        order = np.array(sorted(list(chosen)[: self.slots]), np.int32)
        self.rho, self.origin = everything[order], origins.some(order)
        # Always as many slots, so that one program serves: those beyond the last kept state repeat the first.
        if self.states is None:
            self.states = _take(states, jnp.zeros(self.slots, jnp.int32))
        index = np.where(order < kept, order, order - kept + self.slots)
        self.states = _merged(self.states, states, jnp.asarray(np.pad(index, (0, self.slots - len(index)))))

    def begin(self, states: State, lanes: int, busy: Int[np.ndarray, "n"]) -> tuple[State, Lanes]:
        """Fresh states, up to half of which are replaced by kept ones, mostly with rare values.

        `busy` are the roots of games in play, which are not continued.
        """
        origin = Lanes(self.roots + np.arange(lanes), np.zeros(lanes, np.int64))
        self.roots += lanes
        if self.rho is None or self.states is None:
            return states, origin
        places = self.rarest()
        weights = np.array([self.seen[place.attribute][place.value] ** -0.5 for place in places])
        of = np.array([place.attribute for place in places])
        weights /= np.bincount(of, weights)[of] if len(of) else 1.0  # every attribute as often
        index, free = np.arange(lanes) + self.slots, ~np.isin(self.origin.root, busy)
        for lane in range(0, lanes - 1, 2):
            met = np.array([free & place.met(self.rho) for place in places]).reshape(len(places), len(free))
            open_places = weights * met.any(axis=1)
            if not open_places.any():
                break
            place = self.rng.choice(len(places), p=open_places / open_places.sum())
            slot = self.rng.choice(np.flatnonzero(met[place]))
            index[lane], origin.root[lane], origin.depth[lane] = slot, self.origin.root[slot], self.origin.depth[slot]
            free &= self.origin.root != self.origin.root[slot]
        return _merged(self.states, states, jnp.asarray(index)), origin


def latest_of_each(found: Int[np.ndarray, "n"], root: Int[np.ndarray, "slots"]) -> list[int]:
    """The last of those with the same root, in their order."""
    return sorted({int(root[one]): int(one) for one in found}.values())


@eqx.filter_jit
def _take(states: State, index: Array) -> State:
    taken: State = jax.tree.map(lambda x: x[index], states)
    return taken


@eqx.filter_jit
def either(first: Bool[Array, "n"], one: State, other: State) -> State:
    """Rows of one batch or of the other."""

    def chosen(x: Array, y: Array) -> Array:
        return jnp.where(first.reshape(-1, *[1] * (x.ndim - 1)), x, y)

    merged: State = jax.tree.map(chosen, one, other)
    return merged


@eqx.filter_jit
def _merged(kept: Any, states: Any, index: Array) -> Any:
    """Rows of both together."""
    return jax.tree.map(lambda x, y: jnp.concatenate([x, y])[index], kept, states)
