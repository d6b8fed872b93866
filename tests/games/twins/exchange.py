"""Exchange by its rule card, in plain Python."""

from .board import DIRECTIONS, Board, Cell

COLOURS = ["red", "green", "blue"]

PRICES = {
    ("red", "green"): (2, 1),
    ("red", "blue"): (3, 2),
    ("green", "red"): (3, 2),
    ("green", "blue"): (2, 1),
    ("blue", "red"): (2, 1),
    ("blue", "green"): (3, 2),
}
"""(given, taken) by (colour given, colour taken)."""


class ExchangeTwin:
    def __init__(self, board: Board, objects: dict[Cell, str]) -> None:
        self.board = board
        self.objects = objects
        self.held = dict.fromkeys(COLOURS, 0)

    def act(self, action: str) -> str:
        """Plays one action and says what came of it."""
        if action in DIRECTIONS:
            return self.board.walk(action)
        if action == "interact":
            colour = self.objects.pop(self.board.agent, None)
            if colour is None:
                return "nothing here"
            self.held[colour] += 1
            return f"pick {colour}"
        given, taken = action.removeprefix("trade ").split("→")
        price, ware = PRICES[given, taken]
        if self.held[given] < price:
            return "refused trade"
        self.held[given] -= price
        self.held[taken] += ware
        return action

    def over(self) -> bool:
        affordable = any(self.held[given] >= price for (given, _), (price, _) in PRICES.items())
        return not self.objects and not affordable

    def attributes(self) -> list[float]:
        left = list(self.objects.values())
        return [*(left.count(colour) for colour in COLOURS), *self.held.values()]

    def seen(self) -> list[tuple[int, int, int]]:
        return self.board.seen({cell: 1 + COLOURS.index(colour) for cell, colour in self.objects.items()})
