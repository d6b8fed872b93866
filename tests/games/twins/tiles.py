"""Tiles by its rule card, in plain Python: a piece is the tuple of its corners, clockwise from the upper left."""

from .board import Board, Cell

Corners = tuple[int, ...]
PLAIN: Corners = (0, 1, 2, 3)


def turned(piece: Corners) -> Corners:
    """A quarter to the right: what was at the lower left comes to the upper left."""
    return piece[3], piece[0], piece[1], piece[2]


def mirrored(piece: Corners) -> Corners:
    """Left and right swapped."""
    return piece[1], piece[0], piece[3], piece[2]


def oriented(code: int) -> Corners:
    """The piece of a code: mirrored first if 4 or more, then turned as often as the rest says."""
    piece = mirrored(PLAIN) if code >= 4 else PLAIN
    for _ in range(code % 4):
        piece = turned(piece)
    return piece


class TilesTwin:
    def __init__(self, board: Board, stations: dict[Cell, str], codes: list[int], chosen: int) -> None:
        self.board = board
        self.stations = stations
        self.pieces = [oriented(code) for code in codes]
        self.chosen = chosen

    def act(self, action: str) -> str:
        """Plays one action and says what came of it."""
        if action != "interact":
            return self.board.walk(action)
        station = self.stations.get(self.board.agent, "nothing here")
        if station == "carousel":
            self.chosen = self.chosen + 1 if self.chosen + 1 < len(self.pieces) else 0
        elif station != "nothing here":
            change = turned if station == "turntable" else mirrored
            self.pieces[self.chosen] = change(self.pieces[self.chosen])
            return f"{station} {self.chosen}"
        return station

    def attributes(self) -> list[float]:
        codes = {oriented(code): code for code in range(8)}
        return [*(codes[piece] for piece in self.pieces), self.chosen]

    def seen(self) -> list[tuple[int, int, int]]:
        # The chosen piece is part of how the carousel looks.
        kinds = {"turntable": 1, "mirror": 2, "carousel": 3 + self.chosen}
        return self.board.seen({cell: kinds[station] for cell, station in self.stations.items()})
