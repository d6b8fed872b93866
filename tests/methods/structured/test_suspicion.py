"""Failures beyond the range of training raise a boundary, and successes refute it."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from saplan.algebra import Categorical, Circle, Cyclic, Dihedral, Homogeneous, Integer, Natural, Product, Real
from saplan.methods.structured.edge_detector import EdgeDetector, empty_replay
from saplan.methods.structured.evidence import gather_evidence
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


def test_only_lines_have_a_beyond() -> None:
    """On a circle and among labels a change may lead from the last value to the first."""
    space = Product.of(
        count=Natural(), place=Integer(), dial=Cyclic(3), angle=Circle(), piece=Dihedral(4),
        door=Categorical(("open", "shut")), amount=Real(), share=Real(0.1, 0.0, 1.0), far=Homogeneous(Integer()),
    )  # fmt: skip
    below, above = space.open_sides
    assert [name for name, side in zip(space.names, below, strict=True) if side] == ["place", "amount", "far"]
    assert [name for name, side in zip(space.names, above, strict=True) if side] == ["count", "place", "amount", "far"]
    dials = Product.of(dial=Cyclic(3), piece=Dihedral(4))
    outcomes = empty_replay(dials, 2, 4)
    outcomes = replace(outcomes, filled=jnp.full(2, 4), rho=jnp.full((2, 4, 2), 2.0))
    deltas = jnp.array([[1.0, 0.0], [0.0, 4.0]])
    found = gather_evidence(EdgeDetector.init(jax.random.key(0), dials, 4), dials, deltas, outcomes)
    failures = [(np.array([2.0, 6.0], np.float32), transition, 2.0) for transition in (0, 1)] * 5
    assert not np.isfinite(boundaries(np.asarray(found.met), np.asarray(deltas), failures)).any()
