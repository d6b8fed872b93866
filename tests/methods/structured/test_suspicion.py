"""Failures beyond the range of training raise a boundary, and successes refute it."""

import numpy as np

from saplan.methods.structured.suspicion import ENOUGH, boundaries, refuted

MET = np.array([[0.0, 0.0], [3.0, 3.0]], np.float32)
DELTAS = np.array([[-1.0, 1.0], [0.0, 0.0]], np.float32)


def fail(rho: tuple[float, float], times: int) -> list[tuple[np.ndarray, int, float]]:
    return [(np.array(rho, np.float32), 0, 2.0)] * times


def test_a_boundary_needs_several_failures_beyond_the_range() -> None:
    assert not np.isfinite(boundaries(MET, DELTAS, fail((8, 5), ENOUGH - 1))).any()
    bounds = boundaries(MET, DELTAS, fail((8, 5), ENOUGH))
    assert bounds[1, 0, 1] == 5.0, "blamed on the coordinate that the change moves out"
    assert np.isfinite(bounds).sum() == 1


def test_failures_inside_the_range_say_nothing_about_other_places() -> None:
    assert not np.isfinite(boundaries(MET, DELTAS, fail((2, 1), 10))).any()
    nothing = np.array([[1.0, 1.0], [-1.0, -1.0]], np.float32)
    assert not np.isfinite(boundaries(nothing, DELTAS, fail((8, 5), 10))).any(), "without evidence there is no range"


def test_a_success_as_far_out_refutes_them() -> None:
    failures = fail((8, 5), ENOUGH)
    assert refuted(MET, DELTAS, failures, np.array([8.0, 5.0]), 0) == []
    assert len(refuted(MET, DELTAS, failures, np.array([8.0, 4.0]), 0)) == ENOUGH
    assert len(refuted(MET, DELTAS, failures, np.array([8.0, 5.0]), 1)) == ENOUGH
