"""Objects that can be picked up, shared by switches and exchange: slots of places, `most` of them for every kind."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int16, PRNGKeyArray

from saplan.algebra import Rho
from saplan.errors import InputError
from saplan.games.grid import NOWHERE, MapRules, Places
from saplan.games.scene import COLOURS, Thing


def check_counts(kinds: int, fewest: int, most: int, extra: int, maps: MapRules) -> None:
    """Raises `InputError` unless the numbers of kinds and objects make a playable game on such maps."""
    if not 1 <= kinds <= len(COLOURS):
        raise InputError(f"the number of kinds must lie in 1..{len(COLOURS)}, got {kinds}")
    if not 1 <= fewest <= most:
        raise InputError(f"the numbers of objects must satisfy 1 <= fewest <= most, got {fewest} and {most}")
    maps.check_room(kinds * most + extra)


def scatter_objects(key: PRNGKeyArray, places: Places, kinds: int, fewest: int, most: int) -> Places:
    """Places for `fewest` to `most` objects of every kind; the slots left over are NOWHERE."""
    counts = jax.random.randint(key, (kinds, 1), fewest, most + 1)
    present = jnp.arange(most)[None, :] < counts
    return jnp.where(present.reshape(-1), places, NOWHERE).astype(jnp.int16)


def count_by_kind(mask: Bool[Array, "objects"], kinds: int) -> Int16[Array, "kinds"]:
    """Number of marked slots of every kind."""
    return jnp.sum(mask.reshape(kinds, -1), axis=1, dtype=jnp.int16)


def remove(objects: Places, picked: Bool[Array, "objects"]) -> Places:
    """The objects without those that were picked up."""
    return jnp.where(picked, NOWHERE, objects).astype(jnp.int16)


def pick_some(share_key: PRNGKeyArray, pick_key: PRNGKeyArray, objects: Places) -> Bool[Array, "objects"]:
    """A mask of a random share of the objects on the map."""
    share = jax.random.uniform(share_key)
    return (objects != NOWHERE) & (jax.random.uniform(pick_key, objects.shape) < share)


def pick_deltas(kinds: int, size: int) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """The change "one less on the map, one more held" of every kind."""
    rows = []
    for k in range(kinds):
        delta = [0.0] * size
        delta[k], delta[kinds + k] = -1.0, 1.0
        rows.append((f"pick up {COLOURS[k]}", tuple(delta)))
    return tuple(rows)


def served_by_slots(changes: int, kinds: int, most: int, others: int) -> Bool[np.ndarray, "T items"]:
    """Which items serve which change: the slots of a kind serve its pick, the first of the changes; `others` none."""
    served = np.zeros((changes, kinds * most + others), bool)
    served[:kinds, : kinds * most] = np.repeat(np.eye(kinds, dtype=bool), most, axis=1)
    return served


def hold(held: Int[Array, "kinds"], size: int) -> tuple[Rho, Bool[Array, "K"]]:
    """Values of the goal "hold exactly these counts", and the mask of the attributes it asks for."""
    kinds, k = len(held), jnp.arange(size)
    value = jnp.zeros(size).at[kinds : 2 * kinds].set(held.astype(jnp.float32))
    return value, (k >= kinds) & (k < 2 * kinds)


def draw_nearest(
    key: PRNGKeyArray, lengths: Int[Array, "n"], possible: Bool[Array, "n"], distance: Int[Array, ""]
) -> Int[Array, ""]:
    """One of the possible entries whose length is nearest to a distance, drawn evenly."""
    off = jnp.where(possible, jnp.abs(lengths - distance), 10**6)
    return jax.random.categorical(key, jnp.where(off == jnp.min(off), 0.0, -jnp.inf))


def drawn_objects(objects: Places | Int16[np.ndarray, "n"], most: int) -> list[tuple[int, Thing]]:
    """The objects as things to draw, each with its place."""
    return [(place, Thing(0, 0, "object", COLOURS[slot // most])) for slot, place in enumerate(objects.tolist())]


def drawn_counts(held: Int16[Array, "kinds"] | Int16[np.ndarray, "kinds"]) -> tuple[tuple[str, str, str], ...]:
    """The held counts as entries of the inventory."""
    return tuple((COLOURS[k], COLOURS[k], str(int(n))) for k, n in enumerate(held))
