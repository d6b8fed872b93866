"""Compiled programs are kept in a directory that only the user can use, and only if the setting allows it."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from saplan.training import program_cache
from saplan.training.program_cache import SETTING, cache_directory

PROGRAM = """
import jax, jax.numpy as jnp
from saplan.training.program_cache import keep_programs
print(keep_programs())
print(jax.config.jax_compilation_cache_dir)
jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones(7)).block_until_ready()
"""


def run(home: Path, **environment: str) -> list[str]:
    """Output of a process that keeps programs, in a home of its own, without the variables that tests set for JAX."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    variables = {**kept, "HOME": str(home), "XDG_CACHE_HOME": "", SETTING: "", **environment}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_programs_are_kept_for_the_user_alone(tmp_path: Path) -> None:
    directory = tmp_path / ".cache" / "saplan" / "programs"
    assert run(tmp_path) == [str(directory)] * 2
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert any(directory.iterdir()), "a program was written"


@pytest.mark.parametrize("case", ["off", "open to others", "set for JAX"])
def test_programs_are_not_kept(case: str, tmp_path: Path) -> None:
    directory = tmp_path / "programs"
    if case == "off":
        assert run(tmp_path, **{SETTING: "off"}) == ["None", "None"]
    elif case == "open to others":
        directory.mkdir()
        directory.chmod(0o777)
        assert run(tmp_path, **{SETTING: str(directory)}) == ["None", "None"]
    else:
        assert run(tmp_path, JAX_COMPILATION_CACHE_DIR=str(directory)) == ["None", str(directory)]
    assert not (tmp_path / ".cache").exists()


def test_the_directory_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(SETTING, raising=False)
    assert cache_directory() == tmp_path / "saplan" / "programs"
    monkeypatch.setenv(SETTING, str(tmp_path / "mine"))
    assert cache_directory() == tmp_path / "mine"


def test_the_oldest_programs_make_room(tmp_path: Path) -> None:
    for age, name in enumerate(("new", "old", "older")):
        (tmp_path / name).write_bytes(b"0" * 100)
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    program_cache._make_room(tmp_path, 150)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_programs_are_forgotten_before_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[int] = []
    monkeypatch.setattr(jax, "clear_caches", lambda: forgotten.append(1))
    monkeypatch.setattr(program_cache, "MAPPINGS", tmp_path / "maps")
    program_cache.forget_old_programs()
    for lines, times in ((program_cache.MANY, 0), (program_cache.MANY + 1, 1)):
        (tmp_path / "maps").write_text("x\n" * lines)
        program_cache.forget_old_programs()
        assert len(forgotten) == times
