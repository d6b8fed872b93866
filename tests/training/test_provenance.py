"""The code that a result names: by git, or by the environment where there is only a copy."""

import importlib.metadata
import tomllib
from pathlib import Path

import pytest

from saplan.training.provenance import COMMIT, code

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _asked_again():
    code.cache_clear()
    yield
    code.cache_clear()


def test_the_environment_names_the_commit_of_a_copy(monkeypatch):
    monkeypatch.setenv(COMMIT, "0123456789ab")
    assert code()["commit"] == "0123456789ab"
    code.cache_clear()
    monkeypatch.setenv(COMMIT, "")
    assert code()["commit"] != "0123456789ab"


def test_a_checkout_that_is_not_installed_knows_its_version(monkeypatch):
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert code()["version"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
