"""What must never go wrong, tried often: a few times in `make test`, as often as docs/reliability.md says in `make
reliability`, which also writes the figures down.
"""

import json
import os
from pathlib import Path
from typing import Any

from saplan.training.provenance import code, provenance

FULL = os.environ.get("RELIABILITY") == "full"
FIGURES = Path(__file__).parent.parent.parent / "results" / "reliability.json"


def times(full: int, usual: int) -> int:
    """How often to try."""
    return full if FULL else usual


def record(name: str, good: int, tried: int, **more: Any) -> None:
    """Asserts that all went well, and in a full run writes the figure down."""
    if FULL:
        figures = json.loads(FIGURES.read_text())["figures"] if FIGURES.exists() else {}
        figures[name] = {"good": good, "tried": tried, **more, "commit": code()["commit"]}
        told = {"figures": dict(sorted(figures.items())), **provenance()}
        FIGURES.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    assert good == tried, f"{name}: {good} of {tried}"
