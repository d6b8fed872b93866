"""`where_wanted`: results only where they are wanted, whether few lanes want them or all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.rl.few_lanes import where_wanted
from saplan.rl.optim import SEEDS

LANES = 16
ROWS = jnp.arange(2.0 * LANES).reshape(LANES, 2)


def add(rows, more):
    return rows.sum(axis=1) + more


@pytest.mark.parametrize("wanted", [[], [0], [15], [3, 7, 8, 12], [0, 1, 2, 3, 4], list(range(LANES))], ids=str)
def test_wanted_results_are_right(wanted: list[int]) -> None:
    mask = jnp.zeros(LANES, bool).at[jnp.array(wanted, int)].set(True)
    found = jax.jit(lambda mask: where_wanted(add, mask, ROWS, 5.0))(mask)
    assert found.shape == (LANES,)
    np.testing.assert_array_equal(found[mask], add(ROWS, 5.0)[mask])


def test_the_others_cost_nothing_unless_many_are_wanted() -> None:
    seen = []

    def count(rows):
        seen.append(len(rows))
        return rows[:, 0]

    jax.jit(lambda mask: where_wanted(count, mask, ROWS)).lower(jnp.zeros(LANES, bool))
    assert {LANES // 4, LANES} == set(seen)


def test_learners_side_by_side_share_the_branch() -> None:
    masks = jnp.zeros((2, LANES), bool).at[0, 2].set(True).at[1, :9].set(True)
    run = jax.vmap(lambda mask: where_wanted(add, mask, ROWS, 1.0), axis_name=SEEDS)
    found = run(masks)
    for k in range(2):
        np.testing.assert_array_equal(found[k][masks[k]], add(ROWS, 1.0)[masks[k]])
