"""Figures over seeds and games with their uncertainty, as Agarwal et al. (2021, arXiv:2108.13264) recommend."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats
from jaxtyping import Float

Scores = Float[np.ndarray, "runs strata"]
"""One column per game (or whatever the runs are to be told apart by), one row per seed."""
Statistic = Callable[[Float[np.ndarray, "*many runs strata"]], Any]
"""One number for each of many tables of scores."""


def mean(scores: Float[np.ndarray, "*many runs strata"]) -> Any:
    """The mean over all runs of all strata."""
    return np.mean(scores, axis=(-2, -1))


def interquartile_mean(scores: Float[np.ndarray, "*many runs strata"]) -> Any:
    """The mean of the middle half of all runs of all strata together; a quarter, rounded down, is cut at either end."""
    flat = scores.reshape(*scores.shape[:-2], -1)
    return scipy.stats.trim_mean(flat, 0.25, axis=-1)


def bootstrap_interval(
    scores: Scores, statistic: Statistic, confidence: float = 0.95, repetitions: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """The stratified percentile bootstrap: runs are drawn anew, with replacement, in every stratum by itself."""
    random = np.random.default_rng(seed)
    runs, strata = scores.shape
    drawn = random.integers(runs, size=(repetitions, runs, strata))
    values = statistic(np.take_along_axis(np.broadcast_to(scores, drawn.shape), drawn, axis=1))
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def steps_to(steps: Float[np.ndarray, "looks"], success: Float[np.ndarray, "looks"], wanted: float) -> float | None:
    """The steps at which a learning curve first reaches a success, between two looks along the logarithm of steps."""
    above = np.flatnonzero(success >= wanted)
    if not len(above):
        return None
    k = int(above[0])
    if k == 0:
        return float(steps[0])
    share = (wanted - success[k - 1]) / (success[k] - success[k - 1])
    return float(np.exp(np.log(steps[k - 1]) + share * (np.log(steps[k]) - np.log(steps[k - 1]))))


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a proportion (Wilson, 1927)."""
    z, share = 1.959964, successes / trials
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return max(0.0, middle - half), min(1.0, middle + half)
