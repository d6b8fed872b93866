"""The small trained agents that come with the package: where they are. Quickly asked, since nothing is opened."""

import json
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).parent.parent / "agents"
"""Our method's agent for every game, and opponents."""
MANIFEST = "manifest.json"
STRUCTURED = "structured"
"""Our method."""
ORACLE = "oracle"
"""The one method that is not trained."""


def shipped(game: str, method: str = STRUCTURED) -> Path:
    """Where the agent of a method is shipped, if there is one."""
    return SHIPPED / (game if method == STRUCTURED else f"{game}-{method}")


def shipped_methods(game: str) -> tuple[str, ...]:
    """The methods that are shipped for a game, ours first."""
    others = sorted(path.parent.name.removeprefix(f"{game}-") for path in SHIPPED.glob(f"{game}-*/{MANIFEST}"))
    return (*([STRUCTURED] if (shipped(game) / MANIFEST).is_file() else []), *others)


def shipped_steps(game: str, method: str) -> int | None:
    """The environment steps that a shipped agent was trained for, where its manifest says."""
    return steps_trained(json.loads((shipped(game, method) / MANIFEST).read_text(encoding="utf-8")).get("about"))


def steps_trained(about: Any) -> int | None:
    """What a manifest says of the length of a training."""
    steps = about.get("steps_trained") if isinstance(about, dict) else None
    return steps if isinstance(steps, int) else None
