"""Plans with random moves, against value iteration on the exact table."""

import numpy as np
import pytest

from saplan.planning.random_moves import ChanceGraph, Chances

PATIENCE = 0.99
GRAIN = np.ones(1, np.float32)


def ring(size: int, slip: float, hole: int = -1) -> ChanceGraph:
    """Two actions on a circle, right and left; each slips the other way at random, and a hole ends the game."""

    def chances(rho: np.ndarray) -> Chances:
        ends = np.stack([(rho + 1) % size, (rho - 1) % size], axis=1)
        share = np.array([[1 - slip, slip], [slip, 1 - slip]])
        alive = (rho[:, 0] != hole)[:, None, None]
        both = np.repeat(ends[:, None], 2, axis=1).astype(np.float32)
        return Chances(both, (share[None] * alive).astype(np.float32))

    return ChanceGraph(GRAIN, chances, 1000, PATIENCE)


def exact(size: int, slip: float, goal: set[int], hole: int = -1) -> np.ndarray:
    """Discounted probability of reaching the goal after each action, by plain iteration."""
    value = np.array([float(k in goal) for k in range(size)])
    for _ in range(5000):
        right, left = np.roll(value, -1), np.roll(value, 1)
        each = PATIENCE * np.stack([(1 - slip) * right + slip * left, slip * right + (1 - slip) * left], axis=1)
        each[np.arange(size) == hole] = 0
        value = np.where([k in goal for k in range(size)], 1.0, each.max(axis=1))
    return each


@pytest.mark.parametrize("slip", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("hole", [-1, 3])
def test_values_are_those_of_value_iteration(slip: float, hole: int) -> None:
    rho = np.arange(9, dtype=np.float32)[:, None]
    values = ring(9, slip, hole).action_values(rho, np.array([5.0]), np.array([6.0]))
    np.testing.assert_allclose(values, exact(9, slip, {5, 6}, hole), atol=1e-4)


def test_a_goal_round_zero() -> None:
    rho = np.arange(9, dtype=np.float32)[:, None]
    values = ring(9, 0.1).action_values(rho, np.array([8.0]), np.array([0.0]))
    np.testing.assert_allclose(values, exact(9, 0.1, {8, 0}), atol=1e-4)


def test_a_hole_is_avoided_even_by_a_longer_way() -> None:
    values = ring(9, 0.3, hole=3).action_values(np.array([[2.0]], np.float32), np.array([5.0]), np.array([5.0]))
    assert values[0].argmax() == 1, "through the hole it is three steps, the other way round six"
