"""The keys of an execution: the same, one by one, as in the array that they come from."""

from typing import Any

import jax
import numpy as np

from saplan.interpreter.program import key_of, without_compiling
from saplan.methods.executor import one_by_one, step_keys


def words(keys: Any) -> np.ndarray:
    """The two words of every key."""
    return np.asarray(jax.random.key_data(keys))


def test_keys_are_taken_apart_without_a_change() -> None:
    keys = step_keys(jax.random.key(3), 5)
    pairs: list[Any] = list(one_by_one(keys))
    np.testing.assert_array_equal([[words(key) for key in pair] for pair in pairs], words(keys))
    np.testing.assert_array_equal(jax.random.uniform(pairs[4][1], (3,)), jax.random.uniform(keys[4, 1], (3,)))


def test_interpreted_keys_are_the_same() -> None:
    compiled = words(step_keys(jax.random.key(3), 5))
    with without_compiling():
        pairs: list[Any] = list(one_by_one(step_keys(key_of(3), 5)))
    np.testing.assert_array_equal([[[key["high"], key["low"]] for key in pair] for pair in pairs], compiled)
