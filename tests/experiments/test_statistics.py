"""Figures with their uncertainty, against published values and formulas."""

import itertools

import numpy as np
import pytest

from saplan.experiments.statistics import bootstrap_interval, interquartile_mean, mean, steps_to, wilson


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (8, 10, 0.4902, 0.9433),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson(successes: int, trials: int, low: float, high: float) -> None:
    """The last three are those of Newcombe (1998), table I, method 3."""
    assert wilson(successes, trials) == (pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5))


def test_the_interval_lies_within_zero_and_one_and_around_the_share() -> None:
    for trials in (1, 2, 7, 1000):
        for successes in range(0, trials + 1, max(1, trials // 7)):
            low, high = wilson(successes, trials)
            assert 0 <= low <= successes / trials + 1e-12
            assert successes / trials - 1e-12 <= high <= 1


ROWS = np.array([[0.1, 0.9], [0.2, 0.8], [0.4, 0.6], [0.7, 0.5], [1.0, 0.0]])
"""Five seeds of two games."""


def test_interquartile_mean_by_hand() -> None:
    """Sorted: 0 .1 .2 .4 .5 .6 .7 .8 .9 1; of ten, int(2.5) = 2 are cut at either end, as in rliable (trim_mean)."""
    assert interquartile_mean(ROWS) == pytest.approx((0.2 + 0.4 + 0.5 + 0.6 + 0.7 + 0.8) / 6)
    assert interquartile_mean(ROWS[:, :1]) == pytest.approx((0.2 + 0.4 + 0.7) / 3)
    assert interquartile_mean(ROWS[:3, :1]) == pytest.approx((0.1 + 0.2 + 0.4) / 3), "of three none is cut"
    assert mean(ROWS) == pytest.approx(0.52)


def test_the_bootstrap_is_that_of_all_draws() -> None:
    """Of three runs there are but 27 draws: the interval is the quantiles of their means."""
    scores = np.array([[0.0], [0.3], [1.0]])
    draws = np.array([np.mean([scores[k, 0] for k in draw]) for draw in itertools.product(range(3), repeat=3)])
    # 1 of 27 is 0.037: the extremes themselves lie outside of 2.5 % at either end only by 0.012.
    wanted = tuple(np.quantile(np.repeat(draws, 1000), [0.025, 0.975]))
    assert bootstrap_interval(scores, mean, repetitions=50_000) == pytest.approx(wanted, abs=1e-9)


def test_strata_are_drawn_by_themselves() -> None:
    """Runs of a game that are all alike leave no doubt about it, whatever the other game does."""
    alike = np.stack([np.full(5, 0.25), np.full(5, 0.75)], axis=1)
    assert bootstrap_interval(alike, mean) == (0.5, 0.5)
    low, high = bootstrap_interval(ROWS, mean, repetitions=50_000)
    spread = np.sqrt(np.sum(np.var(ROWS, axis=0) / 5)) / 2
    assert (high - low) / 2 == pytest.approx(1.96 * spread, rel=0.05), "the normal law, for sums of independent strata"
    assert low < mean(ROWS) < high


def test_more_confidence_is_a_wider_interval() -> None:
    narrow, wide = (bootstrap_interval(ROWS, interquartile_mean, confidence) for confidence in (0.5, 0.95))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_steps_to_a_success() -> None:
    steps, success = np.array([1e6, 2e6, 4e6, 8e6]), np.array([0.2, 0.4, 0.8, 0.7])
    assert steps_to(steps, success, 0.2) == 1e6
    assert steps_to(steps, success, 0.1) == 1e6
    assert steps_to(steps, success, 0.6) == pytest.approx(2e6 * 2**0.5)
    assert steps_to(steps, success, 0.8) == pytest.approx(4e6)
    assert steps_to(steps, success, 0.81) is None
