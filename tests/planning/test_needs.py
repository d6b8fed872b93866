"""Needs read off scores: thresholds, sets of values, and how far simple conditions agree with the scores."""

import numpy as np

from saplan.algebra import Categorical, Cyclic, Natural, Product, Real
from saplan.planning.needs import Needs, read_needs
from tests.planning.known_worlds import switches

SPACE = Product.of(wood=Natural(), axe=Natural(), dial=Cyclic(4), place=Categorical(("a", "b", "c")), heat=Real(1.0))


def rules(rho: np.ndarray) -> np.ndarray:
    """Five changes: a tool, a dial, a place, a temperature from to, and none."""
    return np.stack(
        [
            (rho[:, 1] >= 2) & (rho[:, 0] <= 3),
            np.isin(rho[:, 2], (1, 3)),
            rho[:, 3] == 2,
            (rho[:, 4] > 1.5) & (rho[:, 4] < 7.25),
            np.ones(len(rho), bool),
        ],
        axis=1,
    )


def references(count: int = 80) -> np.ndarray:
    random = np.random.default_rng(1)
    whole = [random.integers(0, 7, count), random.integers(0, 5, count), random.integers(0, 4, count)]
    return np.column_stack([*whole, random.integers(0, 3, count), random.uniform(0, 10, count)]).astype(float)


def test_simple_rules_are_read_exactly() -> None:
    needs = read_needs(SPACE, rules, references())
    assert (needs.low[0, 1], needs.high[0, 0]) == (2, 3)
    assert needs.allowed == {(1, 2): frozenset({1, 3}), (2, 3): frozenset({2})}
    assert 1.3 < needs.low[3, 4] <= 1.51
    assert 7.24 <= needs.high[3, 4] < 7.5
    assert not np.isfinite(needs.low[4]).any()
    assert needs.agreement is not None
    np.testing.assert_allclose(needs.agreement[[0, 1, 2, 4]], 1.0)
    assert 0.98 < needs.agreement[3] < 1, "a threshold on a quantity is known to within a probe"
    assert needs.describe(SPACE, 0) == "wood<=3, axe>=2"
    assert needs.describe(SPACE, 2) == "place in {c}"


def test_either_of_two_tools_is_no_threshold() -> None:
    """Needs are necessary conditions: where another tool will do, neither is needed."""
    needs = read_needs(SPACE, lambda rho: ((rho[:, 0] >= 1) | (rho[:, 1] >= 1))[:, None], references())
    assert not np.isfinite(needs.low).any()
    assert needs.agreement is not None
    assert 0.7 < needs.agreement[0] < 1


def test_probabilities_are_compared_with_a_level() -> None:
    soft = lambda rho: 0.9 * rules(rho) + 0.05  # noqa: E731
    needs = read_needs(SPACE, soft, references())
    assert needs.low[0, 1] == 2
    assert read_needs(SPACE, soft, references(), least=0.97).allowed == {}


def test_rare_contradictions_can_be_overruled() -> None:
    """A scorer that errs on one line in forty hides the threshold, unless that share is called noise."""
    odd = references()[0, 4]
    noisy = lambda rho: rules(rho) | (np.abs(rho[:, 4] - odd) < 1e-9)[:, None]  # noqa: E731
    assert not np.isfinite(read_needs(SPACE, noisy, references()).low[0, 1])
    assert read_needs(SPACE, noisy, references(), noise=0.05).low[0, 1] == 2


def test_needs_hold_where_the_rules_do() -> None:
    points = references(500)
    needs = read_needs(SPACE, rules, references())
    assert np.mean(needs.hold(points) == rules(points)) > 0.98
    assert Needs.none(5, 5).hold(points).all()


def test_switches_need_their_kind() -> None:
    needs = switches((3, 3, 3), (1, 1, 1), 0).needs
    assert needs is not None
    assert [needs.allowed.get((kind, 6)) for kind in range(4)] == [{0}, {1}, {2}, None]
