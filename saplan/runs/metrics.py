"""Metrics: one JSON object a line, appended as training goes."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from saplan.runs.files import cannot_write, write_all


class MetricsFile:
    """A file of metrics. Rows that the disk does not take are kept, and written when it does."""

    def __init__(self, path: Path, length: int = 0) -> None:
        """Opens the file and forgets what lies beyond `length` bytes: training goes on from there."""
        self.path = path
        self._waiting = b""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            self.length = min(length, os.fstat(self._file).st_size)
            os.ftruncate(self._file, self.length)
        except OSError as error:
            raise cannot_write(path, error) from None

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
