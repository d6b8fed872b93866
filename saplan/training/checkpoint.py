"""Checkpoints: the whole state of training, with digests that detect any damage.

A checkpoint is a directory `checkpoints/UPDATES-HASH` with two files: the learner's arrays, and a manifest with their
SHA-256, the configuration and the state of the host loop. HASH is that of the manifest, so that one flipped bit
anywhere is detected. A checkpoint is written under another name, synced, and renamed last: under its own name it is
always complete.
"""

import os
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from saplan.errors import InputError
from saplan.storage.arrays import fill, from_bytes, largest_file, to_arrays, to_bytes
from saplan.storage.files import cannot_write, read_bytes, sync_directory, write_synced
from saplan.storage.json_data import is_digest, is_number, is_whole, json_bytes, parse_json
from saplan.storage.manifest import CHECKPOINT, brief, check_digest, check_manifest_format, digest, first_difference

CHECKPOINTS = "checkpoints"
ARRAYS, MANIFEST = "learner.safetensors", "manifest.json"
KEPT = 3
LARGEST = 2**30
"""Bytes of arrays that are read."""
LARGEST_MANIFEST = 2**20
WORLD = "world."
"""Prefix of the names of the world's arrays; those of the learner begin with a dot."""
LARGEST_WORLD = 2**26
"""Bytes of the world's arrays."""
NAME = re.compile(r"(\d{9})-([0-9a-f]{16})")


class OtherConfigError(InputError):
    """A checkpoint is intact, but its configuration is not that of its run."""


@dataclass(frozen=True)
class HostState:
    """The state of the host loop."""

    positives: int
    negatives: int
    """Examples that exploration and execution have given the edge detector."""
    success: float | None
    """Share of held-back tasks that succeeded in the last evaluation."""
    evaluated_at: int
    """Updates before the last evaluation."""
    seconds: float
    metrics_bytes: int = 0
    """Length of the metrics file."""


@dataclass(frozen=True)
class Checkpoint:
    """The whole state of training after some updates."""

    updates: int
    learner: Any
    host: HostState
    world: dict[str, np.ndarray] = field(default_factory=dict)
    """Arrays that the world needs besides its states: see `Game.recall`."""


