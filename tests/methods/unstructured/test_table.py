"""The table against a dictionary: random changes and attempts, in batches with many conflicts, and too little room."""

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.methods.unstructured.table import NONE, Table, count_changes, count_tries, empty_table


def batches(seed: int, count: int, size: int, values: int):
    """Random walks on a torus of three attributes: few nodes, so that batches are full of equals."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        before = random.integers(0, values, (size, 3)).astype(np.float32)
        after = before.copy()
        axis = random.integers(0, 3, size)
        after[np.arange(size), axis] = (after[np.arange(size), axis] + random.integers(1, 3, size)) % values
        yield before, after, random.random(size) < 0.7


def entry(table: Table, before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    node = table.find(jnp.asarray(before))
    return np.asarray(node), np.asarray(table.column(node, table.find(jnp.asarray(after))))


def test_it_counts_as_a_dictionary_does() -> None:
    table = empty_table(1024, 8, 3)
    truth: Counter[Any] = Counter()
    take = jax.jit(lambda *batch: count_changes(*batch)[0])
    for before, after, changed in batches(0, 12, 200, 4):
        table = take(table, jnp.asarray(before), jnp.asarray(after), jnp.asarray(changed))
        pairs = zip(map(tuple, before), map(tuple, after), changed, strict=True)
        truth.update((a, b) for a, b, happened in pairs if happened)
    assert int(table.overflow) == 0
    assert int(table.pairs) == len(truth)
    assert int(table.nodes) == len({node for pair in truth for node in pair})
    before, after = (np.array([pair[k] for pair in truth], np.float32) for k in (0, 1))
    node, column = entry(table, before, after)
    assert (column >= 0).all()
    np.testing.assert_array_equal(np.asarray(table.explored)[node, column], list(truth.values()))
    targets, there = table.targets(jnp.asarray(node))
    np.testing.assert_array_equal(np.asarray(targets)[np.arange(len(node)), column], after)
    assert int(there.sum(axis=1).max()) <= 6


def test_attempts_fade_and_add_up() -> None:
    table = empty_table(64, 4, 2)
    a, b, c = ([[0.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]])
    yes, no = jnp.array([True]), jnp.array([False])
    known, _ = count_changes(table, jnp.array(a), jnp.array(b), yes)
    node, column = entry(known, np.array(a), np.array(b))
    for success, decay in ((yes, 1.0), (no, 1.0), (yes, 0.5)):
        known = count_tries(known, jnp.asarray(node), jnp.asarray(column), yes, success, jnp.asarray(decay))
    assert float(known.tried[node[0], column[0]]) == pytest.approx(2 * 0.5 + 1)
    assert float(known.won[node[0], column[0]]) == pytest.approx(1 * 0.5 + 1)
    node, column = entry(known, np.array(a), np.array(c))
    same = count_tries(known, jnp.asarray(node), jnp.asarray(column), yes, yes, jnp.asarray(1.0))
    assert float(same.tried.sum()) == float(known.tried.sum()), "a pair never seen has no entry"


def test_what_finds_no_room_is_counted() -> None:
    table = empty_table(16, 2, 3)
    for before, after, changed in batches(1, 3, 100, 6):
        table, _ = count_changes(table, jnp.asarray(before), jnp.asarray(after), jnp.asarray(changed))
    assert int(table.nodes) <= 16
    assert int(table.pairs) <= 32
    assert int(table.overflow) > 0


def test_the_unknown_is_not_found() -> None:
    assert empty_table(16, 2, 3).find(jnp.zeros((1, 3))).tolist() == [NONE]
