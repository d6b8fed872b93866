"""Statistics over seeds and games with intervals, as Agarwal et al. (2021, arXiv:2108.13264) recommend."""

import json
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.stats
from jaxtyping import Bool, Float, Int

Successes = Bool[np.ndarray, "runs tasks"]
"""Whether each run solved each of the same tasks."""
Statistic = Callable[[Float[np.ndarray, "*many runs strata"]], Any]
"""One number for each of many tables of scores, one column per game, one row per seed."""


def interquartile_mean(scores: Float[np.ndarray, "*many runs strata"]) -> Any:
    """The mean of the middle half of all runs of all strata; a quarter, rounded down, is cut at either end."""
    flat = scores.reshape(*scores.shape[:-2], -1)
    return scipy.stats.trim_mean(flat, 0.25, axis=-1)


def bootstrap_interval(
    strata: Sequence[Bool[np.ndarray, "runs _"]],
    statistic: Statistic,
    confidence: float = 0.95,
    repetitions: int = 10_000,
    seed: int = 0,
) -> tuple[float, float]:
    """The stratified percentile bootstrap over runs and tasks: in every stratum both are resampled with replacement.

    All runs of a stratum have the same tasks, so a resampled task counts for all of them.
    """
    random = np.random.default_rng(seed)
    drawn = [_resample(random, [successes], repetitions)[0] for successes in strata]
    return _percentiles(statistic(np.stack(drawn, axis=-1)), confidence)


def difference_interval(
    ours: Successes,
    theirs: Bool[np.ndarray, "others tasks"],
    confidence: float = 0.95,
    repetitions: int = 10_000,
    seed: int = 0,
) -> tuple[float, float]:
    """The bootstrap interval of the difference of two means on the same tasks: both share the resampled tasks."""
    drawn = _resample(np.random.default_rng(seed), [ours, theirs], repetitions)
    return _percentiles(drawn[0].mean(axis=1) - drawn[1].mean(axis=1), confidence)


def _resample(
    random: np.random.Generator, each: Sequence[Bool[np.ndarray, "_ tasks"]], repetitions: int
) -> list[Float[np.ndarray, "repetitions _"]]:
    """Scores of resampled runs on resampled tasks, the same tasks for all."""
    tasks = each[0].shape[1]
    weights, random.bit_generator.state = _weights(json.dumps(random.bit_generator.state), tasks, repetitions)
    found = []
    for successes in each:
        scores = (weights.astype(np.float32) @ successes.T.astype(np.float32)).astype(np.float64) / tasks
        found.append(np.take_along_axis(scores, random.integers(len(successes), size=scores.shape), axis=1))
    return found


@lru_cache(maxsize=3)
def _weights(state: str, tasks: int, repetitions: int) -> tuple[Int[np.ndarray, "repetitions tasks"], Any]:
    """How often each task is drawn in each repetition, and the generator's state afterwards.

    The last few are kept: the intervals of a report begin with the same draws, which take most of their time. Sums
    of at most `tasks` < 2^24 are exact in float32.
    """
    random = np.random.default_rng()
    random.bit_generator.state = json.loads(state)
    weights = random.multinomial(tasks, np.full(tasks, 1 / tasks), size=repetitions).astype(np.int32)
    return weights, random.bit_generator.state


def _percentiles(values: Float[np.ndarray, "repetitions"], confidence: float) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def encode_successes(successes: Bool[np.ndarray, "tasks"]) -> str:
    """The successful tasks as hexadecimal digits, four tasks per digit."""
    return np.packbits(successes).tobytes().hex()


def decode_successes(text: str, tasks: int) -> Bool[np.ndarray, "tasks"]:
    """The inverse of `encode_successes`."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8), count=tasks).astype(bool)


def steps_to(steps: Float[np.ndarray, "points"], success: Float[np.ndarray, "points"], wanted: float) -> float | None:
    """The steps at which a learning curve first reaches a success, interpolated in the logarithm of steps."""
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
