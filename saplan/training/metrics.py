"""Metrics: one JSON object a line, appended as training goes."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from saplan.errors import InputError
from saplan.storage.files import cannot_write, open_fresh, open_plain, read_bytes, sync_directory, write_all
from saplan.storage.json_data import is_number

LARGEST = 2**28
"""Bytes of metrics that are kept when a run is resumed; a row takes a few hundred."""
PIECE = 2**20


class MetricsFile:
    """A file of metrics. Rows that the disk does not take are kept, and written when it does."""

    def __init__(self, path: Path, length: int = 0) -> None:
        """Begins a file with the first `length` bytes of the one that is there, if any: training goes on from there.

        The old file is replaced, not cut: it may have another name elsewhere.
        """
        self.path, self.length = path, 0
        self._waiting = b""
        aside = path.with_name(f".{path.name}.new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open_fresh(aside)
            try:
                self._copy(length)
                os.fsync(self._file)
                os.replace(aside, path)
                sync_directory(path.parent)
            except (OSError, InputError):
                os.close(self._file)
                raise
        except OSError as error:
            raise cannot_write(path, error) from None

    def _copy(self, length: int) -> None:
        if length == 0 or not os.path.lexists(self.path):
            return
        with open_plain(self.path) as old:
            length = min(length, os.fstat(old.fileno()).st_size)
            if length > LARGEST:
                raise InputError(f"{self.path} is larger than {LARGEST // 2**20} MiB: no metrics of ours are")
            while self.length < length and (piece := old.read(min(PIECE, length - self.length))):
                write_all(self._file, piece)
                self.length += len(piece)

    def write(self, row: dict[str, Any]) -> None:
        """Appends one line."""
        self._waiting += json.dumps(row).encode() + b"\n"
        with contextlib.suppress(OSError):  # half a line may stand there now; the next write goes over it
            self._flush()

    def sync(self) -> int:
        """Waits until the disk has everything, and says how many bytes that is; `InputError` if it takes no more."""
        try:
            self._flush()
            os.fsync(self._file)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        return self.length

    def _flush(self) -> None:
        os.lseek(self._file, self.length, os.SEEK_SET)
        write_all(self._file, self._waiting)
        self.length, self._waiting = self.length + len(self._waiting), b""

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)


NUMBERS = ("steps", "seconds", "positives", "negatives", "known", "overflow")


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a run's metrics, checked as far as results are made of them."""
    try:
        rows = [json.loads(line) for line in read_bytes(path, LARGEST).splitlines()]
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not JSON, line by line") from None
    for row in rows:
        good = isinstance(row, dict) and all(is_number(row.get(name), 0, 2**62) for name in NUMBERS)
        if (
            not good
            or type(row.get("evaluated")) is not bool
            or not (row.get("success") is None or is_number(row["success"], 0, 1))
        ):
            raise InputError(f"{path} holds a row that is not of a run's metrics")
    if not rows:
        raise InputError(f"{path} holds no metrics")
    return rows
