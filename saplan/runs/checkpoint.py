"""Checkpoints: all that training needs to go on as if it had never stopped, and the proof that nothing is damaged.

A checkpoint is a directory `checkpoints/UPDATES-HASH` with two files: the learner's arrays, and a manifest with their
SHA-256, the configuration and where the host loop stood. HASH is that of the manifest itself, so that one flipped bit
anywhere is noticed. It is written aside, synced, and gets its name at the end: under that name it is always whole.
"""

import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from saplan.errors import InputError
from saplan.runs.arrays import fill, from_bytes, to_arrays, to_bytes
from saplan.runs.files import cannot_write, read_bytes, sync_directory, write_synced

FORMAT = "saplan checkpoint 1"
ARRAYS, MANIFEST = "learner.safetensors", "manifest.json"
KEPT = 3
LARGEST = 2**30
"""Bytes of arrays. Beyond this nothing is read."""
LARGEST_MANIFEST = 2**20
WORLD = "world."
"""How names of the world's arrays begin; those of the learner begin with a dot."""
NAME = re.compile(r"(\d{9})-([0-9a-f]{16})")


class OtherConfigError(InputError):
    """A checkpoint is whole, but of another configuration than its run's."""


@dataclass(frozen=True)
class Checkpoint:
    """Where training stood."""

    updates: int
    learner: Any
    host: dict[str, Any]
    """What the host loop knows: counts, looks, the length of the metrics."""
    world: dict[str, np.ndarray] = field(default_factory=dict)
    """What the world needs besides its states: see `Game.recall`."""


class Checkpoints:
    """The checkpoints of one run. Whoever writes must hold the run's lock."""

    def __init__(self, run: Path, config: dict[str, Any]) -> None:
        """`config` is that of the run, as plain data: a checkpoint of any other is refused."""
        self.directory, self.config = run / "checkpoints", config

    def save(self, checkpoint: Checkpoint) -> Path:
        """Writes a checkpoint; at every moment before it is complete, those before it are what counts."""
        world = {WORLD + name: array for name, array in checkpoint.world.items()}
        arrays = to_bytes({**to_arrays(checkpoint.learner), **world})
        manifest = {
            "format": FORMAT,
            "updates": checkpoint.updates,
            "host": checkpoint.host,
            "config": self.config,
            "files": {ARRAYS: {"bytes": len(arrays), "sha256": hashlib.sha256(arrays).hexdigest()}},
        }
        text = (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()
        aside = self.directory / ".new"
        place = self.directory / f"{checkpoint.updates:09d}-{_hash(text)}"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._clear()
            aside.mkdir()
            write_synced(aside / ARRAYS, arrays)
            write_synced(aside / MANIFEST, text)
            sync_directory(aside)
            if not place.exists():  # the very same, saved before
                os.rename(aside, place)
            sync_directory(self.directory)
        except OSError as error:
            raise cannot_write(place, error) from None
        self._retire()
        return place

    def names(self) -> list[str]:
        """Those there are, the newest first."""
        if not self.directory.is_dir():
            return []
        return sorted((path.name for path in self.directory.iterdir() if NAME.fullmatch(path.name)), reverse=True)

    def load(self, name: str, outline: Any) -> Checkpoint:
        """One checkpoint, checked; `outline` is a learner with shapes in place of arrays. `InputError` if damaged."""
        path = self.directory / name
        if path.is_symlink():
            raise InputError(f"{path} is a symbolic link")
        text = read_bytes(path / MANIFEST, LARGEST_MANIFEST)
        if _hash(text) != name.rpartition("-")[2]:
            raise InputError(f"{path / MANIFEST} is damaged: its SHA-256 is not the one in the directory's name")
        try:
            manifest = json.loads(text)
            updates, host, config = int(manifest["updates"]), manifest["host"], manifest["config"]
            about, format_ = manifest["files"][ARRAYS], manifest["format"]
            size, digest = int(about["bytes"]), str(about["sha256"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"{path / MANIFEST} is not a checkpoint's manifest") from None
        if format_ != FORMAT or not isinstance(host, dict) or updates != int(name.partition("-")[0]):
            raise InputError(f"{path / MANIFEST} is not a manifest of the format {FORMAT!r}")
        if config != self.config:
            difference = first_difference(self.config, config)
            raise OtherConfigError(f"{path} belongs to a run of another configuration: {difference}")
        data = read_bytes(path / ARRAYS, LARGEST)
        if len(data) != size or hashlib.sha256(data).hexdigest() != digest:
            raise InputError(f"{path / ARRAYS} is damaged: its SHA-256 is not the one in {MANIFEST}")
        found = from_bytes(data, path / ARRAYS)
        world = {name.removeprefix(WORLD): found.pop(name) for name in list(found) if name.startswith(WORLD)}
        return Checkpoint(updates, fill(outline, found, path / ARRAYS, exact=True), host, world)

    def set_aside(self, name: str) -> None:
        """Renames a damaged checkpoint, so that it is neither used again nor counted among those kept."""
        target = self.directory / f"damaged-{name}"
        try:
            shutil.rmtree(target, ignore_errors=True)
            os.rename(self.directory / name, target)
        except OSError as error:
            raise cannot_write(target, error) from None

    def _clear(self) -> None:
        """Removes what was being written or removed when a process died."""
        for leftover in (".new", ".old"):
            shutil.rmtree(self.directory / leftover, ignore_errors=True)

    def _retire(self) -> None:
        """Keeps the newest few. What is to go loses its name first: half a checkpoint must not bear one."""
        for name in self.names()[KEPT:]:
            try:
                os.rename(self.directory / name, self.directory / ".old")
            except OSError:
                return  # one too many does no harm, and the next time may have better luck
            self._clear()


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]


def first_difference(one: Any, other: Any, name: str = "") -> str:
    """Where two plain data differ, in words: `lanes is 512 here and 256 there`."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(k for k in other if k not in one)]:
            if one.get(key) != other.get(key):
                return first_difference(one.get(key), other.get(key), str(key))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for a, b in zip(one, other, strict=True):
            if a != b:
                return first_difference(a, b, name)
    return f"{name or 'it'} is {_brief(one)} here and {_brief(other)} there"


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."
