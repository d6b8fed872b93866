"""The numbers of the unstructured planner."""

from dataclasses import dataclass
from typing import Any

from saplan.errors import InputError
from saplan.games import Game
from saplan.rl.settings import ExploringSettings, paper_settings

MOST_PAIRS = 2**24
"""Pairs that a table may have room for; such an agent takes 280 MiB on disk."""


@dataclass(frozen=True)
class UnstructuredSettings(ExploringSettings):
    """Numbers of the table of attribute sets."""

    nodes: int = 2**18
    """Attribute sets that the table can hold."""
    degree: int = 16
    """Neighbours that it can hold of each."""
    decay: float = 0.9
    """Factor on all attempts and successes after an epoch."""
    epoch: int = 64
    """Updates per epoch."""
    share_floor: float = 0.001
    """Added to a pair's share in the exploration bonus, (share + this)^-0.5."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nodes < 16 or self.degree < 1 or self.epoch < 1:
            raise InputError("nodes must be at least 16, degree and epoch at least 1")
        if self.nodes * self.degree > MOST_PAIRS:
            raise InputError(f"nodes × degree must be at most {MOST_PAIRS}, got {self.nodes * self.degree}")
        if not 0 < self.decay <= 1 or not self.share_floor > 0:
            raise InputError("decay must lie in (0, 1], share-floor above 0")


def unstructured_settings(game: Game[Any], paper: bool = False) -> UnstructuredSettings:
    """Defaults for a game; `paper` undoes our improvements of the learner."""
    credit = game.credit == "game"
    if not paper:
        return UnstructuredSettings(credit_to_game=credit)
    return UnstructuredSettings(**paper_settings(credit))
