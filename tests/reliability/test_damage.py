"""Checkpoints that were damaged, and files that mean harm."""

import json
import os
import random
import resource
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from saplan.cli import main
from saplan.errors import InputError
from saplan.storage.files import read_bytes
from saplan.storage.manifest import sealed
from saplan.training.checkpoint import ARRAYS, KEPT, MANIFEST, short_digest
from saplan.training.loop import Loop
from saplan.training.run_directory import begin_run, reopen_run
from saplan.training.store import load_agent
from tests.reliability import record, times
from tests.reliability.tiny import UPDATES, tiny_config


@pytest.fixture(scope="module")
def outline() -> Any:
    return Loop([tiny_config()]).outline()


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def truncate(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def append(path: Path, chance: random.Random) -> None:
    with path.open("ab") as file:
        file.write(chance.randbytes(chance.randint(1, 100)))


def delete(path: Path, chance: random.Random) -> None:
    path.unlink()


def test_every_damage_is_noticed_and_the_checkpoint_before_is_used(trained: Path, tmp_path: Path, outline: Any) -> None:
    chance, tried, good = random.Random(0), times(500, 60), 0
    for k in range(tried):
        run_path = Path(shutil.copytree(trained, tmp_path / "run"))
        newest = sorted((run_path / "checkpoints").iterdir())[-1]
        harm = (flip, truncate, append, delete)[k % 4]
        name = chance.choice([ARRAYS, MANIFEST])
        harm(newest / name, chance)
        run = reopen_run(run_path)
        found, wrong = run.newest(outline)
        run.close()
        named = len(wrong) == 1 and newest.name in wrong[0] and name in wrong[0]
        good += found is not None and found.updates == UPDATES - 2 and named and not newest.exists()
        shutil.rmtree(run_path)
    record("damaged checkpoints noticed, the one before used", good, tried)


def test_what_is_set_aside_is_not_counted_among_those_kept(copy: Path, outline: Any) -> None:
    for path in sorted((copy / "checkpoints").iterdir())[1:]:
        (path / ARRAYS).unlink()
    run = reopen_run(copy)
    found, wrong = run.newest(outline)
    assert found is not None
    assert len(wrong) == KEPT - 1
    run.open_metrics(0)
    run.save(replace(found, updates=found.updates + 1))
    assert [int(name[:9]) for name in run.checkpoints.names()] == [found.updates + 1, found.updates]
    run.close()


def test_when_none_is_whole_nothing_is_begun_anew(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (copy / "checkpoints").iterdir():
        (path / ARRAYS).unlink()
    before = sorted(copy.rglob("*"))
    assert main(["train", "--resume", str(copy)]) == 2
    assert "no checkpoint of" in capsys.readouterr().err
    assert sorted(copy.rglob("*")) == before


def test_another_configuration_is_refused_and_nothing_touched(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = json.loads((copy / "config.json").read_text())
    config["settings"]["learning_rate"] = 0.5
    (copy / "config.json").write_text(json.dumps(config))
    before = sorted(copy.rglob("*"))
    assert main(["train", "--resume", str(copy)]) == 2
    assert "learning_rate is 0.5 here and 0.003 there" in capsys.readouterr().err
    assert sorted(copy.rglob("*")) == before


def test_age_on_disk_means_nothing(copy: Path, outline: Any) -> None:
    """A clock that went backwards leaves newer files with older dates."""
    for k, path in enumerate(sorted((copy / "checkpoints").iterdir())):
        os.utime(path, (1e9 - k * 1e6, 1e9 - k * 1e6))
    run = reopen_run(copy)
    found, _ = run.newest(outline)
    run.close()
    assert found is not None
    assert found.updates == UPDATES


class Opened:
    """Fails the test if it is ever brought to life."""

    def __reduce__(self) -> Any:
        return pytest.fail, ("a file was executed",)


def renamed_pickle(path: Path) -> None:
    import pickle

    path.write_bytes(pickle.dumps(Opened()))


def giant_header(path: Path) -> None:
    path.write_bytes(struct.pack("<Q", 2**40) + b"{" + b" " * 1000)


def long_header(path: Path) -> None:
    header = b'{"a":' + b"[" * 50_000_000
    path.write_bytes(struct.pack("<Q", len(header)) + header)


def deep_header(path: Path) -> None:
    header = b'{"a":' + b"[" * 500_000
    path.write_bytes(struct.pack("<Q", len(header)) + header)


def climbing_names(path: Path) -> None:
    header = json.dumps({"../../outside": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))


def giant_shape(path: Path) -> None:
    header = json.dumps({".x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))


def link_to_a_secret(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def link_to_a_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def sparse_giant(path: Path) -> None:
    os.truncate(path, 2**33)


HOSTILE = (
    renamed_pickle, giant_header, long_header, deep_header, climbing_names, giant_shape, link_to_a_secret,
    link_to_a_device, pipe, sparse_giant,
)  # fmt: skip
NOT_PLAIN = (link_to_a_secret, link_to_a_device, pipe)
"""A run with one of these is not touched at all."""


def vouch(manifest: Path, data: Path) -> None:
    """Writes the SHA-256 of hostile data into the manifest, as whoever made it would."""
    import hashlib

    if data.is_symlink() or not data.is_file() or data.stat().st_size > 2**30:
        return
    digest = hashlib.sha256(data.read_bytes()).hexdigest()
    content = json.loads(manifest.read_text())
    if "files" in content:
        content["files"][ARRAYS] = digest
    else:
        content = sealed(content | {"sha256": digest})
    manifest.write_text(json.dumps(content))


def rename_to_its_hash(place: Path) -> Path:
    return place.rename(place.with_name(place.name[:10] + short_digest((place / MANIFEST).read_bytes())))


@pytest.mark.parametrize("harm", HOSTILE, ids=lambda harm: harm.__name__)
def test_hostile_files(copy: Path, outline: Any, harm: Callable[[Path], None]) -> None:
    outside = sorted(copy.parent.glob("*"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    newest = sorted((copy / "checkpoints").iterdir())[-1]
    harm(newest / ARRAYS)
    vouch(newest / MANIFEST, newest / ARRAYS)
    newest = rename_to_its_hash(newest)
    if harm in NOT_PLAIN:
        with pytest.raises(InputError, match=ARRAYS):
            reopen_run(copy)
        shutil.rmtree(newest)
    else:
        run = reopen_run(copy)
        found, wrong = run.newest(outline)
        run.close()
        assert found is not None
        assert found.updates == UPDATES - 2
        assert ARRAYS in wrong[0]

    harm(copy / "agent.safetensors")
    vouch(copy / "manifest.json", copy / "agent.safetensors")
    with pytest.raises(InputError, match=r"agent\.safetensors"):
        load_agent(copy)

    for name in ("manifest.json", "config.json"):
        harm(copy / name)
    with pytest.raises(InputError):
        load_agent(copy)
    with pytest.raises(InputError):
        reopen_run(copy)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    assert grown < 400, f"{grown:.0f} MiB"
    assert sorted(copy.parent.glob("*")) == outside
    record(f"hostile files: {harm.__name__.replace('_', ' ')}", 1, 1)


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(101))
    with pytest.raises(InputError, match="larger than"):
        read_bytes(tmp_path / "a", 100)
    assert len(read_bytes(tmp_path / "a", 101)) == 101


def test_one_process_at_a_time(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = reopen_run(copy)
    assert main(["train", "--resume", str(copy)]) == 2
    assert "is in use by another process" in capsys.readouterr().err
    run.close()
    reopen_run(copy).close()


def test_a_run_is_not_written_over(copy: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    with pytest.raises(InputError, match="already holds a run"):
        begin_run(copy, tiny_config(seed=1))
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before
    begin_run(copy.parent / "new", tiny_config()).close()
