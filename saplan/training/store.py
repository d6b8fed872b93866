"""Agents on disk: one safetensors file, and a sealed manifest with its SHA-256. Loading executes nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saplan.errors import InputError, unknown_name
from saplan.games import GAMES, Game
from saplan.games.rule_cards import with_rules
from saplan.games.wrapper import unwrapped
from saplan.methods.agent import Agent
from saplan.methods.oracle.agent import Oracle
from saplan.methods.registry import METHODS, find_method
from saplan.methods.structured.evidence import no_evidence
from saplan.storage.arrays import fill, from_bytes, largest_file, outline_of, to_arrays, to_bytes
from saplan.storage.files import make_directory, read_bytes, replace_file
from saplan.storage.json_data import is_whole
from saplan.storage.manifest import AGENT, check_digest, digest, read_sealed, write_sealed
from saplan.training.config import RunConfig, config_from_json, write_attributes
from saplan.training.hub import PREFIX, fetch_run
from saplan.training.shipped import MANIFEST, ORACLE, STRUCTURED, shipped, shipped_methods
from saplan.training.transfer import transfer

__all__ = [
    "ARRAYS", "MANIFEST", "ORACLE", "find_agent", "load", "load_agent", "open_agent", "save_agent", "shipped",
    "shipped_methods", "untrained_agent",
]  # fmt: skip

ARRAYS = "agent.safetensors"
EVIDENCE = ".evidence"
"""Beginning of the names of arrays that agents saved before they kept evidence do not have."""
LARGEST = 512 * 2**20
"""Bytes of a file that is read."""


def untrained_agent(config: RunConfig) -> Agent:
    """An untrained agent, with arrays of the right shapes."""
    agent: Agent = find_method(config.method).untrained(config.game, config.settings)
    return agent


def save_agent(directory: Path, agent: Agent, config: RunConfig, half: bool = False, about: Any = None) -> None:
    """Write an agent into a directory; `half` stores the networks in 16 bits, for sharing."""
    arrays = to_arrays(agent)
    if half:
        for name, array in arrays.items():
            if array.dtype == np.float32 and name.startswith((".policy", ".detector")):
                arrays[name] = array.astype(np.float16)
    data = to_bytes(arrays)
    make_directory(directory)
    replace_file(directory / ARRAYS, data)
    write_attributes(directory, config)
    manifest = {"format": AGENT, "sha256": digest(data), "config": config.to_json(), "about": about}
    write_sealed(directory / MANIFEST, manifest)


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of an agent, checked; `InputError` if it is missing or damaged."""
    path = directory / MANIFEST
    if not path.is_file():
        raise InputError(f"{directory} holds no trained agent (no {MANIFEST} in it)")
    manifest = read_sealed(path, AGENT)
    about = manifest.get("about")
    if not (about is None or isinstance(about, dict)):
        raise InputError(f"{path}: about must be an object")
    about = about or {}
    if not is_whole(about.get("steps_trained", 0), 0, 2**62):
        raise InputError(f"{path}: steps_trained must be an integer, 0 or greater")
    if not all(isinstance(about.get(name, ""), str) for name in ("command", "hardware")):
        raise InputError(f"{path}: command and hardware must be strings")
    return manifest


def load_agent(directory: Path, world: Game[Any] | None = None) -> tuple[Agent, RunConfig]:
    """The agent in a directory with its configuration, both checked; `InputError` if anything is wrong.

    A `world` that is not one of our games must be given.
    """
    manifest, path = read_manifest(directory), directory / ARRAYS
    config = config_from_json(manifest.get("config"), directory / MANIFEST, world)
    outline = outline_of(lambda: untrained_agent(config), LARGEST, f"the agent that {directory / MANIFEST} describes")
    data = read_bytes(path, min(LARGEST, largest_file(outline)))
    check_digest(data, manifest.get("sha256"), path, MANIFEST)
    arrays = from_bytes(data, path)
    if hasattr(outline, "evidence") and not any(name.startswith(EVIDENCE) for name in arrays):
        nothing = to_arrays(no_evidence(config.game.space))
        arrays.update({EVIDENCE + name: array for name, array in nothing.items()})
    return fill(outline, arrays, path), config


def find_agent(run: str, method: str | None = None) -> Path:
    """The directory of a run, of the shipped agent if `run` is the name of a game, or of a copy from the hub."""
    if run.startswith(PREFIX):
        return fetch_run(run)
    if run in GAMES:
        known = shipped_methods(run)
        if method is not None and method not in known:
            raise InputError(f"no agent of the method {method} is shipped for {run} (shipped: {', '.join(known)})")
        return shipped(run, method or STRUCTURED)
    if not Path(run).is_dir():
        raise InputError(f"no run directory {run!r}, nor a game of that name (games: {', '.join(GAMES)})")
    return Path(run)


def open_agent(
    run: str, method: str | None = None, rules: Sequence[str] = (), world: Game[Any] | None = None
) -> tuple[Agent, RunConfig | None, Any]:
    """An agent, its configuration, and the `about` of its manifest.

    `run` is a run directory, a game's name, or `hf:owner/name`. A run of another `method` is refused; "oracle" needs a
    game and no run. `rules` such as `most=8` move the agent to a world with other rules. A run in a world of your own
    needs that `world`.
    """
    if method == ORACLE:
        if run not in GAMES:
            raise InputError(f"the oracle is not trained: name a game instead of a run (games: {', '.join(GAMES)})")
        return Oracle(with_rules(GAMES[run](), rules)), None, None
    if method is not None and method not in METHODS:
        raise unknown_name("method", method, [*METHODS, ORACLE])
    directory = find_agent(run, method)
    agent, config = load_agent(directory, world)
    if method not in (None, config.method):
        raise InputError(f"{run} is a run of the method {config.method}, not of {method}")
    if rules:
        agent = transfer(agent, with_rules(unwrapped(config.game), rules))
    return agent, config, read_manifest(directory).get("about")


def load(run: str | Path, world: Game[Any] | None = None, game: Game[Any] | None = None) -> Agent:
    """The trained agent of a run directory, or the one shipped for a game: `load("switches")`.

    `load("hf:owner/name")` loads a run from the Hugging Face hub (extra `hub`). A run in a world of your own needs that
    `world`. With `game` the agent moves to another world of the same attributes and actions, such as one with more
    objects or larger maps.
    """
    agent = load_agent(find_agent(str(run)), world)[0]
    return agent if game is None else transfer(agent, game)
