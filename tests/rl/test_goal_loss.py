"""`goals_loss`: its value and its written-out gradient are those of the head itself, differentiated by JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from saplan.rl.goal_loss import TakenHead, Wanted, _all_goals, _goal_by_goal, goals_loss
from saplan.rl.networks import normalise

STATES, GOALS, HIDDEN = 12, 6, 8


@pytest.fixture
def case() -> tuple[TakenHead, Wanted]:
    keys = jax.random.split(jax.random.key(0), 7)
    normal = lambda key, *shape: jax.random.normal(key, shape)  # noqa: E731
    head = TakenHead(
        normal(keys[0], STATES, HIDDEN), 1 + normal(keys[1], GOALS, HIDDEN), normal(keys[2], GOALS, HIDDEN),
        normal(keys[3], STATES, HIDDEN), normal(keys[4], STATES),
    )  # fmt: skip
    target = jax.random.uniform(keys[5], (GOALS, STATES))
    return head, Wanted(target, jax.random.bernoulli(keys[6], 0.7, (GOALS, STATES)))


def written_out(head: TakenHead, wanted: Wanted, count: int):
    total = jnp.zeros(())
    for c in range(count):
        hidden = jax.nn.relu(normalise(head.trunk * head.gain[c] + head.shift[c]))
        logits = jnp.sum(hidden * head.weight, axis=-1) + head.bias
        total += jnp.mean(optax.sigmoid_binary_cross_entropy(logits, wanted.target[c]) * wanted.known[c])
    return total


@pytest.mark.parametrize("count", [0, 1, 5, GOALS])
def test_value_and_gradient_are_those_of_the_sum(case, count: int) -> None:
    head, wanted = case
    value, gradient = jax.jit(jax.value_and_grad(lambda x, n: 3 * goals_loss(x, wanted, n)))(head, count)
    expected, slopes = jax.value_and_grad(lambda x: 3 * written_out(x, wanted, count))(head)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for name, one, other in zip(TakenHead._fields, gradient, slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("count", [0, 1, 4, 5, GOALS])
def test_both_implementations_agree(case, count: int) -> None:
    head, wanted = case
    one, other = (jax.jit(f)(head, wanted, jnp.int32(count)) for f in (_goal_by_goal, _all_goals))
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


def test_goals_beyond_the_count_do_not_matter(case) -> None:
    head, wanted = case
    spoilt = head._replace(gain=head.gain.at[3:].set(jnp.nan))
    value, gradient = jax.value_and_grad(lambda x: goals_loss(x, wanted, jnp.int32(3)))(spoilt)
    assert np.isfinite(value)
    assert all(np.isfinite(g).all() for g in gradient)


def test_learners_side_by_side_are_each_by_themselves(case) -> None:
    head, wanted = case
    many = jax.tree.map(lambda x: jnp.stack([x, 2 * x]), head)
    run = jax.grad(lambda x, n: goals_loss(x, wanted, n))
    together = jax.vmap(run)(many, jnp.array([2, 6]))
    for k, count in enumerate((2, 6)):
        alone = run(jax.tree.map(lambda x, k=k: x[k], many), jnp.int32(count))
        for one, other in zip(together, alone, strict=True):
            np.testing.assert_allclose(one[k], other, rtol=1e-4, atol=1e-6)
