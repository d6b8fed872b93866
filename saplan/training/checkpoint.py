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
from saplan.storage.arrays import fill, from_bytes, room_for, to_arrays, to_bytes
from saplan.storage.files import cannot_write, read_bytes, sync_directory, write_synced
from saplan.storage.json_data import is_digest, is_number, is_whole, parse_json

FORMAT = "saplan checkpoint 1"
CHECKPOINTS = "checkpoints"
ARRAYS, MANIFEST = "learner.safetensors", "manifest.json"
KEPT = 3
LARGEST = 2**30
"""Bytes of arrays. Beyond this nothing is read."""
LARGEST_MANIFEST = 2**20
WORLD = "world."
"""How names of the world's arrays begin; those of the learner begin with a dot."""
LARGEST_WORLD = 2**26
"""Bytes of what a world adds to a learner's arrays."""
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
        self.directory, self.config = run / CHECKPOINTS, config

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
        manifest, path = self.manifest(name), self.directory / name
        data = read_bytes(path / ARRAYS, min(LARGEST, room_for(outline, exact=True) + LARGEST_WORLD))
        about = manifest["files"][ARRAYS]
        if len(data) != about["bytes"] or hashlib.sha256(data).hexdigest() != about["sha256"]:
            raise InputError(f"{path / ARRAYS} is damaged: its SHA-256 is not the one in {MANIFEST}")
        found = from_bytes(data, path / ARRAYS)
        world = {name.removeprefix(WORLD): found.pop(name) for name in list(found) if name.startswith(WORLD)}
        learner = fill(outline, found, path / ARRAYS, exact=True)
        return Checkpoint(manifest["updates"], learner, manifest["host"], world)

    def manifest(self, name: str) -> dict[str, Any]:
        """What a checkpoint says of itself, checked; `OtherConfigError` if it is of another configuration."""
        path = self.directory / name / MANIFEST
        text = read_bytes(path, LARGEST_MANIFEST)
        if _hash(text) != name.rpartition("-")[2]:
            raise InputError(f"{path} is damaged: its SHA-256 is not the one in the directory's name")
        manifest = parse_json(text, path)
        check_manifest(manifest, int(name.partition("-")[0]), path)
        if manifest["config"] != self.config:
            difference = first_difference(self.config, manifest["config"])
            raise OtherConfigError(f"{path.parent} belongs to a run of another configuration: {difference}")
        return manifest

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


COUNTED = ("positives", "negatives", "evaluated_at", "metrics_bytes")
"""What the host loop counts."""


def check_manifest(manifest: Any, updates: int, path: Path) -> None:
    """`InputError` unless every field of a checkpoint's manifest is what it should be; `updates` is in its name."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{path} is not a manifest of the format {FORMAT!r}")
    files, host = manifest.get("files"), manifest.get("host")
    about = files.get(ARRAYS) if isinstance(files, dict) else None
    if not isinstance(about, dict) or not isinstance(host, dict) or not isinstance(manifest.get("config"), dict):
        raise InputError(f"{path} is not a checkpoint's manifest: files, host and config must be objects")
    if not is_whole(manifest.get("updates"), updates, updates):
        raise InputError(f"{path}: updates must be {updates}, as its directory's name says")
    if not is_whole(about.get("bytes"), 0, LARGEST) or not is_digest(about.get("sha256")):
        raise InputError(f"{path}: bytes must be a whole number, and sha256 64 hexadecimal digits")
    for name in COUNTED:
        if not is_whole(host.get(name), 0, 2**62):
            raise InputError(f"{path}: {name} must be a whole number from 0 up, got {brief(host.get(name))}")
    if host["evaluated_at"] > updates:
        raise InputError(f"{path}: evaluated_at must be at most {updates}, got {host['evaluated_at']}")
    if not is_number(host.get("seconds"), 0, 2**40):
        raise InputError(f"{path}: seconds must be a time from 0 up, got {brief(host.get('seconds'))}")
    if "success" not in host or not (host["success"] is None or is_number(host["success"], 0, 1)):
        raise InputError(f"{path}: success must lie in 0..1, or be null, got {brief(host.get('success'))}")


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
    return f"{name or 'it'} is {brief(one)} here and {brief(other)} there"


def brief(value: Any) -> str:
    """Plain data in a few words."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."
