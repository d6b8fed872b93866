"""Switches by its rule card, in plain Python."""

from .board import Board, Cell


class SwitchesTwin:
    def __init__(self, board: Board, objects: dict[Cell, int], kinds: int, switch_cell: Cell, switch: int) -> None:
        self.board = board
        self.objects = objects
        self.kinds = kinds
        self.switch_cell = switch_cell
        self.switch = switch
        self.held = [0] * kinds

    def act(self, action: str) -> str:
        """Plays one action and says what came of it."""
        if action != "interact":
            return self.board.walk(action)
        here = self.board.agent
        if here == self.switch_cell:
            self.switch = self.switch + 1 if self.switch + 1 < self.kinds else 0
            return "turn"
        if here not in self.objects:
            return "nothing here"
        kind = self.objects[here]
        if kind != self.switch:
            return "refused pick"
        del self.objects[here]
        self.held[kind] += 1
        return f"pick {kind}"

    def attributes(self) -> list[float]:
        left = list(self.objects.values())
        return [*(left.count(kind) for kind in range(self.kinds)), *self.held, self.switch]

    def seen(self) -> list[tuple[int, int, int]]:
        items = {cell: 1 + kind for cell, kind in self.objects.items()}
        # What the switch shows is part of how it looks.
        items[self.switch_cell] = 1 + self.kinds + self.switch
        return self.board.seen(items)
