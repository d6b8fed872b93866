"""The directory of a run while it is being trained: configuration, metrics, checkpoints, and a lock on all of it."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from saplan.errors import InputError
from saplan.games import Game
from saplan.storage.files import Lock, make_directory
from saplan.storage.links import refuse_links
from saplan.training.checkpoint import CHECKPOINTS, Checkpoint, Checkpoints, OtherConfigError, first_difference
from saplan.training.config import (
    ATTRIBUTES,
    RunConfig,
    config_from_json,
    is_ours,
    read_json,
    write_attributes,
    write_json,
)
from saplan.training.metrics import MetricsFile

CONFIG, METRICS = "config.json", "metrics.jsonl"
FILES = (CONFIG, METRICS, "manifest.json", "agent.safetensors", ATTRIBUTES)
OWN = (*FILES, *(f".{name}.new" for name in FILES), "lock", CHECKPOINTS, "evaluations")
"""All names that a run has in its directory. No link may stand in their place."""


class RunDirectory:
    """A run of this process alone. `close` it at the end."""

    def __init__(self, path: Path, lock: Lock, config: RunConfig) -> None:
        """See `begin_run` and `reopen_run`."""
        self.path, self.lock, self.config = path, lock, config
        self.checkpoints = Checkpoints(path, config.to_json())
        self.metrics: MetricsFile | None = None
        self.saved: int | None = None
        """Updates of the newest good checkpoint."""

    def open_metrics(self, length: int) -> None:
        """Opens the metrics, forgetting what was written after the checkpoint that training goes on from."""
        self.metrics = MetricsFile(self.path / METRICS, length)

    def log(self, row: dict[str, Any]) -> None:
        """Appends to the metrics."""
        assert self.metrics is not None
        self.metrics.write(row)

    def save(
        self, updates: int, learner: Any, host: dict[str, Any], world: dict[str, np.ndarray] | None = None
    ) -> None:
        """Writes a checkpoint; `InputError` if the disk does not take it, and then those before it still stand."""
        assert self.metrics is not None
        length = self.metrics.sync()
        self.checkpoints.save(Checkpoint(updates, learner, {**host, "metrics_bytes": length}, world or {}))
        self.saved = updates

    def check_config(self) -> None:
        """`OtherConfigError` if the newest checkpoint is of another configuration: asked before any array is made."""
        for name in self.checkpoints.names()[:1]:
            try:
                self.checkpoints.manifest(name)
            except OtherConfigError:
                raise
            except InputError:
                pass  # damaged: `newest` says so, and looks at those before it

    def newest(self, outline: Any, at_most: int | None = None) -> tuple[Checkpoint | None, list[str]]:
        """The newest checkpoint that is whole, None if none was ever saved, and what is wrong with newer ones.

        These are set aside. `InputError` if there are some and none is whole. `at_most` passes over those with more
        updates.
        """
        wrong: dict[str, InputError] = {}
        for name in self.checkpoints.names():
            if at_most is not None and int(name.partition("-")[0]) > at_most:
                continue
            try:
                found = self.checkpoints.load(name, outline)
            except OtherConfigError:
                raise
            except InputError as error:
                wrong[name] = error
                continue
            self.saved = found.updates
            for damaged in wrong:
                self.checkpoints.set_aside(damaged)
            return found, [f"{error}; it is set aside, and the one before it is used" for error in wrong.values()]
        if wrong:
            raise InputError(f"no checkpoint of {self.path} is whole; of the newest: {next(iter(wrong.values()))}")
        return None, []

    def close(self) -> None:
        """Lets others in."""
        if self.metrics is not None:
            self.metrics.close()
        self.lock.release()


def begin_run(path: Path, config: RunConfig) -> RunDirectory:
    """A new run in a directory that holds none."""
    make_directory(path)
    refuse_links(path, OWN)
    lock = Lock(path)
    try:
        if any((path / name).exists() for name in (CONFIG, METRICS, "manifest.json", "checkpoints")):
            raise InputError(
                f"{path} holds a run already: go on with it by `saplan train --resume {path}`, or choose another --out"
            )
        write_attributes(path, config)
        write_json(path / CONFIG, config.to_json())
    except InputError:
        lock.release()
        raise
    return RunDirectory(path, lock, config)


def read_config(path: Path, world: Game[Any] | None = None) -> RunConfig:
    """The configuration of the run in a directory; a `world` that is not one of our games has to be given."""
    if not (path / CONFIG).is_file():
        raise InputError(f"{path} holds no run to go on with (no {CONFIG} in it)")
    return config_from_json(read_json(path / CONFIG), path / CONFIG, world)


def reopen_run(path: Path, wanted: RunConfig | None = None) -> RunDirectory:
    """The run in a directory, to be resumed; `wanted` is what a person thinks its configuration is."""
    # Rules of our games are compared with all the rest below; any other world has to be handed in.
    world = None if wanted is None or is_ours(wanted.game) else wanted.game
    read_config(path, world)  # before anything is written there, be it a lock
    refuse_links(path, OWN)
    if os.path.lexists(path / CHECKPOINTS) and not (path / CHECKPOINTS).is_dir():
        raise InputError(f"{path / CHECKPOINTS} is not a directory")
    lock = Lock(path)
    try:
        config = read_config(path, world)
        if wanted is not None and wanted.to_json() != config.to_json():
            difference = first_difference(wanted.to_json(), config.to_json())
            raise InputError(f"cannot go on with {path} under another configuration: {difference}")
        return RunDirectory(path, lock, config)
    except InputError:
        lock.release()
        raise
