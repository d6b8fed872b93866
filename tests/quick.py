"""Small worlds are played in milliseconds and compiled in seconds: here the compiler need not do its best."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(scope="package", autouse=True)
def quick_compilation() -> Iterator[None]:
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
