"""One picture tile per thing. Every kind has a mark of its own, so that grey print tells them apart as well."""

import functools
import math
from collections.abc import Callable

import numpy as np

from saplan.render.distance import Field, Point, box, disc, polygon, stroke
from saplan.render.palette import INK, KINDS, WALL, WHITE, WOOD, Colour, on_top, shade

Layer = tuple[Field, Colour, float]
"""(signed distance, colour, opacity), painted from back to front."""
SHADOW = 0.16


@functools.cache
def sprite(shape: str, colour: str, size: int) -> Field:
    """The tile of a thing, `size` pixels wide: red, green, blue (0..255, not yet multiplied) and opacity (0..1)."""
    line = (np.arange(size, dtype=np.float32) + np.float32(0.5)) * np.float32(2 / size) - 1
    x, y = np.meshgrid(line, line)
    layers = SHAPES.get(shape, _object)(x, y, colour)
    return flatten(layers, 2 / size)


def flatten(layers: list[Layer], pixel: float) -> Field:
    """Lays layers over one another; an edge covers a pixel by as much as its distance says."""
    canvas = np.zeros((*layers[0][0].shape, 4), np.float32)
    for distance, colour, opacity in layers:
        cover = np.clip(0.5 - distance / pixel, 0, 1) * opacity
        alpha = cover + canvas[..., 3] * (1 - cover)
        share = np.divide(cover, alpha, out=np.zeros_like(cover), where=alpha > 0)[..., None]
        canvas[..., :3] = np.asarray(colour, np.float32) * share + canvas[..., :3] * (1 - share)
        canvas[..., 3] = alpha
    return canvas


def mark(x: Field, y: Field, colour: str, size: float, centre: Point = (0, 0)) -> Layer:
    """The sign of a kind."""
    x, y = (x - np.float32(centre[0])) / np.float32(size), (y - np.float32(centre[1])) / np.float32(size)
    triangle: list[Point] = [(0, -0.95), (0.95, 0.75), (-0.95, 0.75)]
    signs: dict[str, Callable[[], Field]] = {
        "red": lambda: disc(x, y, 0.72),
        "green": lambda: np.minimum(stroke(x, y, [(-0.8, 0), (0.8, 0)], 0.5), stroke(x, y, [(0, -0.8), (0, 0.8)], 0.5)),
        "blue": lambda: box(x, y, (0.74, 0.74), 0.1),
        "yellow": lambda: polygon(x, y, triangle),
        "purple": lambda: stroke(x, y, [(-0.8, 0), (0.8, 0)], 0.6),
        "cyan": lambda: np.abs(disc(x, y, 0.7)) - np.float32(0.24),
    }
    distance = signs[colour]() if colour in signs else disc(x, y, 0.3)
    return (distance * np.float32(size)).astype(np.float32), on_top(KINDS.get(colour, KINDS["grey"])), 0.95


def _paint(colour: str) -> Colour:
    return KINDS.get(colour, KINDS["grey"])


def _object(x: Field, y: Field, colour: str) -> list[Layer]:
    fill = _paint(colour)
    return [
        (disc(x, y, 0.7, (0.03, 0.09)), INK, SHADOW),
        (disc(x, y, 0.7), shade(fill, -0.25), 1),
        (disc(x, y, 0.62), fill, 1),
        (np.maximum(disc(x, y, 0.55), -disc(x, y, 0.61, (0.1, 0.13))), shade(fill, 0.6), 0.8),
        mark(x, y, colour, 0.3),
    ]


def _switch(x: Field, y: Field, colour: str) -> list[Layer]:
    fill = _paint(colour)
    ticks = [(-math.pi / 2) + k * math.pi / 4 for k in range(8)]
    rim = [stroke(x, y, [(0.6 * math.cos(t), 0.6 * math.sin(t))], 0.1) for t in ticks]
    return [
        (box(x, y, (0.8, 0.8), 0.24, (0.03, 0.07)), INK, SHADOW),
        (box(x, y, (0.8, 0.8), 0.24), INK, 1),
        (box(x, y, (0.72, 0.72), 0.18), shade(INK, 0.14), 1),
        (np.minimum.reduce(rim), shade(INK, 0.5), 1),
        (polygon(x, y, [(-0.16, -0.7), (0.16, -0.7), (0, -0.44)]), WHITE, 1),
        (disc(x, y, 0.5), WHITE, 1),
        (disc(x, y, 0.42), fill, 1),
        mark(x, y, colour, 0.22),
    ]


def _deposit(x: Field, y: Field, colour: str) -> list[Layer]:
    fill = _paint(colour)
    left, right, tip = (-0.76, -0.14), (0.76, -0.14), (0.0, 0.74)
    top_left, top_right, inner_left, inner_right = (-0.44, -0.56), (0.44, -0.56), (-0.3, -0.14), (0.3, -0.14)
    outline: list[Point] = [top_left, top_right, right, tip, left]
    facets: list[tuple[list[Point], float]] = [
        ([top_left, left, inner_left], 0.3),
        ([top_left, top_right, inner_right, inner_left], 0.5),
        ([top_right, right, inner_right], 0.12),
        ([left, inner_left, tip], 0.1),
        ([inner_left, inner_right, tip], 0.0),
        ([inner_right, right, tip], -0.22),
    ]
    rim = polygon(x, y, outline)
    return [
        (polygon(x - np.float32(0.03), y - np.float32(0.08), outline) - 0.06, INK, SHADOW),
        (rim - 0.07, shade(fill, -0.4), 1),
        *((polygon(x, y, points) - 0.008, shade(fill, light), 1.0) for points, light in facets),
        mark(x, y, colour, 0.17, (0, 0.1)),
    ]


