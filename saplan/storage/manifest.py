"""Manifests: format names, SHA-256 digests, and the difference between two configurations."""

import hashlib
import json
from pathlib import Path
from typing import Any

from saplan.errors import InputError
from saplan.storage.json_data import read_json, write_json

AGENT, CHECKPOINT = "saplan agent 3", "saplan checkpoint 3"
LABELS, ATTRIBUTES = "saplan labels 2", "saplan attributes 2"
"""The formats that this version writes and reads. A number is raised when older files can no longer be read."""
WRITERS = {
    "saplan agent 1": "saplan 0.1",
    "saplan agent 2": "a development version of saplan after 0.1",
    "saplan checkpoint 1": "saplan 0.1",
    "saplan checkpoint 2": "a development version of saplan after 0.1",
    "saplan labels 1": "saplan 0.1",
    "saplan attributes 1": "saplan 0.1",
}
"""The version that wrote each older format. Format 2 of agents was never in a release."""
TRAIN_AGAIN = "train it again with this version"
SEAL = "manifest_sha256"


class OldFormatError(InputError):
    """A file is intact, but an older version of saplan wrote it."""


def check_manifest_format(
    data: Any, wanted: str, path: Path, otherwise: str, remedy: str = TRAIN_AGAIN
) -> dict[str, Any]:
    """The data, if they are of the wanted format.

    `OldFormatError` with a `remedy` if the format is an older one; else `InputError` that says `otherwise`.
    """
    found = data.get("format") if isinstance(data, dict) else None
    if isinstance(data, dict) and found == wanted:
        return data
    kind, _, number = wanted.rpartition(" ")
    if found in [f"{kind} {older}" for older in range(1, int(number))]:
        writer = WRITERS.get(found, "an older version of saplan")
        raise OldFormatError(f"{path} was saved by {writer}; {remedy}")
    raise InputError(f"{path} {otherwise}")


def digest(data: bytes) -> str:
    """The SHA-256 of data in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def check_digest(data: bytes, expected: Any, path: Path, where: str) -> None:
    """`InputError` unless this is the SHA-256 of the data of a file; `where` names its source."""
    if digest(data) != expected:
        raise InputError(f"{path} is damaged: its SHA-256 differs from the one in {where}")


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest with the SHA-256 of all its other fields, which detects any flipped bit."""
    rest = {name: value for name, value in manifest.items() if name != SEAL}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**rest, SEAL: digest(text.encode())}


def write_sealed(path: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest with its seal."""
    write_json(path, sealed(manifest))


def read_sealed(path: Path, wanted: str) -> dict[str, Any]:
    """A sealed manifest of the wanted format; `InputError` for another one, or a damaged one."""
    manifest = check_manifest_format(read_json(path), wanted, path, f"is not a manifest of the format {wanted!r}")
    if sealed(manifest)[SEAL] != manifest.get(SEAL):
        raise InputError(f"{path} is damaged: {SEAL} is not the SHA-256 of its other fields")
    return manifest


def first_difference(one: Any, other: Any, name: str = "") -> str:
    """The first difference between two JSON values in words: `lanes is 512 here and 256 there`."""
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
    """A JSON value in at most 40 characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."
