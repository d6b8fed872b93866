"""What all tests share: types and shapes are checked, and programs are compiled quickly and only once."""

import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import jax
import pytest
from jaxtyping import install_import_hook

# The numeric tower: a function that takes a float takes an int too, as type checkers have it. Users pay nothing.
install_import_hook("saplan", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

PROGRAMS = Path(__file__).parent.parent / ".pytest_cache" / "programs"
COMPILER = {
    "jax_disable_most_optimizations": True,
    "jax_compilation_cache_dir": str(PROGRAMS),
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}
"""Small worlds are played in milliseconds and compiled in seconds. Variables of the environment win; from there these
options reach the processes that tests start.
"""
PROGRAMS.mkdir(mode=0o700, parents=True, exist_ok=True)
for option, value in COMPILER.items():
    if option.upper() not in os.environ:
        os.environ[option.upper()] = str(value)
        jax.config.update(option, value)
if version("jaxlib").startswith("0.10."):  # XLA ends a process that names a flag it does not know
    faster = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    os.environ["XLA_FLAGS"] = f"{faster} {os.environ.get('XLA_FLAGS', '')}".strip()

LONGEST = ("test_documents.py", "reliability", "experiments", "envs", "perception", "methods", "training")
"""Files and directories that take longest, longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with what takes longest, so that processes that share the tests end together."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: min(places.get(part, len(LONGEST)) for part in (item.path, *item.path.parents)))


@pytest.fixture(scope="module", autouse=True)
def room_for_programs() -> Iterator[None]:
    """Forgets compiled programs before there are too many of them: the next one would crash the process."""
    from saplan.training.program_cache import forget_old_programs

    yield
    forget_old_programs()


@pytest.fixture
def optimised() -> Iterator[None]:
    """Compiles with care, for the few tests that compute for longer than that takes: convolutions, large tables."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
