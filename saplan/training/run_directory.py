"""The directory of a run during training: configuration, metrics, checkpoints, and a lock."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from saplan.errors import InputError
from saplan.games import Game
from saplan.storage.files import Lock, make_directory
from saplan.storage.json_data import read_json, write_json
from saplan.storage.links import refuse_links
from saplan.storage.manifest import OldFormatError, first_difference
from saplan.training.checkpoint import CHECKPOINTS, Checkpoint, Checkpoints, OtherConfigError
from saplan.training.config import ATTRIBUTES, RunConfig, config_from_json, is_ours, write_attributes
from saplan.training.metrics import MetricsFile
from saplan.training.tensorboard import TENSORBOARD

CONFIG, METRICS = "config.json", "metrics.jsonl"
FILES = (CONFIG, METRICS, "manifest.json", "agent.safetensors", ATTRIBUTES)
OWN = (*FILES, *(f".{name}.new" for name in FILES), "lock", CHECKPOINTS, "evaluations", TENSORBOARD)
"""All names that a run uses in its directory. None of them may be a link."""


class RunDirectory:
    """A run that this process has locked. `close` it at the end."""

    def __init__(self, path: Path, lock: Lock, config: RunConfig) -> None:
        """See `begin_run` and `reopen_run`."""
        self.path, self.lock, self.config = path, lock, config
        self.checkpoints = Checkpoints(path, config.to_json())
        self.metrics: MetricsFile | None = None
        self.saved: int | None = None
        """Updates of the newest good checkpoint."""

    def open_metrics(self, length: int) -> None:
        """Open the metrics, without the rows after the checkpoint that training resumes from."""
        self.metrics = MetricsFile(self.path / METRICS, length)

    def log(self, row: dict[str, Any]) -> None:
        """Append to the metrics."""
        assert self.metrics is not None
        self.metrics.write(row)

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint; `InputError` if the disk is full, in which case older ones stay valid."""
        assert self.metrics is not None
        host = replace(checkpoint.host, metrics_bytes=self.metrics.sync())
        self.checkpoints.save(replace(checkpoint, host=host))
        self.saved = checkpoint.updates

    def check_newest(self) -> None:
        """Raise an error if the newest checkpoint is of another configuration or version, before allocating arrays."""
        for name in self.checkpoints.names()[:1]:
            try:
                self.checkpoints.manifest(name)
            except (OtherConfigError, OldFormatError):
                raise
            except InputError:
                pass  # damaged: `newest` reports it, and takes an older one

    def newest(self, outline: Any, at_most: int | None = None) -> tuple[Checkpoint | None, list[str]]:
        """The newest intact checkpoint, None if none was ever saved; and a line on each damaged newer one.

        Damaged ones are set aside. `InputError` if all are damaged. `at_most` skips those with more updates.
        """
        damaged: dict[str, InputError] = {}
        for name in self.checkpoints.names():
            if at_most is not None and int(name.partition("-")[0]) > at_most:
                continue
            try:
                found = self.checkpoints.load(name, outline)
            except (OtherConfigError, OldFormatError):
                raise
            except InputError as error:
                damaged[name] = error
                continue
            self.saved = found.updates
            for each in damaged:
                self.checkpoints.set_aside(each)
            return found, [f"{error}; it is set aside, and an older one is used" for error in damaged.values()]
        if damaged:
            raise InputError(f"no checkpoint of {self.path} is intact; the newest: {next(iter(damaged.values()))}")
        return None, []

    def close(self) -> None:
        """Close the metrics and release the lock."""
        if self.metrics is not None:
            self.metrics.close()
        self.lock.release()


def begin_run(path: Path, config: RunConfig) -> RunDirectory:
    """A new run, in a directory without one."""
    make_directory(path)
    refuse_links(path, OWN)
    lock = Lock(path)
    try:
        if any((path / name).exists() for name in (CONFIG, METRICS, "manifest.json", CHECKPOINTS)):
            raise InputError(
                f"{path} already holds a run: resume it with `saplan train --resume {path}`, or choose another --out"
            )
        write_attributes(path, config)
        write_json(path / CONFIG, config.to_json())
    except InputError:
        lock.release()
        raise
    return RunDirectory(path, lock, config)


def read_config(path: Path, world: Game[Any] | None = None) -> RunConfig:
    """The configuration of the run in a directory; a `world` that is not one of our games must be given."""
    if not (path / CONFIG).is_file():
        raise InputError(f"{path} holds no run to resume (no {CONFIG} in it)")
    return config_from_json(read_json(path / CONFIG), path / CONFIG, world)


def reopen_run(path: Path, wanted: RunConfig | None = None) -> RunDirectory:
    """The run in a directory, to be resumed; `wanted` is the configuration that the caller expects."""
    # The rules of our games are compared with everything else below; any other world must be passed on.
    world = None if wanted is None or is_ours(wanted.game) else wanted.game
    read_config(path, world)  # before anything is written there, even a lock
    refuse_links(path, OWN)
    if os.path.lexists(path / CHECKPOINTS) and not (path / CHECKPOINTS).is_dir():
        raise InputError(f"{path / CHECKPOINTS} is not a directory")
    lock = Lock(path)
    try:
        config = read_config(path, world)
        if wanted is not None and wanted.to_json() != config.to_json():
            difference = first_difference(wanted.to_json(), config.to_json())
            raise InputError(f"cannot resume {path} with another configuration: {difference}")
        return RunDirectory(path, lock, config)
    except InputError:
        lock.release()
        raise
