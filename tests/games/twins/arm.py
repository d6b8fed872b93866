"""Arm by its rule card, in plain Python with complex numbers."""

import cmath
import math

from .board import Board, Cell

POST = cmath.rect(0.9, math.radians(90 - 120))


def along(degrees: float) -> complex:
    """A part of the arm: 0 degrees is up, and angles grow clockwise."""
    return cmath.rect(1.0, math.radians(90 - degrees))


def touches(shoulder: float, elbow: float) -> bool:
    """Whether one of many points on the arm lies within the post."""
    upper, fore = along(shoulder), along(shoulder + elbow)
    shares = [k / 200 for k in range(201)]
    points = [upper * share for share in shares] + [upper + fore * share for share in shares]
    return min(abs(point - POST) for point in points) <= 0.3


class ArmTwin:
    def __init__(self, board: Board, cranks: dict[Cell, tuple[int, int]], angles: list[float]) -> None:
        self.board = board
        self.cranks = cranks  # place → (joint, sign)
        self.angles = angles

    def act(self, action: str) -> str:
        """Plays one action and says what came of it."""
        if action != "interact":
            return self.board.walk(action)
        if self.board.agent not in self.cranks:
            return "nothing here"
        joint, sign = self.cranks[self.board.agent]
        name = f"turn {joint} {sign:+d}"
        turned = list(self.angles)
        for _ in range(8):
            turned[joint] += sign * 22.5 / 8
            if touches(*turned):
                return f"refused {name}"
        self.angles = [angle % 360 for angle in turned]
        return name

    def attributes(self) -> list[float]:
        return self.angles

    def seen(self) -> list[tuple[int, int, int]]:
        return self.board.seen({cell: 1 + 2 * joint + (sign < 0) for cell, (joint, sign) in self.cranks.items()})
