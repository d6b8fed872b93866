"""𝓑 and the counts of visits, against plain Python."""

from collections import Counter
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from saplan.algebra import Cyclic, Natural, Product, Real
from saplan.games import Exchange
from saplan.methods.structured.memory import (
    NEW_PER_UPDATE,
    Memory,
    cell,
    condense,
    count_attempts,
    count_visits,
    empty_memory,
    marginals,
    remember,
)
from saplan.methods.structured.settings import StructuredSettings
from tests.methods.structured.opinions import memory_of

SPACE = Product.of(count=Natural(), dial=Cyclic(3), ore=Real(resolution=1.0, low=0.0, high=8.0))
CELLS = 2**14
take_in = jax.jit(lambda *batch: remember(*batch)[0], static_argnums=1)


def taken(*changes: tuple[float, float, float], capacity: int = 8, happened: list[bool] | None = None) -> Memory:
    mask = jnp.ones(len(changes), bool) if happened is None else jnp.array(happened)
    memory: Memory = take_in(empty_memory(SPACE, capacity, CELLS), SPACE, jnp.array(changes, jnp.float32), mask)
    return memory


def test_distinct_changes_get_one_entry_each() -> None:
    memory = taken((1, 0, 0), (0, 1, 0), (1, 0, 0), (0, 2, 0), (0, 1, 0), (1, 0, 0))
    assert int(memory.size) == 3
    assert memory.delta[:3].tolist() == [[1, 0, 0], [0, 1, 0], [0, 2, 0]]
    assert memory.seen[:3].tolist() == [3, 2, 1]
    assert memory.used.tolist() == [True] * 3 + [False] * 5
    assert int(memory.overflow) == 0


def test_what_is_known_already_gets_no_second_entry() -> None:
    memory = taken((1, 0, 0), (0, 1, 0))
    memory = take_in(memory, SPACE, jnp.array([(0.0, 1, 0), (-1, 0, 0)]), jnp.ones(2, bool))
    assert int(memory.size) == 3
    assert memory.seen[:3].tolist() == [1, 2, 1]


def test_what_did_not_happen_leaves_nothing() -> None:
    memory = taken((1, 0, 0), (0, 1, 0), happened=[False, True])
    assert int(memory.size) == 1
    assert memory.delta[0].tolist() == [0, 1, 0]
    assert int(memory.seen.sum()) == 1


def test_entries_are_found_again() -> None:
    memory = taken((1, 0, 0), (0, 1, 0), (0, 0, 1.2))
    asked = jnp.array([(0.0, 1, 0), (0, 0, 0.6), (1, 0, 0), (0, 0, 0), (0, 0, 1.6), (1, 1, 0)])
    assert memory.index(SPACE, asked).tolist() == [1, 2, 0, -1, -1, -1], "an empty entry is not the change (0, 0, 0)"


def test_reals_are_merged_by_their_mean() -> None:
    random = np.random.default_rng(0)
    memory, all_draws = empty_memory(SPACE, 8, CELLS), []
    for _ in range(20):
        draws = random.uniform(0.5, 1.49, 32).astype(np.float32)
        all_draws.append(draws)
        changes = jnp.stack([jnp.full(32, -1.0), jnp.zeros(32), jnp.array(draws)], axis=1)
        memory = take_in(memory, SPACE, changes, jnp.ones(32, bool))
    drawn = np.concatenate(all_draws)
    assert int(memory.size) == 1
    np.testing.assert_allclose(memory.delta[0], [-1, 0, drawn.mean()], atol=1e-5)
    np.testing.assert_allclose(memory.spread[0], [0, 0, drawn.std()], atol=1e-4)
    assert float(memory.delta[0, 0]) == -1.0


def test_reals_in_different_cells_are_different_changes() -> None:
    memory = taken((0, 0, 1.2), (0, 0, -0.9), (0, 0, 2.4), (0, 0, 0.8))
    assert int(memory.size) == 3
    np.testing.assert_allclose(memory.delta[:3, 2], [1.0, -0.9, 2.4], atol=1e-6)


def test_overflow_is_counted() -> None:
    changes = [(float(n), 0.0, 0.0) for n in (1, 2, 3, 4, 5, 4)]
    memory = taken(*changes, capacity=3)
    assert int(memory.size) == 3
    assert int(memory.overflow) == 3
    memory = take_in(memory, SPACE, jnp.array(changes), jnp.array([True, True, True, True, False, False]))
    assert int(memory.overflow) == 4
    assert memory.seen.tolist() == [2, 2, 2]


