"""Memory: 𝓑, the set of all distinct changes of ρ seen so far, and counts of visited attribute values."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int32, UInt8

from saplan.algebra import Delta, Product, Rho
from saplan.algebra.hashing import joint_cell

NO_ENTRY = -1
NEW_PER_UPDATE = 8
"""Distinct new changes that one update can add; the others will be seen again soon."""


PER_ENTRY = ("key", "delta", "offset", "squares", "seen", "tried", "succeeded")
"""Fields of a memory with one row per entry of 𝓑."""


class Memory(eqx.Module):
    """𝓑 in arrays of fixed capacity, `size` entries in use, and counts per coordinate and bin."""

    key: Float[Array, "C K"]
    """Canonical form of every transition: two changes are the same if their canonical forms are equal."""
    delta: Float[Array, "C K"]
    """The change to expect: exact for discrete attributes, on ℝ the mean of the entry's changes."""
    offset: Float[Array, "C K"]
    """Mean of an entry's changes minus its key: small, so that rounding loses nothing."""
    squares: Float[Array, "C K"]
    """Sum of squared deviations from that mean."""
    seen: Int32[Array, "C"]
    """How often each transition was made, by either policy."""
    tried: Int32[Array, "C"]
    succeeded: Int32[Array, "C"]
    """How often execution attempted it, and how often with success."""
    size: Int32[Array, ""]
    overflow: Int32[Array, ""]
    """Changes that found no free entry."""
    explored: Int32[Array, "K bins"]
    executed: Int32[Array, "K bins"]
    """p_expl and p_exec: visits to every bin of every coordinate by the two policies."""
    explored_cells: Int32[Array, "cells"]
    executed_cells: Int32[Array, "cells"]
    """The same for joint cells: the bins of all coordinates together, hashed into tables of fixed size. Two values of ρ
    that share a cell look slightly less new. A trained agent has empty tables and a `Visited` instead."""

    def compact(self) -> "Memory":
        """The same memory without its empty entries, on which nothing is then computed."""
        rows = {name: np.asarray(getattr(self, name))[: max(1, int(self.size))] for name in PER_ENTRY}
        return replace(self, **jax.device_put(rows))

    @property
    def spread(self) -> Delta:
        """Standard deviation of each entry's changes; zero for discrete attributes."""
        return jnp.sqrt(self.squares / jnp.maximum(self.seen, 1)[:, None])

    @property
    def used(self) -> Bool[Array, "C"]:
        return jnp.arange(self.key.shape[0]) < self.size

    def trusted(self, space: Product, rare: float, double: float = 0.0) -> Bool[Array, "C"]:
        """Entries in use that make up at least the share `rare` of all changes seen, without doubles."""
        frequent = self.used & (self.seen >= rare * jnp.sum(self.seen))
        return frequent & ~self.doubles(space, double) if double else frequent

    def doubles(self, space: Product, share: float) -> Bool[Array, "C"]:
        """Entries that two others make together, both so frequent that this one is below a `share` of either."""
        together = space.snap(space.then(self.delta[:, None], self.delta[None]))
        rarer = self.seen[:, None] < share * self.seen
        made = jnp.all(together == self.key[:, None, None], axis=-1)
        return jnp.any(made & rarer[:, :, None] & rarer[:, None], axis=(1, 2))

    def entry_of(self, keys: Delta) -> Int[Array, "..."]:
        """The entry of every change in canonical form, `NO_ENTRY` where there is none."""
        same = jnp.all(keys[..., None, :] == self.key, axis=-1) & self.used
        return jnp.where(jnp.any(same, axis=-1), jnp.argmax(same, axis=-1), NO_ENTRY)

    def index(self, space: Product, delta: Delta) -> Int[Array, "..."]:
        """The entry of every change, `NO_ENTRY` where there is none."""
        return self.entry_of(space.snap(delta))


def empty_memory(space: Product, capacity: int, cells: int) -> Memory:
    """A memory of nothing."""
    rows, counts = jnp.zeros((capacity, space.size)), jnp.zeros(capacity, jnp.int32)
    bins, table = jnp.zeros((space.size, max(space.bins)), jnp.int32), jnp.zeros(cells, jnp.int32)
    zero = jnp.zeros((), jnp.int32)
    return Memory(rows, rows, rows, rows, counts, counts, counts, zero, zero, bins, bins, table, table)


def remember(
    memory: Memory, space: Product, delta: Delta, happened: Bool[Array, "n"]
) -> tuple[Memory, Int[Array, "n"]]:
    """Adds a batch of changes: new ones get an entry, all enter the means. Also the entry of every change."""
    keys = space.snap(delta)
    happened = happened & jnp.any(keys != space.identity, axis=-1)  # a jitter below the grain is not a change
    memory, entry = _admit(memory, keys, happened)
    member = (entry[:, None] == jnp.arange(memory.key.shape[0])) & happened[:, None]
    full = memory.size >= memory.key.shape[0]
    lost = jnp.where(full, jnp.sum(happened & (entry < 0)), 0).astype(jnp.int32)
    offset, squares, seen = _merge(memory, entry, member, delta)
    typical = space.typical(memory.key, memory.key + offset)
    grown = eqx.tree_at(
        lambda m: (m.delta, m.offset, m.squares, m.seen, m.overflow),
        memory,
        (typical, offset, squares, seen, memory.overflow + lost),
    )
    return grown, entry


