"""The disk is full, or the directory cannot be written to."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from saplan.cli import main
from saplan.errors import InputError
from saplan.training.metrics import MetricsFile
from saplan.training.train import resume
from tests.reliability.tiny import OPERATIONS, STEPS, train_tiny


class Disk:
    """Takes so many more file operations; then it is full, for one of them or for good."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left: float = float("inf")
        self.for_good = False
        self.refused = 0
        for name in OPERATIONS:
            patch.setattr(os, name, self._limited(name))

    def _limited(self, name: str) -> Any:
        usual = getattr(os, name)

        def operation(*arguments: Any, **words: Any) -> Any:
            self.left -= 1
            if self.left < 0 and (self.for_good or self.left >= -1):
                self.refused += 1
                if name == "write" and len(arguments[1]) > 1:  # a full disk takes the beginning
                    usual(arguments[0], arguments[1][: len(arguments[1]) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return usual(*arguments, **words)

        return operation


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_training_goes_on_while_the_disk_is_full(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = []

    def show(progress: Any) -> None:
        steps.append(progress.steps)
        disk.for_good = True
        disk.left = 0 if 300 < progress.steps < 700 else float("inf")

    train_tiny(tmp_path / "run", progress=show)
    assert "No space left on device; training continues; saved at" in capsys.readouterr().err
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["steps"] for row in rows] == steps, "no row is lost"


def test_when_the_end_cannot_be_saved_the_run_can_be_gone_on_with(tmp_path: Path, disk: Disk) -> None:
    def show(progress: Any) -> None:
        disk.for_good = True
        disk.left = 0 if progress.steps > STEPS - 200 else float("inf")

    with pytest.raises(InputError, match=r"No space left on device; saved at 768 steps \(`saplan train --resume"):
        train_tiny(tmp_path / "run", progress=show)
    disk.left = float("inf")
    resume(tmp_path / "run")
    assert (tmp_path / "run" / "manifest.json").exists()


def test_metrics_wait_for_room(tmp_path: Path, disk: Disk) -> None:
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    metrics.write({"a": 1})
    disk.left, disk.for_good = 0, True
    metrics.write({"a": 2})
    with pytest.raises(InputError, match="No space left"):
        metrics.sync()
    disk.left = float("inf")
    metrics.write({"a": 3})
    assert metrics.sync() == len((tmp_path / "metrics.jsonl").read_bytes())
    metrics.close()
    assert [json.loads(line)["a"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()] == [1, 2, 3]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a directory that nobody can write to")
def test_a_directory_that_cannot_be_written_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "switches", "--out", "/proc/run"]) == 2
    assert capsys.readouterr().err.startswith("saplan: cannot write /proc/run: ")


def test_a_file_where_a_directory_should_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["train", "switches", "--out", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