def test_what_one_update_cannot_take_in_is_taken_in_later() -> None:
    count = 2 * NEW_PER_UPDATE + 3
    changes = jnp.array([(float(n), 0.0, 0.0) for n in range(1, count + 1)])
    memory, sizes = empty_memory(SPACE, 32, CELLS), []
    for _ in range(4):
        memory = take_in(memory, SPACE, changes, jnp.ones(count, bool))
        sizes.append(int(memory.size))
    assert sizes == [NEW_PER_UPDATE, 2 * NEW_PER_UPDATE, count, count]
    assert int(memory.overflow) == 0


def test_discrete_changes_stay_exact() -> None:
    changes = jnp.array([(-3.0, 2.0, 0.7), (1.0, 0.0, -1.1), (7.0, 1.0, 0.0)])

    @jax.jit
    def often(memory: Memory) -> Any:
        return jax.lax.fori_loop(0, 5000, lambda _, m: remember(m, SPACE, changes, jnp.ones(3, bool))[0], memory)

    memory = often(empty_memory(SPACE, 4, CELLS))
    np.testing.assert_array_equal(memory.delta[:3, :2], changes[:, :2])
    np.testing.assert_allclose(memory.delta[:3, 2], changes[:, 2], rtol=1e-3)
    np.testing.assert_array_equal(memory.spread[:3, :2], np.zeros((3, 2)))
    assert memory.seen[:3].tolist() == [5000] * 3


def test_visits_are_counted_as_a_counter_counts() -> None:
    random = np.random.default_rng(1)
    rho = np.stack([random.integers(0, 4, 200), random.integers(0, 3, 200), random.uniform(0, 8, 200)], 1)
    rho = rho.astype(np.float32)
    who = random.integers(0, 3, 200)
    memory = jax.jit(count_visits, static_argnums=1)(
        empty_memory(SPACE, 2, CELLS), SPACE, jnp.array(rho), jnp.array(who == 0), jnp.array(who == 1)
    )
    bins, cells = np.asarray(SPACE.bin(jnp.array(rho))), np.asarray(cell(SPACE, jnp.array(rho), CELLS))
    for number, (by_bin, by_cell) in enumerate(
        [(memory.explored, memory.explored_cells), (memory.executed, memory.executed_cells)]
    ):
        for k in range(3):
            wanted = Counter(bins[who == number, k].tolist())
            assert {b: int(n) for b, n in enumerate(by_bin[k]) if n} == wanted
        assert {c: int(by_cell[c]) for c in np.flatnonzero(by_cell).tolist()} == Counter(cells[who == number].tolist())
    looked_up = marginals(memory.explored, SPACE, jnp.array(rho[:5]))
    expected = [[int(np.sum((bins[:, k] == bins[i, k]) & (who == 0))) for k in range(3)] for i in range(5)]
    assert looked_up.tolist() == expected


def test_attempts_are_tallied_by_transition() -> None:
    memory = taken((1, 0, 0), (0, 1, 0))
    subgoals = jnp.array([(1.0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 0, 0), (5, 0, 0)])
    tried = jnp.array([True, True, True, False, True])
    success = jnp.array([True, False, False, False, True])
    memory = count_attempts(memory, memory.index(SPACE, subgoals), tried, success)
    assert memory.tried.tolist() == [2, 1, 0, 0, 0, 0, 0, 0]
    assert memory.succeeded.tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_joint_cells_tell_places_apart() -> None:
    grid = np.stack(np.meshgrid(np.arange(6), np.arange(3), np.arange(0.5, 8)), axis=-1).reshape(-1, 3)
    cells = np.asarray(cell(SPACE, jnp.array(grid, jnp.float32), CELLS))
    assert cells.min() >= 0
    assert cells.max() < CELLS
    assert len(set(cells.tolist())) > 0.95 * len(grid)
    same = cell(SPACE, jnp.array([(2.0, 1.0, 3.1), (2.0, 1.0, 3.9), (2.0, 1.0, 4.1)]), CELLS)
    assert same[0] == same[1] != same[2]


