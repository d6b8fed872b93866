"""Mining by its rule card, in plain Python."""

import math

from .board import Board, Cell

LOOKS = {"deposit 0": 1, "deposit 1": 2, "store": 3, "dump 0": 4, "dump 1": 5}


class MiningTwin:
    """`yields` must be told after a hammer was bought: it is drawn then, and hidden."""

    def __init__(self, board: Board, items: dict[Cell, str], minerals: list[float]) -> None:
        self.board = board
        self.items = items
        self.minerals = minerals
        self.hammer = False
        self.yields = math.nan

    def act(self, action: str) -> str:
        """Plays one action and says what came of it."""
        if action != "interact":
            return self.board.walk(action)
        item = self.items.get(self.board.agent)
        if item is None:
            return "nothing here"
        if item == "store":
            if self.hammer:
                return "refused purchase"
            self.hammer = True
            return "buy"
        mineral = int(item[-1])
        if item.startswith("dump"):
            return f"dump {mineral}" if self._change(mineral, -1.0) else f"refused dump {mineral}"
        if not self.hammer:
            return "bare hands"
        if not self._change(mineral, self.yields):
            return f"refused dig {mineral}"
        self.hammer = False
        return f"dig {mineral}"

    def _change(self, mineral: int, amount: float) -> bool:
        wanted = list(self.minerals)
        wanted[mineral] += amount
        if not self.allowed(wanted):
            return False
        self.minerals = wanted
        return True

    @staticmethod
    def allowed(minerals: list[float]) -> bool:
        return min(minerals) >= 0 and 2.5 <= math.hypot(minerals[0] - 6, minerals[1] - 1) <= 7

    def attributes(self) -> list[float]:
        return [*self.minerals, float(self.hammer)]

    def seen(self) -> list[tuple[int, int, int]]:
        return self.board.seen({cell: LOOKS[item] for cell, item in self.items.items()})
