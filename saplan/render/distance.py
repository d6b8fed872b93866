"""Signed distances to plain shapes: negative inside, positive outside. They make painted edges smooth."""

import itertools

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float32]
"""One number per pixel."""
Point = tuple[float, float]


def disc(x: Field, y: Field, radius: float, centre: Point = (0, 0)) -> Field:
    """A round plate."""
    distance: Field = np.hypot(x - np.float32(centre[0]), y - np.float32(centre[1])) - np.float32(radius)
    return distance


def box(x: Field, y: Field, half: Point, corner: float = 0.0, centre: Point = (0, 0)) -> Field:
    """A rectangle of these half sides with rounded corners."""
    dx = np.abs(x - np.float32(centre[0])) - np.float32(half[0] - corner)
    dy = np.abs(y - np.float32(centre[1])) - np.float32(half[1] - corner)
    outside = np.hypot(np.maximum(dx, 0), np.maximum(dy, 0))
    distance: Field = outside + np.minimum(np.maximum(dx, dy), 0) - np.float32(corner)
    return distance


def stroke(x: Field, y: Field, points: list[Point], width: float) -> Field:
    """A line through the points, round at its ends; one point alone is a dot."""
    pairs = list(itertools.pairwise(points)) or [(points[0], points[0])]
    nearest = np.full(np.broadcast(x, y).shape, np.inf, np.float32)
    for (ax, ay), (bx, by) in pairs:
        dx, dy = bx - ax, by - ay
        length = dx * dx + dy * dy
        along = np.clip(((x - ax) * dx + (y - ay) * dy) / length, 0, 1) if length else np.zeros_like(nearest)
        nearest = np.minimum(nearest, np.hypot(x - ax - along * dx, y - ay - along * dy))
    return (nearest - width / 2).astype(np.float32)


def polygon(x: Field, y: Field, points: list[Point]) -> Field:
    """A filled polygon: the distance to its rim, signed by how often a ray to the right crosses it."""
    rim = stroke(x, y, [*points, points[0]], 0)
    inside = np.zeros(rim.shape, bool)
    for (ax, ay), (bx, by) in itertools.pairwise([*points, points[0]]):
        if ay != by:
            crosses = ((ay > y) != (by > y)) & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
            inside ^= crosses
    return np.where(inside, -rim, rim)
