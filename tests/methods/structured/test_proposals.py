"""Proposals: distributions worked out by hand."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from saplan.algebra import Cyclic, Natural, Product
from saplan.methods.structured.memory import Memory, empty_memory
from saplan.methods.structured.proposals import normalised, proposal_weights
from tests.methods.probe import SMALL

from .opinions import memory_of, opinion

SPACE = Product.of(count=Natural(), dial=Cyclic(3))
UP, DOWN, TURN = (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0)
YES = opinion(SPACE, lambda rho, delta: jnp.full(rho.shape[:-1], 5.0))
NO_TURN = opinion(SPACE, lambda rho, delta: jnp.where(delta[..., 1] == 1, -5.0, 5.0))
NO = opinion(SPACE, lambda rho, delta: jnp.full(rho.shape[:-1], -5.0))
PLAIN = replace(SMALL, threshold=0.1, uniform=1.0, doubt=0.0, joint=False)


def known(explored=(), executed=()) -> Memory:
    return memory_of(SPACE, [UP, DOWN, TURN], 5, explored, executed)


def weights(memory: Memory, detector, settings, *rho: tuple[float, float]) -> np.ndarray:
    return np.asarray(proposal_weights(memory, detector, SPACE, settings, jnp.array(rho, jnp.float32)))


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("uniform", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("detector", [YES, NO_TURN], ids=["yes", "no turn"])
def test_every_row_is_a_distribution(detector, uniform: float, joint: bool) -> None:
    settings = replace(PLAIN, uniform=uniform, doubt=0.2, joint=joint)
    memory = known(explored=[(1, 0), (2, 1), (1, 2)], executed=[(1, 0)])
    rows = weights(memory, detector, settings, (0, 0), (1, 2), (7, 1))
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-5)
    assert (rows >= 0).all()


def test_ends_outside_the_space_are_never_proposed() -> None:
    rows = weights(known(), YES, replace(PLAIN, doubt=0.5), (0, 0), (1, 0))
    np.testing.assert_allclose(rows[0], [0.5, 0, 0.5, 0, 0], atol=1e-8)
    np.testing.assert_allclose(rows[1], [1 / 3, 1 / 3, 1 / 3, 0, 0], atol=1e-8)
    assert rows[0, 1] < 1e-20


def test_what_the_detector_denies_is_filtered_out() -> None:
    (row,) = weights(known(), NO_TURN, PLAIN, (1, 0))
    np.testing.assert_allclose(row, [0.5, 0.5, 0, 0, 0], atol=1e-7)


@pytest.mark.parametrize(("threshold", "share"), [(0.49, 1.0), (0.51, 0.0)])
def test_the_filter_lies_at_the_threshold(threshold: float, share: float) -> None:
    even = opinion(SPACE, lambda rho, delta: jnp.where(delta[..., 1] == 1, 0.0, 5.0))
    (row,) = weights(known(), even, replace(PLAIN, threshold=threshold), (1, 0))
    assert row[2] / row[0] == pytest.approx(share, abs=1e-6)


def test_doubt_asks_after_what_is_denied() -> None:
    (row,) = weights(known(), NO_TURN, replace(PLAIN, doubt=0.3), (1, 0))
    np.testing.assert_allclose(row[:3], [0.45, 0.45, 0.1], rtol=1e-5)


def test_gamma_by_hand_from_single_values() -> None:
    # From (1, 0): UP ends at (2, 0), DOWN at (0, 0), TURN at (1, 1).
    explored = [(2, 0)] * 5 + [(0, 0)] * 2 + [(1, 1)] * 3
    executed = [(2, 1)] * 2 + [(0, 2)] * 1
    memory = known(explored, executed)
    # min p_expl: count 2 → 5, dial 0 → 7: 5;  count 0 → 2, dial 0 → 7: 2;  count 1 → 3, dial 1 → 3: 3.
    # min p_exec: count 2 → 2, dial 0 → 0: 0;  count 0 → 1, dial 0 → 0: 0;  count 1 → 0: 0.
    (row,) = weights(memory, YES, replace(PLAIN, uniform=0.0), (1, 0))
    np.testing.assert_allclose(row[:3], np.array([6, 3, 4]) / 13, rtol=1e-5)
    (mixed,) = weights(memory, YES, replace(PLAIN, uniform=0.5), (1, 0))
    np.testing.assert_allclose(mixed[:3], np.array([6, 3, 4]) / 26 + 1 / 6, rtol=1e-5)


def test_gamma_by_hand_from_joint_cells() -> None:
    memory = known([(2, 0)] * 5 + [(0, 0)] * 2 + [(2, 1)] * 9, [(2, 0)] * 2 + [(0, 1)] * 4)
    (row,) = weights(memory, YES, replace(PLAIN, uniform=0.0, joint=True), (1, 0))
    gamma = np.array([6 / 3, 3 / 1, 1 / 1])
    np.testing.assert_allclose(row[:3], gamma / gamma.sum(), rtol=1e-5)


def test_where_everything_is_denied_all_possible_ends_are_alike() -> None:
    rows = weights(known(), NO, PLAIN, (1, 0), (0, 0))
    np.testing.assert_allclose(rows[0, :3] / rows[0].sum(), 1 / 3, rtol=1e-4)
    np.testing.assert_allclose(rows[1] / rows[1].sum(), [0.5, 0, 0.5, 0, 0], atol=1e-6)


def test_an_empty_memory_still_gives_a_distribution() -> None:
    rows = weights(empty_memory(SPACE, 5, 2**14), YES, replace(PLAIN, doubt=0.2), (1, 0))
    assert np.isfinite(np.log(rows)).all()


def test_normalised() -> None:
    rows = normalised(jnp.array([[1.0, 3.0], [0.0, 0.0]]))
    np.testing.assert_allclose(rows, [[0.25, 0.75], [0.0, 0.0]])
