"""A small stroke font: smooth at every size, and no font file to carry along.

A glyph is a list of strokes on a grid of points `xy`, x from the left, y from the top: 0 the height of capitals, 2 that
of small letters, 6 the line they stand on, 8 the lowest. Bends are rounded by cutting corners; a point written twice
stays sharp.
"""

import functools
import itertools

import numpy as np

from saplan.render.distance import Field, Point, stroke

GLYPHS = {
    "0": "10 30 41 45 36 16 05 01 10",
    "1": "01 20 20 26",
    "2": "01 10 30 41 42 06 06 46",
    "3": "01 10 30 41 42 33 23|23 33 44 45 36 16 05",
    "4": "36 30 30 04 04 44",
    "5": "40 00 00 02 02 22 32 43 45 36 16 05",
    "6": "41 30 10 01 05 16 36 45 43 32 12 03",
    "7": "00 40 40 16",
    "8": "10 30 41 42 33 13 02 01 10|13 33 44 45 36 16 05 04 13",
    "9": "05 16 36 45 41 30 10 01 03 14 34 43",
    "a": "43 32 12 03 05 16 36 45|42 46",
    "b": "00 06|03 12 32 43 45 36 16 05",
    "c": "43 32 12 03 05 16 36 45",
    "d": "40 46|43 32 12 03 05 16 36 45",
    "e": "04 44 44 43 32 12 03 05 16 36 45",
    "f": "30 20 11 16|02 32",
    "g": "43 32 12 03 05 16 36 45|42 47 38 18 07",
    "h": "00 06|03 12 32 43 46",
    "i": "02 06|00",
    "j": "12 17 08|10",
    "k": "00 06|32 04|14 36",
    "l": "00 06",
    "m": "02 06|03 12 22 33 36|33 42 52 63 66",
    "n": "02 06|03 12 32 43 46",
    "o": "12 32 43 45 36 16 05 03 12",
    "p": "02 08|03 12 32 43 45 36 16 05",
    "q": "42 48|43 32 12 03 05 16 36 45",
    "r": "02 06|04 13 22 32",
    "s": "43 32 12 03 14 34 45 36 16 05",
    "t": "10 15 26 36|02 32",
    "u": "02 05 16 36 45|42 46",
    "v": "02 26 26 42",
    "w": "02 16 16 32 32 46 46 62",
    "x": "02 46|42 06",
    "y": "02 25|42 08",
    "z": "02 42 42 06 06 46",
    ".": "06",
    "-": "04 34",
    "+": "04 44|22 26",
    "/": "30 07",
    "=": "03 43|05 45",
}
UNKNOWN = "00 40 40 46 46 06 06 00"
SPACE = 3
GAP = 2
HEIGHT = 8
WEIGHT = 0.95
"""Width of a stroke, in points of the grid."""


@functools.cache
def text(words: str, size: int) -> Field:
    """Coverage from 0 to 1 of the words at `size` pixels per eight points of the grid."""
    unit = HEIGHT / size
    strokes, width = _strokes(words)
    x, y = np.meshgrid(
        (np.arange(max(1, round(width / unit)), dtype=np.float32) + np.float32(0.5)) * unit - 1,
        (np.arange(round((HEIGHT + 2) / unit), dtype=np.float32) + np.float32(0.5)) * unit - 1,
    )
    distance = np.full(x.shape, np.inf, np.float32)
    for points in strokes:
        distance = np.minimum(distance, stroke(x, y, points, WEIGHT))
    return np.clip(0.5 - distance / unit, 0, 1)


def _strokes(words: str) -> tuple[list[list[Point]], float]:
    """The strokes of a line of text, and its width."""
    strokes: list[list[Point]] = []
    left = 0.0
    for character in words.lower():
        if character == " ":
            left += SPACE
            continue
        glyph = [[(float(p[0]), float(p[1])) for p in part.split()] for part in _glyph(character).split("|")]
        strokes += [[(px + left, py) for px, py in _rounded(part)] for part in glyph]
        left += max(px for part in glyph for px, _ in part) + GAP
    return strokes, left - GAP + 2


def _glyph(character: str) -> str:
    return GLYPHS.get(character, UNKNOWN)


def _rounded(points: list[Point], times: int = 2) -> list[Point]:
    """Chaikin's corner cutting: every bend becomes two, nearer to a curve each time."""
    for _ in range(times if len(points) > 2 else 0):
        cut = [points[0]]
        for (ax, ay), (bx, by) in itertools.pairwise(points):
            cut += [(0.75 * ax + 0.25 * bx, 0.75 * ay + 0.25 * by), (0.25 * ax + 0.75 * bx, 0.25 * ay + 0.75 * by)]
        points = [*cut, points[-1]]
    return points
