"""Every annotation of a shape or a type in `saplan` is checked whenever a test calls it; users pay nothing for that."""

from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from jaxtyping import install_import_hook

# The numeric tower: whoever asks for a float also takes an int, as type checkers do.
install_import_hook("saplan", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

MAPS = Path("/proc/self/maps")
MANY = 30_000
"""Of the 65,530 pieces of memory that Linux lets a process map; a compiled program takes several."""


@pytest.fixture(scope="module", autouse=True)
def room_for_programs() -> Iterator[None]:
    """Forgets compiled programs before there are too many of them: the next one would crash the process."""
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MANY:
        jax.clear_caches()
