"""The numbers of the unstructured planner."""

from dataclasses import dataclass
from typing import Any

from saplan.errors import InputError
from saplan.games import Game
from saplan.rl.settings import Settings, settings_for

LARGEST = 2**24
"""Pairs that a table can be given room for; such an agent takes 280 MiB on disk."""


@dataclass(frozen=True)
class UnstructuredSettings(Settings):
    """Numbers of the unstructured planner; those of 𝓑 and of the edge detector have no meaning here."""

    nodes: int = 2**18
    """Attribute sets that the table can hold."""
    degree: int = 16
    """Neighbours that it can hold of each."""
    decay: float = 0.9
    """What is left of attempts and successes after an epoch."""
    epoch: int = 64
    """Updates per epoch."""
    share_floor: float = 0.001
    """Added to a pair's share in the exploration bonus, (share + this)^-0.5."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nodes < 16 or self.degree < 1 or self.epoch < 1:
            raise InputError("nodes must be at least 16, degree and epoch at least 1")
        if self.nodes * self.degree > LARGEST:
            raise InputError(f"nodes × degree must be at most {LARGEST}, got {self.nodes * self.degree}")
        if not 0 < self.decay <= 1 or not self.share_floor > 0:
            raise InputError("decay must lie in (0, 1], share-floor above 0")


def unstructured_settings(game: Game[Any], faithful: bool = False) -> UnstructuredSettings:
    """The defaults for a game."""
    return UnstructuredSettings(**vars(settings_for(game, faithful)))
