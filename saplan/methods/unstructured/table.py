"""The unstructured planner's memory: a graph of attribute sets, in a hash table of fixed size on the device.

A node is found by hashing ρ, with a few probes; every node has room for some out-edges, which point at nodes. A batch
is inserted at once: among different nodes that claim the same free place the largest tag wins, and the others probe
further. Nodes and edges that find no place are counted as overflow.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int32, UInt32

from saplan.algebra import Rho
from saplan.algebra.hashing import fingerprint

PROBES = 16
"""Places that a node may take, starting from its hash."""
NONE = -1


class Table(eqx.Module):
    """c_explore and c_π over pairs (ρ_i, ρ_j)."""

    tag: UInt32[Array, "N"]
    """Fingerprint of the node in each place; 0 where there is none."""
    rho: Float[Array, "N K"]
    edge: Int32[Array, "N D"]
    """One more than the node that each out-edge leads to; 0 where there is none."""
    explored: Int32[Array, "N D"]
    """How often each change was seen, by either policy."""
    tried: Float[Array, "N D"]
    won: Float[Array, "N D"]
    """Execution attempts and successes, both decaying."""
    overflow: Int32[Array, ""]
    """Changes that found no place."""

    @property
    def nodes(self) -> Int32[Array, ""]:
        """Attribute sets that have been seen."""
        return jnp.sum(self.tag > 0, dtype=jnp.int32)

    @property
    def pairs(self) -> Int32[Array, ""]:
        """Pairs that have been seen."""
        return jnp.sum(self.edge > 0, dtype=jnp.int32)

    def find(self, rho: Rho) -> Int32[Array, "n"]:
        """Places of nodes, NONE where the table has none."""
        home, tag = fingerprint(rho)
        place = (home[:, None] + jnp.arange(PROBES)) % len(self.tag)
        match = self.tag[place] == tag[:, None]
        return jnp.where(jnp.any(match, axis=1), jnp.take_along_axis(place, _first(match), 1)[:, 0], NONE)

    def column(self, node: Int[Array, "n"], target: Int[Array, "n"]) -> Int[Array, "n"]:
        """The out-edge of each node that leads to its target, NONE where none does."""
        match = (self.edge[node] == target[:, None] + 1) & (node >= 0)[:, None] & (target >= 0)[:, None]
        return jnp.where(jnp.any(match, axis=1), _first(match)[:, 0], NONE)

    def targets(self, node: Int[Array, "n"]) -> tuple[Float[Array, "n D K"], Bool[Array, "n D"]]:
        """ρ at the ends of all out-edges, and which out-edges exist."""
        edge = self.edge[node]
        return self.rho[edge - 1], (edge > 0) & (node >= 0)[:, None]


def _first(match: Bool[Array, "n m"]) -> Int[Array, "n 1"]:
    return jnp.argmax(match, axis=1)[:, None]


def empty_table(nodes: int, degree: int, attributes: int) -> Table:
    """A table of nothing."""
    pairs = (nodes, degree)
    return Table(
        tag=jnp.zeros(nodes, jnp.uint32),
        rho=jnp.zeros((nodes, attributes)),
        edge=jnp.zeros(pairs, jnp.int32),
        explored=jnp.zeros(pairs, jnp.int32),
        tried=jnp.zeros(pairs),
        won=jnp.zeros(pairs),
        overflow=jnp.zeros((), jnp.int32),
    )


def admit(table: Table, rho: Rho, keep: Bool[Array, "n"]) -> tuple[Table, Int32[Array, "n"]]:
    """Insert the marked ρ; also their places, NONE where there was no room."""
    size, (home, tag) = len(table.tag), fingerprint(rho)

    def probe(carry: tuple[Array, Array], step: Array) -> tuple[tuple[Array, Array], None]:
        tags, place = carry
        here = (home + step) % size
        seeks = keep & (place < 0)
        tags = tags.at[jnp.where(seeks & (tags[here] == 0), here, size)].max(tag, mode="drop")
        return (tags, jnp.where(seeks & (tags[here] == tag), here, place)), None

    start = (table.tag, jnp.full(len(rho), NONE, jnp.int32))
    (tags, place), _ = jax.lax.scan(probe, start, jnp.arange(PROBES, dtype=jnp.int32))
    rows = jnp.where(place >= 0, place, size)
    table = eqx.tree_at(lambda t: (t.tag, t.rho), table, (tags, table.rho.at[rows].set(rho, mode="drop")))
    return table, place


def link(
    table: Table, node: Int32[Array, "n"], target: Int32[Array, "n"], keep: Bool[Array, "n"]
) -> tuple[Table, Int32[Array, "n"]]:
    """Insert an edge for each marked pair of nodes; also its column, NONE where there was no room."""
    size, degree = table.edge.shape
    keep = keep & (node >= 0) & (target >= 0)

    def probe(carry: tuple[Array, Array], column: Array) -> tuple[tuple[Array, Array], None]:
        edge, found = carry
        seeks = keep & (found < 0)
        free = seeks & (edge[node, column] == 0)
        edge = edge.at[jnp.where(free, node, size), column].max(target + 1, mode="drop")
        return (edge, jnp.where(seeks & (edge[node, column] == target + 1), column, found)), None

    start = (table.edge, jnp.full(len(node), NONE, jnp.int32))
    (edge, found), _ = jax.lax.scan(probe, start, jnp.arange(degree, dtype=jnp.int32))
    return eqx.tree_at(lambda t: t.edge, table, edge), found


def count_changes(table: Table, before: Rho, after: Rho, changed: Bool[Array, "n"]) -> tuple[Table, Int32[Array, "n"]]:
    """Count the changes of a rollout; also the column of each change, NONE where there was no room."""
    table, node = admit(table, before, changed)
    table, target = admit(table, after, changed)
    table, column = link(table, node, target, changed)
    kept = changed & (column >= 0)
    rows = jnp.where(kept, node, len(table.tag))
    lost = jnp.sum(changed & ~kept, dtype=jnp.int32)
    counted = eqx.tree_at(
        lambda t: (t.explored, t.overflow),
        table,
        (table.explored.at[rows, column].add(1, mode="drop"), table.overflow + lost),
    )
    return counted, column


def count_tries(
    table: Table,
    node: Int[Array, "n"],
    column: Int[Array, "n"],
    tried: Bool[Array, "n"],
    success: Bool[Array, "n"],
    decay: Float[Array, ""],
) -> Table:
    """Count execution attempts from nodes along their columns; earlier counts fade by `decay`."""
    rows = jnp.where(tried & (node >= 0) & (column >= 0), node, len(table.tag))

    def add(counts: Array, what: Bool[Array, "n"]) -> Array:
        faded: Array = jax.lax.cond(decay < 1, lambda c: c * decay, lambda c: c, counts)
        return faded.at[rows, column].add(what.astype(jnp.float32), mode="drop")

    return replace(table, tried=add(table.tried, tried), won=add(table.won, success))
