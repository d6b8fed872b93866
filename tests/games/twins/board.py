"""The ground of a game as a child would draw it: cells, walls and an agent, in plain Python."""

Cell = tuple[int, int]

DIRECTIONS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


class Board:
    def __init__(self, height: int, width: int, walls: set[Cell], agent: Cell) -> None:
        self.height = height
        self.width = width
        self.walls = walls
        self.agent = agent

    def walk(self, direction: str) -> str:
        """Moves the agent; says whether the way was free."""
        down, right = DIRECTIONS[direction]
        row, column = self.agent[0] + down, self.agent[1] + right
        if not (0 <= row < self.height and 0 <= column < self.width) or (row, column) in self.walls:
            return "bump"
        self.agent = (row, column)
        return "walk"

    def seen(self, items: dict[Cell, int]) -> list[tuple[int, int, int]]:
        """(kind, rows below, columns right) of everything on the map, walls being kind 0, sorted."""
        row, column = self.agent
        things = [(0, r - row, c - column) for r, c in self.walls]
        things += [(kind, r - row, c - column) for (r, c), kind in items.items()]
        return sorted(things)

    def edges(self) -> tuple[int, int, int, int]:
        """Free cells up to the upper, lower, left and right edge."""
        row, column = self.agent
        return row, self.height - 1 - row, column, self.width - 1 - column
