"""Scenes: one state as people see it, the only input of pictures and of drawings in the terminal."""

from dataclasses import dataclass, field, replace

import numpy as np

from saplan.games.grid import NOWHERE, PITCH, Map

COLOURS = ("red", "green", "blue", "yellow", "purple", "cyan")
"""Names of the kinds, in order, and the colours they are drawn in."""


@dataclass(frozen=True)
class Thing:
    """An item on the map."""

    row: int
    column: int
    shape: str
    """One of `object`, `switch`, `deposit`, `store`, `dump`, `turn_right`, `turn_left`, `mirror`."""
    colour: str
    """One of `COLOURS`, or `grey`."""


@dataclass(frozen=True)
class Scene:
    """A map with its things and the agent, and the inventory below it."""

    height: int
    width: int
    walls: frozenset[tuple[int, int]]
    agent: tuple[int, int]
    things: tuple[Thing, ...]
    inventory: tuple[tuple[str, str, str], ...]
    """(label, colour, value) from left to right."""
    picture: np.ndarray | None = field(default=None, compare=False)
    """A picture of a world without a map of ours, as bytes by row, column and colour; its height and width are 0."""

    @property
    def has_map(self) -> bool:
        """Whether there is a map; worlds of other packages have none."""
        return self.height > 0


def ground_scene(ground: Map, things: list[tuple[int, Thing]], inventory: tuple[tuple[str, str, str], ...]) -> Scene:
    """Scene of a map with things at their places, without those that are NOWHERE."""
    placed = [replace(thing, row=p // PITCH, column=p % PITCH) for p, thing in things if p != NOWHERE]
    return Scene(
        height=int(ground.height),
        width=int(ground.width),
        walls=frozenset(divmod(place, PITCH) for place in ground.walls.tolist() if place != NOWHERE),
        agent=divmod(int(ground.agent), PITCH),
        things=tuple(placed),
        inventory=inventory,
    )
