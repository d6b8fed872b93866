"""Agents on disk: arrays in one safetensors file, and a manifest with its SHA-256. Loading executes nothing."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from saplan.errors import InputError, unknown_name
from saplan.games import GAMES, Game
from saplan.methods.oracle import Oracle
from saplan.methods.registry import METHODS, AnyAgent, find_method
from saplan.storage.arrays import fill, from_bytes, outline_of, room_for, to_arrays, to_bytes
from saplan.storage.files import make_directory, read_bytes, replace_file
from saplan.storage.json_data import is_whole
from saplan.training.config import RunConfig, config_from_json, read_json, write_attributes, write_json
from saplan.training.shipped import MANIFEST, ORACLE, STRUCTURED, shipped, shipped_methods

__all__ = [
    "ARRAYS", "MANIFEST", "ORACLE", "find_agent", "load", "load_agent", "open_agent", "save_agent", "shipped",
    "shipped_methods", "untrained_agent",
]  # fmt: skip

ARRAYS = "agent.safetensors"
FORMAT, UNSEALED = "saplan agent 2", "saplan agent 1"
"""The present format, and the one before it, whose manifests hold no hash of themselves."""
OLD_MEMORY = ".memory.total"
"""An array that agents had before means and spreads were kept apart from rounding."""
SEAL = "manifest_sha256"
LARGEST = 512 * 2**20
"""Files beyond this size are refused unread."""


def untrained_agent(config: RunConfig) -> AnyAgent:
    """An agent of the right shape, to be filled."""
    return find_method(config.method).untrained(config.game, config.settings)


def save_agent(directory: Path, agent: AnyAgent, config: RunConfig, half: bool = False, about: Any = None) -> None:
    """Writes an agent into a directory; `half` stores the networks in 16 bits, for sharing."""
    arrays = to_arrays(agent)
    if half:
        small = {name for name, array in arrays.items() if array.dtype == np.float32}
        small = {name for name in small if name.startswith((".policy", ".detector"))}
        arrays.update({name: arrays[name].astype(np.float16) for name in small})
    data = to_bytes(arrays)
    make_directory(directory)
    replace_file(directory / ARRAYS, data)
    write_attributes(directory, config)
    manifest = {
        "format": FORMAT,
        "sha256": hashlib.sha256(data).hexdigest(),
        "config": config.to_json(),
        "about": about,
    }
    write_json(directory / MANIFEST, sealed(manifest))


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest with the SHA-256 of all its other fields, by which one flipped bit is noticed."""
    rest = {name: value for name, value in manifest.items() if name != SEAL}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**rest, SEAL: hashlib.sha256(text.encode()).hexdigest()}


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of an agent, checked; `InputError` if there is none, or if it is damaged."""
    path = directory / MANIFEST
    if not path.is_file():
        raise InputError(f"{directory} holds no trained agent (no {MANIFEST} in it)")
    manifest = read_json(path)
    if not isinstance(manifest, dict) or manifest.get("format") not in (FORMAT, UNSEALED):
        raise InputError(f"{path} is not a manifest of the format {FORMAT!r}")
    if manifest["format"] == FORMAT and sealed(manifest)[SEAL] != manifest.get(SEAL):
        raise InputError(f"{path} is damaged: {SEAL} is not the SHA-256 of its other fields")
    about = manifest.get("about")
    if not (about is None or isinstance(about, dict)):
        raise InputError(f"{path}: about must be an object")
    about = about or {}
    if not is_whole(about.get("steps_trained", 0), 0, 2**62):
        raise InputError(f"{path}: steps_trained must be a whole number from 0 up")
    if not all(isinstance(about.get(name, ""), str) for name in ("command", "hardware")):
        raise InputError(f"{path}: command and hardware must be texts")
    return manifest


def load_agent(directory: Path, world: Game[Any] | None = None) -> tuple[AnyAgent, RunConfig]:
    """The agent of a directory, checked against its manifest; `InputError` if anything is amiss.

    A `world` that is not one of our games has to be given.
    """
    manifest, path = read_manifest(directory), directory / ARRAYS
    config = config_from_json(manifest.get("config"), directory / MANIFEST, world)
    outline = outline_of(lambda: untrained_agent(config), LARGEST, f"the agent that {directory / MANIFEST} describes")
    data = read_bytes(path, min(LARGEST, room_for(outline)))
    if hashlib.sha256(data).hexdigest() != manifest.get("sha256"):
        raise InputError(f"{path} is damaged: its SHA-256 is not the one in {MANIFEST}")
    arrays = from_bytes(data, path)
    if OLD_MEMORY in arrays:
        raise InputError(f"{path} was saved by saplan 0.1, whose memory had another form: train the agent again")
    return fill(outline, arrays, path), config


def find_agent(run: str, method: str | None = None) -> Path:
    """The directory of a run, or that of the agent shipped for a game of this name."""
    if run in GAMES:
        known = shipped_methods(run)
        if method is not None and method not in known:
            raise InputError(f"no agent of the method {method} is shipped for {run} (shipped: {', '.join(known)})")
        return shipped(run, method or STRUCTURED)
    if not Path(run).is_dir():
        raise InputError(f"no run directory {run!r}, nor a game of that name (games: {', '.join(GAMES)})")
    return Path(run)


def open_agent(run: str, method: str | None = None) -> tuple[AnyAgent, RunConfig | None, Any]:
    """The agent that a person names, its configuration, and what its manifest says about its training.

    `run` is a run directory or a game's name; `method` insists on a method, and "oracle" needs no run at all.
    """
    if method == ORACLE:
        if run not in GAMES:
            raise InputError(f"the oracle is not trained: name a game instead of a run (games: {', '.join(GAMES)})")
        return Oracle(GAMES[run]()), None, None
    if method is not None and method not in METHODS:
        raise unknown_name("method", method, [*METHODS, ORACLE])
    directory = find_agent(run, method)
    agent, config = load_agent(directory)
    if method not in (None, config.method):
        raise InputError(f"{run} is a run of the method {config.method}, not of {method}")
    return agent, config, read_manifest(directory).get("about")


def load(run: str | Path, world: Game[Any] | None = None) -> AnyAgent:
    """The trained agent of a run directory, or the one shipped for a game: `load("switches")`.

    A run in a world of your own needs that `world`.
    """
    return load_agent(find_agent(str(run)), world)[0]
