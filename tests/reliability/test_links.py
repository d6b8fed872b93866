"""Links in directories that are written to: nothing outside such a directory is changed, by no command."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from saplan.cli import main
from saplan.errors import InputError
from saplan.experiments.reproduce import OWN as REPRODUCED
from saplan.storage.files import replace_file
from saplan.training.metrics import MetricsFile
from saplan.training.run_directory import OWN, begin_run, reopen_run
from tests.reliability.hostile import fingerprint
from tests.reliability.tiny import tiny_config

PRECIOUS = "precious\n" * 1000


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A directory that must stay as it is."""
    folder = tmp_path / "outside"
    (folder / "inner").mkdir(parents=True)
    for name in ("file", "inner/file"):
        (folder / name).write_text(PRECIOUS)
    before = fingerprint(folder)
    yield folder
    assert fingerprint(folder) == before


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    return said


@pytest.mark.parametrize("target", ["file", "inner", "nowhere"])
@pytest.mark.parametrize("name", [*OWN, "evaluations/64", "checkpoints/000000001-0123456789abcdef", "checkpoints/.new"])
def test_a_run_with_a_link_is_not_resumed(
    name: str, target: str, copy: Path, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copy / name
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(outside / target)
    said = refused(capsys, "train", "--resume", str(copy))
    assert Path(name).name in said or "no config.json" in said


def test_a_run_may_itself_be_reached_by_a_link(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(copy)
    reopen_run(tmp_path / "latest").close()


@pytest.mark.parametrize("name", OWN)
def test_a_run_is_not_begun_among_links(name: str, outside: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / name).symlink_to(outside / "nowhere")
    with pytest.raises(InputError):
        begin_run(tmp_path / "new", tiny_config())
    assert os.listdir(tmp_path / "new") == [name]


def test_hard_links_are_not_written_through(copy: Path, outside: Path) -> None:
    """A hard link cannot be told from a file, so files get a new content by a new file of the old name."""
    for name in ("metrics.jsonl", "agent.safetensors", "manifest.json", ".metrics.jsonl.new", ".manifest.json.new"):
        (copy / name).unlink(missing_ok=True)
        os.link(outside / "file", copy / name)
    os.link(outside / "inner" / "file", copy / "checkpoints" / ".new")
    before = fingerprint(outside)
    assert main(["train", "--resume", str(copy)]) == 0
    assert fingerprint(outside) == before


@pytest.mark.parametrize("length", [0, 9, 10**9])
def test_metrics_are_replaced_not_cut(length: int, outside: Path, tmp_path: Path) -> None:
    os.link(outside / "file", tmp_path / "metrics.jsonl")
    metrics = MetricsFile(tmp_path / "metrics.jsonl", length)
    metrics.write({"a": 1})
    metrics.close()
    kept = PRECIOUS[:length]
    assert (tmp_path / "metrics.jsonl").read_text() == kept + '{"a": 1}\n'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.jsonl", "outside"]


def test_what_is_written_aside_is_a_fresh_file(outside: Path, tmp_path: Path) -> None:
    os.link(outside / "file", tmp_path / ".a.new")
    replace_file(tmp_path / "a", b"new")
    (tmp_path / ".b.new").symlink_to(outside / "file")
    replace_file(tmp_path / "b", b"new")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == b"new"


@pytest.mark.parametrize("name", [*REPRODUCED, "runs/switches-structured-default-0.5M-0", "claims/switches-oracle"])
def test_a_reproduction_with_a_link_is_not_gone_on_with(
    name: str, outside: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    (out / name).parent.mkdir(parents=True)
    (out / name).symlink_to(outside / "inner")
    for more in (["--quick", "--games", "switches", "--methods", "oracle"], ["--draw"]):
        assert "symbolic link" in refused(capsys, "reproduce", "--out", str(out), *more)


def test_pictures_are_not_written_through_links(outside: Path, tmp_path: Path) -> None:
    for name in ("switches.png", ".switches.png.new", "strip.png", "film.gif"):
        (tmp_path / name).symlink_to(outside / "file")
    assert main(["games", "switches", "--pictures", str(tmp_path)]) == 0
    for name in ("strip.png", "film.gif"):
        assert main(["render", "switches", "--goal", "switch=1", "--out", str(tmp_path / name)]) == 0
    assert not any(path.is_symlink() for path in tmp_path.iterdir())


@pytest.mark.parametrize("name", ["labels", ".labels.new"])
def test_labels_are_not_written_through_links(name: str, outside: Path, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to(outside / "file")
    assert main(["label", "switches", "--pairs", "5", "--out", str(tmp_path / "labels")]) == 0
    assert not (tmp_path / "labels").is_symlink()
