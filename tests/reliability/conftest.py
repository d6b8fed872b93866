"""Tiny runs, each trained once."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reliability.cases import USUAL, config_of
from tests.reliability.tiny import train_tiny


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that goes wrong writes into the repository."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="package")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The run of a case, trained once from beginning to end."""
    folder = tmp_path_factory.mktemp("runs")

    def train(case: str) -> Path:
        if not (folder / case).exists():
            train_tiny(folder / case, config_of(case))
        return folder / case

    return train


@pytest.fixture
def trained(whole: Callable[[str], Path]) -> Path:
    return whole(USUAL)


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    """A copy of the run that a test may damage."""
    return Path(shutil.copytree(trained, tmp_path / "copy"))
