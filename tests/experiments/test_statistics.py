"""Wilson's interval against published values."""

import pytest

from saplan.experiments.summary import wilson


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
