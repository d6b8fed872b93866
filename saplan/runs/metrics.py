"""Metrics: one JSON object a line, appended as training goes."""

import json
from pathlib import Path
from typing import Any, TextIO

from saplan.errors import InputError


class MetricsFile:
    """A file of metrics; each line is on disk before training goes on."""

    def __init__(self, path: Path) -> None:
        """Begins the file anew."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: TextIO = path.open("w", encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from None

    def write(self, row: dict[str, Any]) -> None:
        """Appends one line."""
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
