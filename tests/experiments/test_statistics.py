"""Figures with their uncertainty, against published values and formulas."""

import itertools
from typing import Any

import numpy as np
import pytest

from saplan.experiments.statistics import (
    bootstrap_interval,
    decode_successes,
    difference_interval,
    encode_successes,
    interquartile_mean,
    steps_to,
    wilson,
)


def mean(scores: np.ndarray) -> Any:
    """Over all runs of all strata."""
    return np.mean(scores, axis=(-2, -1))


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
    assert wilson(successes, trials) == pytest.approx((low, high), abs=6e-5)


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


def test_the_bootstrap_draws_runs() -> None:
    """Runs that solve all tasks or none: redrawn tasks change nothing, and of three runs there are but 27 draws."""
    successes = np.repeat(np.array([[False], [True], [True]]), 40, axis=1)
    draws = np.array([np.mean(draw) for draw in itertools.product([0.0, 1.0, 1.0], repeat=3)])
    wanted = tuple(np.quantile(np.repeat(draws, 1000), [0.025, 0.975]))
    assert bootstrap_interval([successes], mean, repetitions=50_000) == pytest.approx(wanted, abs=1e-9)


def test_the_bootstrap_draws_tasks() -> None:
    """Runs that agree on every task leave the doubt of the tasks alone: that of a binomial proportion."""
    successes = np.repeat((np.arange(400) < 300)[None], 5, axis=0)
    low, high = bootstrap_interval([successes], mean)
    assert (high - low) / 2 == pytest.approx(1.96 * np.sqrt(0.75 * 0.25 / 400), rel=0.05)


def test_strata_are_drawn_by_themselves() -> None:
    random = np.random.default_rng(0)
    one, other = (random.random((5, 300)) < share for share in (0.9, 0.4))
    certain = np.ones((5, 300), bool)
    assert bootstrap_interval([certain, certain], mean) == (1.0, 1.0)
    both, alone = (bootstrap_interval(strata, mean) for strata in ([one, other], [other]))
    assert both[0] < (one.mean() + other.mean()) / 2 < both[1]
    assert both[1] - both[0] < alone[1] - alone[0], "two games know more together than the worse one by itself"


def test_more_confidence_is_a_wider_interval() -> None:
    successes = np.random.default_rng(0).random((5, 100)) < 0.7
    narrow, wide = (bootstrap_interval([successes], interquartile_mean, c) for c in (0.5, 0.95))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_a_difference_on_the_same_tasks_is_known_better_than_each_alone() -> None:
    random = np.random.default_rng(0)
    hard = random.random(500) < 0.3
    ours, theirs = np.repeat(~hard[None], 3, axis=0), np.repeat(~hard[None], 3, axis=0)
    assert difference_interval(ours, theirs) == (0.0, 0.0)
    theirs = theirs & (random.random((3, 500)) < 0.9)
    low, high = difference_interval(ours, theirs)
    assert 0 < low < ours.mean() - theirs.mean() < high


@pytest.mark.parametrize("tasks", [1, 7, 8, 1000])
def test_which_tasks_succeeded_is_written_and_read(tasks: int) -> None:
    successes = np.random.default_rng(tasks).random(tasks) < 0.5
    np.testing.assert_array_equal(decode_successes(encode_successes(successes), tasks), successes)


def test_steps_to_a_success() -> None:
    steps, success = np.array([1e6, 2e6, 4e6, 8e6]), np.array([0.2, 0.4, 0.8, 0.7])
    assert steps_to(steps, success, 0.2) == 1e6
    assert steps_to(steps, success, 0.1) == 1e6
    assert steps_to(steps, success, 0.6) == pytest.approx(2e6 * 2**0.5)
    assert steps_to(steps, success, 0.8) == pytest.approx(4e6)
    assert steps_to(steps, success, 0.81) is None
