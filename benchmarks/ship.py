"""Copies trained agents into the package, in half precision: python benchmarks/ship.py RUN [RUN ...]."""

import sys
from pathlib import Path

from saplan.storage.json_data import read_json
from saplan.training.provenance import command
from saplan.training.store import MANIFEST, load_agent, save_agent, shipped


def ship(run: Path) -> None:
    """Copies one agent with the facts about its training in its manifest."""
    agent, config = load_agent(run)
    about = {**(read_json(run / MANIFEST).get("about") or {}), "command": command(config)}
    place = shipped(config.game.name, config.method)
    save_agent(place, agent, config, half=True, about=about)
    print(f"{run} → {place}")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        ship(Path(argument))