def _dump(x: Field, y: Field, colour: str) -> list[Layer]:
    fill = _paint(colour)
    bin_: list[Point] = [(-0.6, -0.08), (0.6, -0.08), (0.46, 0.66), (-0.46, 0.66)]
    arrow = np.minimum(
        stroke(x, y, [(0, -0.78), (0, -0.5)], 0.16), polygon(x, y, [(-0.27, -0.54), (0.27, -0.54), (0, -0.22)])
    )
    return [
        (polygon(x - np.float32(0.03), y - np.float32(0.07), bin_) - 0.08, INK, SHADOW),
        (polygon(x, y, bin_) - 0.08, shade(fill, -0.4), 1),
        (polygon(x, y, bin_), fill, 1),
        (stroke(x, y, [(-0.7, -0.1), (-0.4, -0.1)], 0.15), shade(fill, -0.4), 1),
        (stroke(x, y, [(0.4, -0.1), (0.7, -0.1)], 0.15), shade(fill, -0.4), 1),
        (box(x, y, (0.36, 0.07), 0.0, (0, -0.1)), shade(fill, -0.65), 1),
        (arrow - 0.02, shade(fill, -0.4), 1),
        mark(x, y, colour, 0.19, (0, 0.3)),
    ]


def _store(x: Field, y: Field, colour: str) -> list[Layer]:
    del colour
    stripes = [box(x, y, (0.1, 0.15), 0.0, (c, -0.47)) for c in (-0.6, -0.2, 0.2, 0.6)]
    scallops = [disc(x, y, 0.1, (c, -0.32)) for c in (-0.6, -0.2, 0.2, 0.6)]
    gaps = [disc(x, y, 0.1, (c, -0.32)) for c in (-0.4, 0.0, 0.4)]
    awning = np.minimum.reduce([box(x, y, (0.72, 0.16), 0.06, (0, -0.48)), *scallops, *gaps])
    return [
        (box(x, y, (0.66, 0.62), 0.08, (0.03, 0.16)), INK, SHADOW),
        (box(x, y, (0.62, 0.62), 0.08, (0, 0.1)), INK, 1),
        (box(x, y, (0.55, 0.55), 0.05, (0, 0.1)), (236, 226, 208), 1),
        (awning - 0.06, INK, 1),
        (awning, WHITE, 1),
        (np.maximum(np.minimum.reduce([*stripes, *scallops]), awning), WOOD, 1),
        *_hammer_layers(x, y, 0.52, (0, 0.26)),
    ]


def _hammer(x: Field, y: Field, colour: str) -> list[Layer]:
    del colour
    return _hammer_layers(x, y, 1.0, (0, 0.05))


def _hammer_layers(x: Field, y: Field, size: float, centre: Point) -> list[Layer]:
    """A mallet leaning to the left; its distances are scaled back to the tile's."""
    cx, cy = np.float32(centre[0]), np.float32(centre[1])
    turn, scale = math.radians(38), np.float32(size)
    u = ((x - cx) * math.cos(turn) + (y - cy) * math.sin(turn)).astype(np.float32) / scale
    v = (-(x - cx) * math.sin(turn) + (y - cy) * math.cos(turn)).astype(np.float32) / scale
    handle = box(u, v, (0.1, 0.62), 0.08, (0, 0.12)) * scale
    head = box(u, v, (0.44, 0.22), 0.08, (0, -0.44)) * scale
    return [(handle - 0.03, INK, 1), (handle, WOOD, 1), (head - 0.03, INK, 1), (head, shade(WALL, 0.25), 1)]


def _wall(x: Field, y: Field, colour: str) -> list[Layer]:
    del colour
    return [
        (box(x, y, (0.95, 0.95), 0.2), shade(WALL, -0.3), 1),
        (box(x, y, (0.95, 0.88), 0.2, (0, -0.07)), WALL, 1),
        (np.abs(box(x, y, (0.88, 0.81), 0.15, (0, -0.07))) - np.float32(0.012), shade(WALL, 0.18), 0.8),
    ]


def _agent(x: Field, y: Field, colour: str) -> list[Layer]:
    del colour
    smile: list[Point] = [(0.3 * math.cos(t), 0.06 + 0.28 * math.sin(t)) for t in np.linspace(0.35, math.pi - 0.35, 9)]
    eyes = np.minimum(disc(x * 1.25, y, 0.17, (-0.27 * 1.25, -0.14)), disc(x * 1.25, y, 0.17, (0.27 * 1.25, -0.14)))
    pupils = np.minimum(disc(x, y, 0.075, (-0.24, -0.11)), disc(x, y, 0.075, (0.3, -0.11)))
    return [
        (disc(x, y, 0.78, (0.03, 0.08)), INK, SHADOW),
        (disc(x, y, 0.78), WHITE, 1),
        (disc(x, y, 0.69), INK, 1),
        (eyes, WHITE, 1),
        (pupils, INK, 1),
        (stroke(x, y, smile, 0.1), WHITE, 1),
    ]


SHAPES: dict[str, Callable[[Field, Field, str], list[Layer]]] = {
    "object": _object,
    "switch": _switch,
    "deposit": _deposit,
    "dump": _dump,
    "store": _store,
    "hammer": _hammer,
    "wall": _wall,
    "agent": _agent,
}