def test_a_constant_change_has_no_spread_however_often_it_is_seen() -> None:
    """Sums of raw squares cancel in float32: a constant change of 50 showed a spread of 0.21 after a million."""
    changes, mask = jnp.tile(jnp.array([0.0, 0.0, 50.3]), (4096, 1)), jnp.ones(4096, bool)
    space = Product.of(count=Natural(), dial=Cyclic(3), ore=Real(resolution=1.0))
    often = jax.jit(
        lambda memory: jax.lax.scan(lambda m, _: (remember(m, space, changes, mask)[0], None), memory, None, 256)
    )
    memory = often(empty_memory(space, 4, CELLS))[0]
    assert int(memory.seen[0]) == 2**20
    assert float(memory.spread[0, 2]) < 1e-3
    np.testing.assert_allclose(memory.delta[0, 2], 50.3, atol=1e-5)


def test_the_spread_of_uneven_batches_is_that_of_all_changes() -> None:
    random = np.random.default_rng(1)
    memory, drawn = empty_memory(SPACE, 8, CELLS), []
    for size in (1, 3, 64, 2, 500):
        draws = random.uniform(0.5, 1.49, 512).astype(np.float32)
        happened = np.arange(512) < size
        drawn.append(draws[:size])
        changes = jnp.stack([jnp.zeros(512), jnp.zeros(512), jnp.array(draws)], axis=1)
        memory = take_in(memory, SPACE, changes, jnp.array(happened))
    np.testing.assert_allclose(memory.spread[0, 2], np.concatenate(drawn).std(), rtol=1e-5)


def test_small_changes_of_opposite_sign_stay_apart() -> None:
    memory = taken((0, 0, 0.3), (0, 0, -0.3), (0, 0, 0.2), (0, 0, -0.2))
    assert int(memory.size) == 2
    np.testing.assert_allclose(memory.delta[:2, 2], [0.25, -0.25], atol=1e-6)
    assert int(taken((0, 0, 1e-3)).size) == 0, "a jitter far below the resolution is not a change"


def test_joint_cells_of_a_large_space_hardly_collide() -> None:
    """Exchange has some 200,000 places; in 2^14 cells their rarity was noise."""
    game = Exchange()
    counts = np.stack(np.meshgrid(*[np.arange(9)] * 3, *[np.arange(7)] * 3, indexing="ij"), -1).reshape(-1, 6)
    cells = np.asarray(cell(game.space, jnp.array(counts[:200_000], jnp.float32), StructuredSettings().cells))
    assert len(np.unique(cells)) > 0.9 * 200_000


def test_an_agent_keeps_which_cells_were_visited_and_not_the_counts() -> None:
    rho = jnp.array([(1.0, 2.0, 3.5), (4.0, 0.0, 7.5)])
    memory = count_visits(empty_memory(SPACE, 2, CELLS), SPACE, rho, jnp.array([True, False]), jnp.array([False, True]))
    small, visited = condense(memory)
    assert small.explored_cells.size == small.executed_cells.size == 0
    assert visited.bits.nbytes == CELLS // 8
    np.testing.assert_array_equal(visited(SPACE, rho), [True, True])
    assert not bool(visited(SPACE, jnp.array([9.0, 1.0, 0.5])))


def test_two_changes_within_one_step_are_no_change_of_their_own() -> None:
    """A button that is seldom pressed is kept, however rare; two at once are not."""
    space = Product.of(**{name: Cyclic(2) for name in "abcd"})
    changes = [(1, 1, 0, 0), (0, 1, 1, 0), (1, 0, 1, 0), (0, 0, 1, 1), (1, 1, 1, 1)]
    memory = memory_of(space, changes, capacity=8)
    memory = eqx.tree_at(lambda m: m.seen, memory, jnp.array([500, 400, 3, 3, 20, 0, 0, 0], memory.seen.dtype))
    assert np.asarray(memory.doubles(space, 0.1))[:5].tolist() == [False, False, True, False, False]
    trusted = memory.trusted(space, 0.0, 0.1)
    assert np.asarray(trusted).tolist() == [True, True, False, True, True, False, False, False]
    assert int(memory.trusted(space, 0.0).sum()) == 5
    assert int(memory.trusted(space, 0.01).sum()) == 3, "by the share alone, the fourth is lost as well"
