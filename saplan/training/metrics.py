"""Metrics of a run: one JSON object per line, appended during training."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from saplan.errors import InputError
from saplan.storage.files import cannot_write, open_fresh, open_regular, read_bytes, sync_directory, write_all
from saplan.storage.json_data import is_number

LARGEST = 2**28
"""Bytes of metrics that a resumed run keeps; a row takes a few hundred."""
PIECE = 2**20
NUMBERS = ("steps", "seconds", "positives", "negatives", "known", "overflow")


class MetricsFile:
    """The metrics file of a run. Rows that a full disk rejects are kept in memory, and written later."""

    def __init__(self, path: Path, length: int = 0) -> None:
        """Begin a file with the first `length` bytes of the existing one, if any.

        The old file is replaced, not truncated: hard links to it keep their content.
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
        with open_regular(self.path) as old:
            length = min(length, os.fstat(old.fileno()).st_size)
            if length > LARGEST:
                raise InputError(f"{self.path} is larger than the {LARGEST // 2**20} MiB that metrics can have")
            while self.length < length and (piece := old.read(min(PIECE, length - self.length))):
                write_all(self._file, piece)
                self.length += len(piece)

    def write(self, row: dict[str, Any]) -> None:
        """Append one line."""
        self._waiting += json.dumps(row).encode() + b"\n"
        with contextlib.suppress(OSError):  # half a line may be on disk now; the next write overwrites it
            self._flush()

    def sync(self) -> int:
        """Wait until everything is on disk, and return the length in bytes; `InputError` if the disk is full."""
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
        """Close the file."""
        os.close(self._file)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a run's metrics; the fields that results are made of are checked."""
    try:
        rows = [json.loads(line) for line in read_bytes(path, LARGEST).splitlines()]
    except (ValueError, RecursionError):
        raise InputError(f"{path} does not hold one JSON object per line") from None
    if not rows:
        raise InputError(f"{path} is empty")
    if not all(_is_row(row) for row in rows):
        raise InputError(f"{path} holds a line that is not a row of metrics")
    return rows


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and all(is_number(row.get(name), 0, 2**62) for name in NUMBERS)
        and type(row.get("evaluated")) is bool
        and (row.get("success") is None or is_number(row["success"], 0, 1))
    )