class Checkpoints:
    """The checkpoints of one run. A process that writes must hold the run's lock."""

    def __init__(self, run: Path, config: dict[str, Any]) -> None:
        """`config` is that of the run as JSON data: a checkpoint of any other is refused."""
        self.directory, self.config = run / CHECKPOINTS, config

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint; older ones stay valid until it is complete."""
        world = {WORLD + name: array for name, array in checkpoint.world.items()}
        arrays = to_bytes({**to_arrays(checkpoint.learner), **world})
        text = json_bytes({
            "format": CHECKPOINT,
            "updates": checkpoint.updates,
            "host": asdict(checkpoint.host),
            "config": self.config,
            "files": {ARRAYS: digest(arrays)},
        })  # fmt: skip
        aside = self.directory / ".new"
        place = self.directory / f"{checkpoint.updates:09d}-{short_digest(text)}"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._clear()
            aside.mkdir()
            write_synced(aside / ARRAYS, arrays)
            write_synced(aside / MANIFEST, text)
            sync_directory(aside)
            if not place.exists():  # it does if the same state was saved before
                os.rename(aside, place)
            sync_directory(self.directory)
        except OSError as error:
            raise cannot_write(place, error) from None
        self._retire()
        return place

    def names(self) -> list[str]:
        """The names of all checkpoints, the newest first."""
        if not self.directory.is_dir():
            return []
        return sorted((path.name for path in self.directory.iterdir() if NAME.fullmatch(path.name)), reverse=True)

    def load(self, name: str, outline: Any) -> Checkpoint:
        """One checkpoint, checked; `outline` is a learner with shapes in place of arrays. `InputError` if damaged."""
        manifest, path = self.manifest(name), self.directory / name / ARRAYS
        data = read_bytes(path, min(LARGEST, largest_file(outline, exact=True) + LARGEST_WORLD))
        check_digest(data, manifest["files"][ARRAYS], path, MANIFEST)
        found = from_bytes(data, path)
        world = {name.removeprefix(WORLD): found.pop(name) for name in list(found) if name.startswith(WORLD)}
        learner = fill(outline, found, path, exact=True)
        return Checkpoint(manifest["updates"], learner, HostState(**manifest["host"]), world)

    def manifest(self, name: str) -> dict[str, Any]:
        """The manifest of a checkpoint, checked; `OtherConfigError` if its configuration is not that of the run."""
        path = self.directory / name / MANIFEST
        text = read_bytes(path, LARGEST_MANIFEST)
        if short_digest(text) != name.rpartition("-")[2]:
            raise InputError(f"{path} is damaged: its SHA-256 differs from the one in the directory's name")
        manifest = check_manifest(parse_json(text, path), int(name.partition("-")[0]), path)
        if manifest["config"] != self.config:
            difference = first_difference(self.config, manifest["config"])
            raise OtherConfigError(f"{path.parent} belongs to a run of another configuration: {difference}")
        return manifest

    def set_aside(self, name: str) -> None:
        """Rename a damaged checkpoint, so that it is neither used again nor counted among those kept."""
        target = self.directory / f"damaged-{name}"
        try:
            shutil.rmtree(target, ignore_errors=True)
            os.rename(self.directory / name, target)
        except OSError as error:
            raise cannot_write(target, error) from None

    def _clear(self) -> None:
        """Remove what a process that died was writing or removing."""
        for leftover in (".new", ".old"):
            shutil.rmtree(self.directory / leftover, ignore_errors=True)

    def _retire(self) -> None:
        """Keep the newest few. Others are renamed before they are removed: a name means a complete checkpoint."""
        for name in self.names()[KEPT:]:
            try:
                os.rename(self.directory / name, self.directory / ".old")
            except OSError:
                return  # a surplus checkpoint does no harm, and the next save tries again
            self._clear()


def check_manifest(manifest: Any, updates: int, path: Path) -> dict[str, Any]:
    """A checkpoint's manifest, if every field of it is valid; `updates` is the number in its directory's name."""
    checked = check_manifest_format(manifest, CHECKPOINT, path, f"is not a manifest of the format {CHECKPOINT!r}")
    if not all(isinstance(manifest.get(name), dict) for name in ("files", "host", "config")):
        raise InputError(f"{path} is not a checkpoint's manifest: files, host and config must be objects")
    if not is_whole(manifest.get("updates"), updates, updates):
        raise InputError(f"{path}: updates must be {updates}, as in its directory's name")
    if not is_digest(manifest["files"].get(ARRAYS)):
        raise InputError(f"{path}: files must hold a SHA-256 of {ARRAYS}")
    host = manifest["host"]
    fields = {"positives": 2**62, "negatives": 2**62, "evaluated_at": updates, "metrics_bytes": 2**62}
    for name, most in fields.items():
        if not is_whole(host.get(name), 0, most):
            raise InputError(f"{path}: {name} must be an integer in 0..{most}, got {brief(host.get(name))}")
    if not is_number(host.get("seconds"), 0, 2**40):
        raise InputError(f"{path}: seconds must be a number from 0 to 2^40, got {brief(host.get('seconds'))}")
    if set(host) != set(HostState.__dataclass_fields__):
        raise InputError(f"{path}: host must hold exactly {', '.join(HostState.__dataclass_fields__)}")
    if not (host["success"] is None or is_number(host["success"], 0, 1)):
        raise InputError(f"{path}: success must lie in 0..1, or be null, got {brief(host['success'])}")
    return checked


def short_digest(text: bytes) -> str:
    """The part of a manifest's SHA-256 in its directory's name."""
    return digest(text)[:16]
