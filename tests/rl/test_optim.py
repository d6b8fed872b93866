"""`accumulate_loss` is a sum: its value and gradient are those of writing it out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.rl.optim import SEEDS, _sum_of_first, accumulate_loss, in_buckets, shuffle
from saplan.rl.settings import Settings


def loss(learnt, given, item):
    weight, bias = learnt
    slope, target = item
    return jnp.mean((jnp.tanh(given @ weight * slope + bias) - target) ** 2)


def written_out(learnt, given, items, count: int):
    return sum((loss(learnt, given, tuple(x[k] for x in items)) for k in range(count)), jnp.zeros(()))


@pytest.fixture
def case():
    keys = jax.random.split(jax.random.key(0), 5)
    learnt = (jax.random.normal(keys[0], (4,)), jax.random.normal(keys[1], ()))
    items = (jax.random.normal(keys[2], (6,)), jax.random.normal(keys[3], (6, 8)))
    return learnt, jax.random.normal(keys[4], (8, 4)), items


@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_value_and_gradient_are_those_of_the_sum(case, count: int) -> None:
    learnt, given, items = case
    value, gradient = jax.jit(jax.value_and_grad(lambda x, n: 3 * accumulate_loss(loss, x, given, items, n)))(
        learnt, count
    )
    expected, slopes = jax.value_and_grad(lambda x: 3 * written_out(x, given, items, count))(learnt)
    np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)
    for one, other in zip(gradient, slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_items_beyond_the_count_do_not_matter(case) -> None:
    learnt, given, (slopes, targets) = case
    spoilt = (slopes.at[3:].set(jnp.nan), targets)
    value, gradient = jax.value_and_grad(lambda x: accumulate_loss(loss, x, given, spoilt, jnp.int32(3)))(learnt)
    assert np.isfinite(value)
    assert all(np.isfinite(g).all() for g in gradient)


def test_several_at_once_are_each_by_itself(case) -> None:
    learnt, given, items = case
    many = jax.tree.map(lambda x: jnp.stack([x, 2 * x, -x]), learnt)
    counts = jnp.array([2, 6, 0])
    run = jax.grad(lambda x, n: accumulate_loss(loss, x, given, items, n))
    together = jax.vmap(run)(many, counts)
    for k, count in enumerate(counts.tolist()):
        alone = run(tuple(part[k] for part in many), jnp.int32(count))
        for one, other in zip(together, alone, strict=True):
            np.testing.assert_allclose(one[k], other, rtol=1e-4, atol=1e-6)


@pytest.fixture
def many_items():
    keys = jax.random.split(jax.random.key(1), 2)
    return jax.random.normal(keys[0], (21,)), jax.random.normal(keys[1], (21, 8))


@pytest.mark.parametrize("count", [0, 1, 4, 5, 15, 16, 17, 21])
def test_a_batch_with_room_for_those_that_count_is_the_same_sum(case, many_items, count: int) -> None:
    learnt, given, _ = case
    value, gradient = jax.jit(
        lambda n: in_buckets(lambda *rest: _sum_of_first(loss, *rest), many_items, n, learnt, given)
    )(jnp.int32(count))
    expected, slopes = jax.value_and_grad(lambda x: written_out(x, given, many_items, count))(learnt)
    np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)
    for one, other in zip(gradient, slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_learners_side_by_side_get_the_same_room(many_items) -> None:
    """The branch is a real one, and the room that of the one that needs most."""
    seen = []

    def count_items(items, count):
        seen.append(len(items[0]))
        return jnp.sum(jnp.where(jnp.arange(len(items[0])) < count, 1, 0)) + 100 * len(items[0])

    ask = jax.vmap(lambda count: in_buckets(count_items, many_items, count), axis_name=SEEDS)
    assert "cond" in str(jax.make_jaxpr(ask)(jnp.array([3, 6]))), "not a select of all rooms"
    assert ask(jnp.array([3, 6])).tolist() == [1603, 1606]
    assert ask(jnp.array([3, 4])).tolist() == [403, 404]
    assert ask(jnp.array([3, 20])).tolist() == [2103, 2120]
    assert set(seen) == {4, 16, 21}


@pytest.mark.parametrize(("lanes", "minibatches"), [(3, 7), (64, 32), (1000, 8)])
def test_every_pass_has_every_step_once_in_a_random_minibatch(lanes: int, minibatches: int) -> None:
    settings, size = Settings(lanes=lanes, rollout=14, minibatches=minibatches, epochs=3), 14 * lanes
    orders = np.asarray(shuffle(settings, jax.random.key(1), size)).reshape(3, size)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(size), (3, 1)))
    assert not np.array_equal(orders[0], orders[1])
    if size > 500:
        means = orders.reshape(3 * minibatches, -1).mean(axis=1)
        spread = size / np.sqrt(12 * size / minibatches)
        assert np.abs(means - size / 2).max() < 5 * spread, "no minibatch is a stretch of time"
