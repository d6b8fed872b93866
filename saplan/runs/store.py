"""Agents on disk: arrays in one safetensors file, and a manifest with its SHA-256. Loading executes nothing."""

import hashlib
import os
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from saplan.baselines.methods import METHODS, AnyAgent, find_method
from saplan.baselines.oracle import Oracle
from saplan.errors import InputError, unknown_name
from saplan.games import GAMES
from saplan.runs.config import RunConfig, config_from_json, read_json, write_json

ARRAYS = "agent.safetensors"
MANIFEST = "manifest.json"
FORMAT = "saplan agent 1"
ORACLE = "oracle"
"""The one method that is not trained."""
SHIPPED = Path(__file__).parent.parent / "agents"
"""Small trained agents, one per game."""
LARGEST = 512 * 2**20
"""Files beyond this size are refused unread."""


def untrained_agent(config: RunConfig) -> AnyAgent:
    """An agent of the right shape, to be filled."""
    return find_method(config.method).untrained(config.game, config.settings)


def save_agent(directory: Path, agent: AnyAgent, config: RunConfig, half: bool = False, about: Any = None) -> None:
    """Writes an agent into a directory; `half` stores the networks in 16 bits, for sharing."""
    arrays = {}
    for name, array in _named(agent).items():
        value = np.asarray(array)
        small = half and value.dtype == np.float32 and name.startswith((".policy", ".detector"))
        arrays[name] = value.astype(np.float16) if small else value
    data = safetensors.numpy.save(arrays)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        temporary = directory / (ARRAYS + ".new")
        temporary.write_bytes(data)
        os.replace(temporary, directory / ARRAYS)
    except OSError as error:
        raise InputError(f"cannot write {directory}: {error.strerror}") from None
    manifest = {
        "format": FORMAT,
        "sha256": hashlib.sha256(data).hexdigest(),
        "config": config.to_json(),
        "about": about,
    }
    write_json(directory / MANIFEST, manifest)


def load_agent(directory: Path) -> tuple[AnyAgent, RunConfig]:
    """The agent of a directory, checked against its manifest; `InputError` if anything is amiss."""
    if not (directory / MANIFEST).is_file():
        raise InputError(f"{directory} holds no trained agent (no {MANIFEST} in it)")
    manifest = read_json(directory / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{directory / MANIFEST} is not a manifest of the format {FORMAT!r}")
    config = config_from_json(manifest.get("config"), str(directory / MANIFEST))
    path = directory / ARRAYS
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path} is larger than {LARGEST // 2**20} MiB: no agent of ours is")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != manifest.get("sha256"):
        raise InputError(f"{path} is damaged: its SHA-256 is not the one in {MANIFEST}")
    try:
        arrays = safetensors.numpy.load(data)
    except SafetensorError as error:
        raise InputError(f"{path} is not a safetensors file: {error}") from None
    return _filled(_outline(config, directory / MANIFEST), arrays, path), config


def find_agent(run: str) -> Path:
    """The directory of a run, or that of the agent shipped for a game of this name."""
    if run in GAMES:
        return SHIPPED / run
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
    directory = find_agent(run)
    agent, config = load_agent(directory)
    if method not in (None, config.method):
        raise InputError(f"{run} is a run of the method {config.method}, not of {method}")
    return agent, config, read_json(directory / MANIFEST).get("about")


def load(run: str | Path) -> AnyAgent:
    """The trained agent of a run directory, or the one shipped for a game: `load("switches")`."""
    return load_agent(find_agent(str(run)))[0]


def _outline(config: RunConfig, path: Path) -> AnyAgent:
    """An agent with shapes in place of arrays: a manifest that asks for too much must not get it."""
    try:
        return eqx.filter_eval_shape(untrained_agent, config)
    except (TypeError, ValueError, ArithmeticError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path} describes no agent: {type(error).__name__}: {reason}") from None


def _named(agent: AnyAgent) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(agent)}


def _filled(agent: AnyAgent, arrays: dict[str, np.ndarray], path: Path) -> AnyAgent:
    """`agent` with its arrays replaced by those of the same name, which must be all of them and of the same shape."""
    wanted = _named(agent)
    if set(arrays) != set(wanted):
        odd = sorted(set(arrays) ^ set(wanted))[0]
        raise InputError(f"{path} does not fit its manifest: {odd} is missing or unknown")
    for name, like in wanted.items():
        if arrays[name].shape != like.shape or arrays[name].dtype.kind != np.dtype(like.dtype).kind:
            raise InputError(f"{path} does not fit its manifest: {name} has another shape or type")
        if arrays[name].dtype.kind == "f" and not np.all(np.isfinite(arrays[name])):
            raise InputError(f"{path} holds a number that is not finite, in {name}")
    leaves, structure = jax.tree_util.tree_flatten_with_path(agent)
    new = [jnp.asarray(arrays[jax.tree_util.keystr(p)], leaf.dtype) for p, leaf in leaves]
    return jax.tree_util.tree_unflatten(structure, new)