def _admit(memory: Memory, keys: Delta, happened: Bool[Array, "n"]) -> tuple[Memory, Int[Array, "n"]]:
    """Gives up to `NEW_PER_UPDATE` unknown keys an entry, and returns the entry of every key."""

    def one(carry: tuple[Memory, Array], _: None) -> tuple[tuple[Memory, Array], None]:
        memory, entry = carry
        unknown = happened & (entry < 0)
        first = jnp.argmax(unknown)
        grows = unknown[first] & (memory.size < memory.key.shape[0])
        slot = jnp.where(grows, memory.size, memory.key.shape[0])
        same = jnp.all(keys == keys[first], axis=-1) & grows
        grown = (memory.key.at[slot].set(keys[first], mode="drop"), memory.size + grows)
        return (eqx.tree_at(lambda m: (m.key, m.size), memory, grown), jnp.where(same, memory.size, entry)), None

    return jax.lax.scan(one, (memory, memory.entry_of(keys)), None, length=NEW_PER_UPDATE)[0]


def _merge(
    memory: Memory, entry: Int[Array, "n"], member: Bool[Array, "n C"], delta: Delta
) -> tuple[Float[Array, "C K"], Float[Array, "C K"], Int32[Array, "C"]]:
    """Means, squared deviations and counts with a batch added, by the update of Chan, Golub and LeVeque (1979).

    Sums of raw squares would cancel: in float32 a constant change of 50 would seem to vary.
    """

    def mean_of(values: Float[Array, "n K"]) -> Float[Array, "C K"]:
        weight = member.astype(jnp.float32)
        total = jnp.matmul(weight.T, values, precision=jax.lax.Precision.HIGHEST)
        return total / jnp.maximum(jnp.sum(weight, axis=0), 1.0)[:, None]

    known = jnp.maximum(entry, 0)
    offsets = delta - memory.key[known]
    offset = mean_of(offsets)
    variance = mean_of((offsets - offset[known]) ** 2)
    count = jnp.sum(member, axis=0, dtype=jnp.int32)
    seen = memory.seen + count
    before, new, share = memory.seen[:, None], count[:, None], (count / jnp.maximum(seen, 1))[:, None]
    step = offset - memory.offset
    squares = memory.squares + new * variance + before * share * step**2
    return memory.offset + share * step, squares, seen


def count_visits(
    memory: Memory, space: Product, rho: Rho, exploring: Bool[Array, "n"], executing: Bool[Array, "n"]
) -> Memory:
    """Count the visits of a batch of ρ by either policy."""
    member = space.bin(rho)[:, :, None] == jnp.arange(memory.explored.shape[1])
    place = cell(space, rho, memory.explored_cells.shape[0])

    def add(bins: Array, cells: Array, who: Bool[Array, "n"]) -> tuple[Array, Array]:
        more = jnp.sum(member & who[:, None, None], axis=0, dtype=jnp.int32)
        return bins + more, cells.at[place].add(who.astype(jnp.int32))

    explored, explored_cells = add(memory.explored, memory.explored_cells, exploring)
    executed, executed_cells = add(memory.executed, memory.executed_cells, executing)
    return replace(
        memory,
        explored=explored,
        explored_cells=explored_cells,
        executed=executed,
        executed_cells=executed_cells,
    )


def count_attempts(
    memory: Memory, entry: Int[Array, "n"], tried: Bool[Array, "n"], success: Bool[Array, "n"]
) -> Memory:
    """Adds a batch of execution attempts to the counts of their transitions."""
    member = (entry[:, None] == jnp.arange(memory.key.shape[0])) & tried[:, None]
    tries = jnp.sum(member, axis=0, dtype=jnp.int32)
    successes = jnp.sum(member & success[:, None], axis=0, dtype=jnp.int32)
    return replace(memory, tried=memory.tried + tries, succeeded=memory.succeeded + successes)


def marginals(counts: Int32[Array, "K bins"], space: Product, rho: Rho) -> Int32[Array, "... K"]:
    """Counts of every coordinate of a batch of ρ."""
    return counts[jnp.arange(counts.shape[0]), space.bin(rho)]


def joint_counts(table: Int32[Array, "cells"], space: Product, rho: Rho) -> Int32[Array, "..."]:
    """Counts of the joint cells of a batch of ρ."""
    return table[cell(space, rho, table.shape[0])]


def cell(space: Product, rho: Rho, cells: int) -> Int[Array, "..."]:
    """The joint cell of ρ in a table of this size."""
    return joint_cell(space.bin(rho), cells)


class Visited(eqx.Module):
    """Which joint cells either policy has visited, one bit each: all that a trained agent needs of the counts."""

    bits: UInt8[Array, "bytes"]

    def __call__(self, space: Product, rho: Rho) -> Bool[Array, "..."]:
        """Whether the joint cell of each ρ was visited."""
        place = cell(space, rho, 8 * self.bits.shape[0])
        return (self.bits[place // 8] >> (7 - place % 8).astype(jnp.uint8)) & 1 > 0


def condense(memory: Memory) -> tuple[Memory, Visited]:
    """The memory of a trained agent: one bit per joint cell in place of two counts."""
    visited = Visited(jnp.packbits(memory.explored_cells + memory.executed_cells > 0))
    empty = jnp.zeros(0, jnp.int32)
    return eqx.tree_at(lambda m: (m.explored_cells, m.executed_cells), memory, (empty, empty)), visited
