"""Result files of examples and benchmarks."""

from pathlib import Path
from typing import Any

from saplan.storage.json_data import write_json
from saplan.training.provenance import provenance


def write_result(path: Path | None, result: dict[str, Any], *packages: str) -> None:
    """Writes a result as JSON with the code, hardware and versions that gave it; does nothing without a path.

    `packages` names further packages whose versions matter.
    """
    if path is not None:
        write_json(path, {**result, **provenance(*packages)})
