"""The exploration reward, worked out by hand."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from saplan.algebra import Cyclic, Natural, Product
from saplan.methods.structured.exploration import exploration_reward, joint_rarity, rarity
from tests.methods.probe import SMALL

from .opinions import memory_of, opinion, steps_of

SPACE = Product.of(count=Natural(), dial=Cyclic(3))
UP, TURN = (1.0, 0.0), (0.0, 1.0)
VISITS = [(0, 0)] * 3 + [(0, 1)] * 2 + [(1, 0)] * 4
"""Nine: count 0 five times, count 1 four times; dial 0 seven times, dial 1 twice."""
MEMORY = memory_of(SPACE, [UP, TURN], 4, explored=VISITS, executed=[(1, 1)] * 50)
UNSURE = opinion(SPACE, lambda rho, delta: jnp.where(delta[..., 0] == 1, 0.0, 2.0))
STEPS = steps_of(SPACE, delta=[UP, TURN, (0.0, 0.0), (1.0, 1.0)])
"""From (0, 0): to (1, 0), to (0, 1), nowhere, and to (1, 1)."""


def reward(**numbers: Any) -> np.ndarray:
    return np.asarray(exploration_reward(MEMORY, UNSURE, SPACE, STEPS, replace(SMALL, **numbers)))


def test_rarity_looks_at_the_changed_values_only() -> None:
    after, before = jnp.array([UP, TURN]), jnp.zeros((2, 2))
    # Shares: count 1 → (4 + 1) / (9 + 1), dial 1 → (2 + 1) / (9 + 1).
    np.testing.assert_allclose(rarity(MEMORY, SPACE, after, before), [0.5**-0.5, 0.3**-0.5], rtol=1e-6)


def test_of_several_changed_values_the_least_rare_decides() -> None:
    both = rarity(MEMORY, SPACE, jnp.array([(1.0, 1.0)]), jnp.zeros((1, 2)))
    np.testing.assert_allclose(both, [0.5**-0.5], rtol=1e-6)


def test_joint_rarity_counts_combinations() -> None:
    after = jnp.array([UP, TURN, (1.0, 1.0)])
    np.testing.assert_allclose(joint_rarity(MEMORY, SPACE, after), [0.5**-0.5, 0.3**-0.5, 0.1**-0.5], rtol=1e-6)


def test_no_change_no_reward() -> None:
    for joint in (True, False):
        assert reward(alpha_surprise=3.0, alpha_rare=2.0, joint=joint)[2] == 0.0
    assert not reward(alpha_surprise=0.0, alpha_rare=0.0).any()


@pytest.mark.parametrize("joint", [True, False])
def test_reward_for_rare_values(joint: bool) -> None:
    last = 0.1 if joint else 0.5
    expected = 2.0 * np.array([0.5, 0.3, np.inf, last]) ** -0.5
    np.testing.assert_allclose(reward(alpha_surprise=0.0, alpha_rare=2.0, joint=joint), expected, rtol=1e-6)


def test_reward_for_surprise() -> None:
    doubtful, sure = np.log(2), np.log1p(np.exp(-2.0))
    expected = 3.0 * np.array([doubtful, sure, 0.0, doubtful])
    np.testing.assert_allclose(reward(alpha_surprise=3.0, alpha_rare=0.0), expected, rtol=1e-5)


def test_rewards_add_up() -> None:
    total = reward(alpha_surprise=3.0, alpha_rare=2.0, joint=True)
    parts = reward(alpha_surprise=3.0, alpha_rare=0.0), reward(alpha_surprise=0.0, alpha_rare=2.0, joint=True)
    np.testing.assert_allclose(total, sum(parts), rtol=1e-6)
