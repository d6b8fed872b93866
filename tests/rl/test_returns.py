"""Returns against arrays worked out by hand and against a loop that says what the docstring says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saplan.rl.returns import agreement, lambda_returns, masked_mean

fast_returns = jax.jit(lambda_returns)


def slow_returns(reward, discount, next_value, trace) -> np.ndarray:
    """G_t = r_t + d_t · ((1 - c_t) · v_t + c_t · G_{t+1}), from the end; the last step only bootstraps."""
    result = np.zeros(reward.shape)
    for t in reversed(range(len(reward))):
        ahead = result[t + 1] if t + 1 < len(reward) else next_value[t]
        result[t] = reward[t] + discount[t] * ((1 - trace[t]) * next_value[t] + trace[t] * ahead)
    return result


def test_one_step_bootstrapping_by_hand() -> None:
    result = lambda_returns(jnp.array([1.0, 0.0]), jnp.array([0.5, 0.5]), jnp.array([4.0, 8.0]), jnp.zeros(2))
    np.testing.assert_array_equal(result, [3.0, 4.0])


def test_full_traces_by_hand() -> None:
    reward, discount = jnp.array([0.0, 0.0, 1.0]), jnp.array([0.5, 0.5, 0.0])
    result = lambda_returns(reward, discount, jnp.array([9.0, 9.0, 9.0]), jnp.ones(3))
    np.testing.assert_array_equal(result, [0.25, 0.5, 1.0])


def test_half_a_trace_by_hand() -> None:
    # G_1 = 1 + 0.5 · 6 = 4;  G_0 = 2 + 0.5 · (0.5 · 2 + 0.5 · 4) = 3.5
    result = lambda_returns(jnp.array([2.0, 1.0]), jnp.array([0.5, 0.5]), jnp.array([2.0, 6.0]), jnp.array([0.5, 0.5]))
    np.testing.assert_array_equal(result, [3.5, 4.0])


def test_nothing_flows_through_an_end() -> None:
    discount = jnp.array([0.9, 0.0, 0.9])
    after = lambda_returns(jnp.array([0.0, 0.0, 100.0]), discount, jnp.zeros(3), jnp.ones(3))
    np.testing.assert_array_equal(after[:2], [0.0, 0.0])


def test_the_trace_of_the_last_step_counts_for_nothing() -> None:
    one = (jnp.array([1.0]), jnp.array([0.5]), jnp.array([2.0]))
    assert float(lambda_returns(*one, jnp.array([1.0]))[0]) == float(lambda_returns(*one, jnp.array([0.0]))[0]) == 2.0


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**31), lanes=st.integers(1, 3))
def test_returns_equal_a_slow_loop(seed: int, lanes: int) -> None:
    random = np.random.default_rng(seed)
    shape = (7, lanes)
    reward, value = random.normal(size=shape), random.normal(size=shape)
    discount = random.uniform(0, 1, shape) * (random.uniform(size=shape) < 0.8)
    trace = random.uniform(0, 1, shape)
    fast = fast_returns(*(jnp.array(x, jnp.float32) for x in (reward, discount, value, trace)))
    np.testing.assert_allclose(fast, slow_returns(reward, discount, value, trace), rtol=1e-4, atol=1e-5)


def test_agreement_by_hand() -> None:
    logits = jnp.array([[1.0, 3.0, 2.0], [0.0, 0.0, -4.0]])
    np.testing.assert_allclose(agreement(logits, jnp.array([1, 0]), 0.5), [1.0, 1.0])
    np.testing.assert_allclose(agreement(logits, jnp.array([2, 2]), 0.5), np.exp([-2.0, -8.0]), rtol=1e-6)
    np.testing.assert_allclose(agreement(logits, jnp.array([2, 2]), 2.0), np.exp([-0.5, -2.0]), rtol=1e-6)


def test_agreement_takes_actions_of_any_whole_type() -> None:
    logits = jnp.arange(24.0).reshape(2, 3, 4)
    action = jnp.array([[0, 1, 2], [3, 2, 1]], jnp.int16)
    expected = [[np.exp(float(logits[i, j, action[i, j]] - logits[i, j].max())) for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(agreement(logits, action, 1.0), expected, rtol=1e-6)


def test_agreement_does_not_overflow() -> None:
    extreme = agreement(jnp.array([[1e30, -1e30]]), jnp.array([1]), 1e-3)
    assert extreme.tolist() == [0.0]


@pytest.mark.parametrize(
    ("mask", "mean"), [([True, False, True], 2.0), ([False] * 3, 0.0), ([False, True, False], 7.0)]
)
def test_masked_mean(mask: list[bool], mean: float) -> None:
    assert float(masked_mean(jnp.array([1.0, 7.0, 3.0]), jnp.array(mask))) == mean
