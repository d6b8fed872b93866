"""Runs, agents, labels and fitted attributes that mean harm: each is refused in one line, and nothing else happens."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.reliability import record

ROOT = Path(__file__).parent.parent.parent
LEAST = 300
MEMORY = 1000
"""MiB that hostile files may take on top of what sound ones do."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What became of each, tried in a process of its own, whose memory can be measured."""
    folder = tmp_path_factory.mktemp("hostile")
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    quick = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": paths}
    command = [sys.executable, "-m", "tests.reliability.hostile", str(folder)]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | quick, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_hostile_files_are_refused_in_one_line(results: list[dict[str, Any]]) -> None:
    """Exit code 2, one line without control characters, and a directory beside them as it was."""
    bad = [row for row in results if row["ills"]]
    assert not bad, "\n".join(f"{row['group']}: {row['name']}: {row['ills']}: {row['said']!r}" for row in bad[:20])
    record("hostile files of all kinds: refused in one line, and nothing else is touched", len(results), len(results))


def test_there_are_enough_of_every_kind(results: list[dict[str, Any]]) -> None:
    groups = defaultdict(set)
    for row in results:
        groups[row["group"]].add(row["name"])
    assert sum(map(len, groups.values())) >= LEAST
    assert len(groups) > 20
    for words in ("exchange", "mining", "unstructured", "curriculum", "labels", "fitted", "names in a run"):
        assert any(words in group for group in groups)


def test_memory_stays_bounded(results: list[dict[str, Any]]) -> None:
    most = max(results, key=lambda row: row["grown"])
    assert most["grown"] < MEMORY, most
