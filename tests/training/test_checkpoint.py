"""Checkpoints and runs that an older version wrote are refused in one sentence, and left as they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from saplan.storage.manifest import OldFormatError
from saplan.training.checkpoint import MANIFEST, short_digest
from saplan.training.run_directory import RunDirectory, begin_run, read_config
from tests.reliability.tiny import tiny_config

SENTENCE = r"manifest\.json was saved by saplan 0\.1; train it again with this version$"


@pytest.fixture
def old(tmp_path: Path) -> Any:
    """A run with a checkpoint as version 0.1 wrote it."""
    run = begin_run(tmp_path / "run", tiny_config())
    text = json.dumps({"format": "saplan checkpoint 1", "updates": 2, "host": {"looked_at": 2}}).encode()
    place = run.path / "checkpoints" / f"000000002-{short_digest(text)}"
    place.mkdir(parents=True)
    (place / MANIFEST).write_bytes(text)
    yield run
    assert (place / MANIFEST).read_bytes() == text
    run.close()


def test_a_checkpoint_of_version_0_1(old: RunDirectory) -> None:
    with pytest.raises(OldFormatError, match=SENTENCE):
        old.check_newest()
    with pytest.raises(OldFormatError, match=SENTENCE):
        old.newest(None)


def test_a_configuration_with_a_setting_of_another_version(old: RunDirectory) -> None:
    data = json.loads((old.path / "config.json").read_text())
    data["settings"]["walk_steps"] = 3
    (old.path / "config.json").write_text(json.dumps(data))
    with pytest.raises(OldFormatError, match=r"another version of saplan, with a setting 'walk_steps'; train it again"):
        read_config(old.path)
