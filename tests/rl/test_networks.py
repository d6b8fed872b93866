"""Bags of words by both ways, and heads that broadcast over goals."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from saplan.rl.networks import CellEyes, GoalNetwork, Linear, _bag_by_product, _bag_by_scan, bag, normalise, patches

VOCABULARY, FEATURES, BATCH, SLOTS = 23, 8, 6, 11
TABLE = jax.random.normal(jax.random.key(0), (VOCABULARY, FEATURES))
WORDS = jax.random.randint(jax.random.key(1), (BATCH, SLOTS), 0, VOCABULARY).astype(jnp.int16)
WAYS = {"by the platform": (bag, 1e-5), "scan": (_bag_by_scan, 1e-5), "product": (_bag_by_product, 0.05)}
"""The product multiplies in bfloat16: eight bits of mantissa."""
Bag = Callable[[Array, Array], Array]


def plain_bag(table: Array, words: Array) -> Array:
    return table[words].sum(1)


@pytest.mark.parametrize(("way", "tolerance"), WAYS.values(), ids=WAYS)
def test_a_bag_is_the_sum_of_its_rows(way: Bag, tolerance: float) -> None:
    result = way(TABLE, WORDS)
    assert result.dtype == jnp.float32
    np.testing.assert_allclose(result, plain_bag(TABLE, WORDS), atol=tolerance)


@pytest.mark.parametrize(("way", "tolerance"), WAYS.values(), ids=WAYS)
def test_gradients_of_a_bag_agree(way: Bag, tolerance: float) -> None:
    pull = jax.random.normal(jax.random.key(2), (BATCH, FEATURES))
    gradient = lambda f: jax.grad(lambda table: jnp.sum(f(table, WORDS) * pull))(TABLE)  # noqa: E731
    np.testing.assert_allclose(gradient(way), gradient(plain_bag), atol=tolerance)


@pytest.mark.parametrize(("way", "tolerance"), WAYS.values(), ids=WAYS)
def test_a_word_counts_as_often_as_it_occurs(way: Bag, tolerance: float) -> None:
    words = jnp.full((1, 9), 4, jnp.int16)
    np.testing.assert_allclose(way(TABLE, words), 9 * TABLE[None, 4], atol=9 * tolerance)


@pytest.mark.parametrize("way", [way for way, _ in WAYS.values()], ids=WAYS)
def test_small_whole_numbers_are_exact_by_every_way(way: Bag) -> None:
    table = jnp.round(TABLE * 4)
    np.testing.assert_array_equal(way(table, WORDS), plain_bag(table, WORDS))


def network(vocabulary: int) -> GoalNetwork:
    return GoalNetwork.init(jax.random.key(3), vocabulary=vocabulary, state_width=5, goal_width=4, hidden=16, outputs=3)


def test_a_head_broadcasts_as_a_loop_over_goals() -> None:
    net = network(VOCABULARY)
    trunk = net.trunk(WORDS, jax.random.normal(jax.random.key(4), (BATCH, 5)))
    goals = jax.random.normal(jax.random.key(5), (7, 4))
    together = net.head(trunk[:, None], goals[None])
    assert together.shape == (BATCH, 7, 3)
    head = jax.jit(lambda state, goal: net.head(state, goal))
    for i in range(BATCH):
        for j in range(7):
            np.testing.assert_allclose(together[i, j], head(trunk[i], goals[j]), atol=1e-5)
    assert float(jnp.std(together, axis=1).min()) > 1e-4, "goals make a difference"
    assert float(jnp.std(together, axis=0).min()) > 1e-4, "states make a difference"


def test_words_and_state_both_reach_the_trunk() -> None:
    net, state = network(VOCABULARY), jnp.ones((BATCH, 5))
    with_words = net.trunk(WORDS, state)
    assert not np.allclose(with_words, net.trunk(jnp.roll(WORDS, 1, axis=0), state))
    assert not np.allclose(with_words, net.trunk(WORDS, 2 * state))
    np.testing.assert_allclose(with_words, net.trunk(WORDS[:, ::-1], state), atol=1e-5, err_msg="a bag has no order")


def test_a_network_without_words_has_no_table() -> None:
    net = network(0)
    assert net.table is None
    assert net.trunk(None, jnp.ones((2, 3, 5))).shape == (2, 3, 16)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(eqx.filter(net, eqx.is_array)))


def test_linear_by_hand() -> None:
    layer = Linear(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([10.0, 20.0]))
    np.testing.assert_array_equal(layer(jnp.array([[1.0, 1.0], [0.0, -1.0]])), [[14.0, 26.0], [7.0, 16.0]])


def test_normalise_by_hand() -> None:
    np.testing.assert_allclose(normalise(jnp.array([1.0, 3.0])), [-1.0, 1.0], atol=1e-4)
    np.testing.assert_array_equal(normalise(jnp.full(4, 7.0)), np.zeros(4))


def test_cells_of_a_picture() -> None:
    """Every cell is one row of pixels, and a rim that is too narrow is filled up with black."""
    picture = jnp.arange(5 * 4 * 2, dtype=jnp.float32).reshape(1, 5, 4, 2)
    cut = np.asarray(patches(picture, 2))
    assert cut.shape == (1, 3, 2, 8)
    assert np.array_equal(cut[0, 1, 0], np.asarray(picture[0, 2:4, 0:2]).reshape(-1))
    assert np.array_equal(cut[0, 2, 1], [*np.asarray(picture[0, 4, 2:4]).reshape(-1), 0, 0, 0, 0])


def test_eyes_for_cells_see_what_and_where() -> None:
    eyes = CellEyes.init(jax.random.key(0), (6, 6, 3), 3, outputs=5)
    one = np.zeros((3, 6, 6, 3), np.uint8)
    one[0, 0, 0], one[1, 0, 0], one[2, 3, 3] = (250, 0, 0), (0, 250, 0), (250, 0, 0)
    outputs = np.asarray(eyes(jnp.asarray(one.reshape(3, -1))))
    assert outputs.shape == (3, 5)
    assert not np.allclose(outputs[0], outputs[1]), "what"
    assert not np.allclose(outputs[0], outputs[2]), "where"
