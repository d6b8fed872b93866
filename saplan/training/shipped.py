"""Where the small trained agents are that come with the package. Fast, since no agent is opened."""

import json
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).parent.parent / "agents"
"""The structured agent for every game, and some baselines."""
MANIFEST = "manifest.json"
STRUCTURED = "structured"
"""The name of our method."""
ORACLE = "oracle"
"""The one method that is not trained."""


def shipped(game: str, method: str = STRUCTURED) -> Path:
    """The directory of the shipped agent of a method, which may not exist."""
    return SHIPPED / (game if method == STRUCTURED else f"{game}-{method}")


def shipped_methods(game: str) -> tuple[str, ...]:
    """The methods with a shipped agent for a game, ours first."""
    others = sorted(path.parent.name.removeprefix(f"{game}-") for path in SHIPPED.glob(f"{game}-*/{MANIFEST}"))
    return (*([STRUCTURED] if (shipped(game) / MANIFEST).is_file() else []), *others)


def shipped_steps(game: str, method: str) -> int | None:
    """The environment steps that a shipped agent was trained for, if its manifest has them."""
    return steps_trained(json.loads((shipped(game, method) / MANIFEST).read_text(encoding="utf-8")).get("about"))


def steps_trained(about: Any) -> int | None:
    """The environment steps of a training, from the `about` of a manifest."""
    steps = about.get("steps_trained") if isinstance(about, dict) else None
    return steps if isinstance(steps, int) else None
