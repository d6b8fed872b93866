"""Markov environments with a map f from state to attributes."""

from typing import Any

from saplan.errors import unknown_name
from saplan.games.arm import Arm
from saplan.games.exchange import Exchange
from saplan.games.game import Game, task_set
from saplan.games.mining import Mining
from saplan.games.switches import Switches
from saplan.games.tiles import Tiles

GAMES: dict[str, type[Game[Any]]] = {
    "switches": Switches,
    "exchange": Exchange,
    "mining": Mining,
    "arm": Arm,
    "tiles": Tiles,
}
"""The games by the name the command line uses."""


def make_game(name: str, **rules: Any) -> Game[Any]:
    """The game of a name, with its default rules unless others are given."""
    if name not in GAMES:
        raise unknown_name("game", name, GAMES)
    return GAMES[name](**rules)


__all__ = ["GAMES", "Arm", "Exchange", "Game", "Mining", "Switches", "Tiles", "make_game", "task_set"]
