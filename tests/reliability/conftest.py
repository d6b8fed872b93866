"""One tiny run, trained once."""

import shutil
from pathlib import Path

import pytest
from model.conftest import quick_compilation

from tests.reliability.tiny import train_tiny

__all__ = ["quick_compilation"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that goes wrong writes into the repository."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="package")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "tiny"
    train_tiny(run)
    return run


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    """A copy of the run that a test may damage."""
    return Path(shutil.copytree(trained, tmp_path / "copy"))
