"""Agents on disk: arrays in one safetensors file, and a manifest with its SHA-256. Loading executes nothing."""

import hashlib
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

from saplan.baselines.methods import METHODS, AnyAgent, find_method
from saplan.baselines.oracle import Oracle
from saplan.errors import InputError, unknown_name
from saplan.games import GAMES, Game
from saplan.runs.arrays import fill, from_bytes, to_arrays, to_bytes
from saplan.runs.config import RunConfig, config_from_json, read_json, write_attributes, write_json
from saplan.runs.files import make_directory, read_bytes, replace_file
from saplan.runs.shipped import MANIFEST, ORACLE, STRUCTURED, shipped, shipped_methods

__all__ = [
    "ARRAYS", "MANIFEST", "ORACLE", "find_agent", "load", "load_agent", "open_agent", "save_agent", "shipped",
    "shipped_methods", "untrained_agent",
]  # fmt: skip

ARRAYS = "agent.safetensors"
FORMAT = "saplan agent 1"
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
    write_json(directory / MANIFEST, manifest)


def load_agent(directory: Path, world: Game[Any] | None = None) -> tuple[AnyAgent, RunConfig]:
    """The agent of a directory, checked against its manifest; `InputError` if anything is amiss.

    A `world` that is not one of our games has to be given.
    """
    if not (directory / MANIFEST).is_file():
        raise InputError(f"{directory} holds no trained agent (no {MANIFEST} in it)")
    manifest = read_json(directory / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{directory / MANIFEST} is not a manifest of the format {FORMAT!r}")
    config = config_from_json(manifest.get("config"), directory / MANIFEST, world)
    path = directory / ARRAYS
    data = read_bytes(path, LARGEST)
    if hashlib.sha256(data).hexdigest() != manifest.get("sha256"):
        raise InputError(f"{path} is damaged: its SHA-256 is not the one in {MANIFEST}")
    return fill(_outline(config, directory / MANIFEST), from_bytes(data, path), path), config


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
    return agent, config, read_json(directory / MANIFEST).get("about")


def load(run: str | Path, world: Game[Any] | None = None) -> AnyAgent:
    """The trained agent of a run directory, or the one shipped for a game: `load("switches")`.

    A run in a world of your own needs that `world`.
    """
    return load_agent(find_agent(str(run)), world)[0]


def _outline(config: RunConfig, path: Path) -> AnyAgent:
    """An agent with shapes in place of arrays: a manifest that asks for too much must not get it."""
    try:
        return eqx.filter_eval_shape(untrained_agent, config)
    except (TypeError, ValueError, ArithmeticError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path} describes no agent: {type(error).__name__}: {reason}") from None
