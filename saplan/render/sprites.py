"""One tile per shape. Every kind also has a mark of its own, so that kinds differ in greyscale too."""

import functools
import math
from collections.abc import Callable

from PIL import Image

from saplan.render.canvas import Pen, Point, centred_pen
from saplan.render.palette import INK, WALL, WHITE, WOOD, Colour, Paint, contrast, kind, shade

SHADOW: Paint = (*INK, 41)
PLASTER: Colour = (236, 226, 208)


@functools.lru_cache(maxsize=512)
def sprite(shape: str, colour: str, size: int) -> Image.Image:
    """The tile of a thing, `size` pixels wide, on a transparent ground; unknown shapes are drawn as objects."""
    pen = centred_pen(size, size, size / 2)
    SHAPES.get(shape, draw_object)(pen, colour)
    return pen.tile()


def draw_mark(pen: Pen, colour: str) -> None:
    """The mark of a kind, in white or ink."""
    paint = contrast(kind(colour))
    if colour == "red":
        pen.disc(0.72, paint)
    elif colour == "green":
        pen.stroke([(-0.8, 0), (0.8, 0)], 0.5, paint)
        pen.stroke([(0, -0.8), (0, 0.8)], 0.5, paint)
    elif colour == "blue":
        pen.box((0.74, 0.74), 0.1, paint)
    elif colour == "yellow":
        pen.polygon([(0, -0.95), (0.95, 0.75), (-0.95, 0.75)], paint)
    elif colour == "purple":
        pen.stroke([(-0.8, 0), (0.8, 0)], 0.6, paint)
    elif colour == "cyan":
        pen.disc(0.94, paint, line=0.48)
    else:
        pen.disc(0.3, paint)


def draw_object(pen: Pen, colour: str) -> None:
    """A button with a highlight at its upper left."""
    fill = kind(colour)
    pen.disc(0.7, SHADOW, (0.03, 0.09))
    pen.disc(0.7, shade(fill, -0.25))
    pen.disc(0.62, fill)
    crescent = arc(0.55, 156, 309) + arc(0.61, 293, 171, (0.1, 0.13))
    pen.polygon(crescent, shade(fill, 0.48))
    draw_mark(pen.inside(0.3, (0, 0)), colour)


def draw_switch(pen: Pen, colour: str) -> None:
    """A dark dial that shows a kind."""
    pen.box((0.8, 0.8), 0.24, SHADOW, (0.03, 0.07))
    pen.box((0.8, 0.8), 0.24, INK)
    pen.box((0.72, 0.72), 0.18, shade(INK, 0.14))
    for centre in arc(0.6, -90, 225, count=8):
        pen.disc(0.05, shade(INK, 0.5), centre)
    pen.polygon([(-0.16, -0.7), (0.16, -0.7), (0, -0.44)], WHITE)
    pen.disc(0.5, WHITE)
    pen.disc(0.42, kind(colour))
    draw_mark(pen.inside(0.22, (0, 0)), colour)


def draw_deposit(pen: Pen, colour: str) -> None:
    """A cut gem of six facets."""
    fill = kind(colour)
    left, right, tip = (-0.76, -0.14), (0.76, -0.14), (0.0, 0.74)
    top_left, top_right, inner_left, inner_right = (-0.44, -0.56), (0.44, -0.56), (-0.3, -0.14), (0.3, -0.14)
    outline = [top_left, top_right, right, tip, left]
    pen.inside(1, (0.03, 0.08)).polygon(outline, SHADOW, rim=0.06)
    pen.polygon(outline, shade(fill, -0.4), rim=0.07)
    facets: list[tuple[float, list[Point]]] = [
        (0.3, [top_left, left, inner_left]),
        (0.5, [top_left, top_right, inner_right, inner_left]),
        (0.12, [top_right, right, inner_right]),
        (0.1, [left, inner_left, tip]),
        (0.0, [inner_left, inner_right, tip]),
        (-0.22, [inner_right, right, tip]),
    ]
    for light, points in facets:
        pen.polygon(points, shade(fill, light))
    draw_mark(pen.inside(0.17, (0, 0.1)), colour)


def draw_dump(pen: Pen, colour: str) -> None:
    """A bin with an arrow that points into it."""
    fill = kind(colour)
    dark = shade(fill, -0.4)
    corners = [(-0.6, -0.08), (0.6, -0.08), (0.46, 0.66), (-0.46, 0.66)]
    pen.inside(1, (0.03, 0.07)).polygon(corners, SHADOW, rim=0.08)
    pen.polygon(corners, dark, rim=0.08)
    pen.polygon(corners, fill)
    pen.stroke([(-0.7, -0.1), (-0.4, -0.1)], 0.15, dark)
    pen.stroke([(0.4, -0.1), (0.7, -0.1)], 0.15, dark)
    pen.box((0.36, 0.07), 0.0, shade(fill, -0.65), (0, -0.1))
    pen.stroke([(0, -0.78), (0, -0.5)], 0.2, dark)
    pen.polygon([(-0.27, -0.54), (0.27, -0.54), (0, -0.22)], dark, rim=0.02)
    draw_mark(pen.inside(0.19, (0, 0.3)), colour)


def draw_store(pen: Pen, colour: str) -> None:
    """A shop with an awning, and a hammer on its wall."""
    pen.box((0.66, 0.62), 0.08, SHADOW, (0.03, 0.16))
    pen.box((0.62, 0.62), 0.08, INK, (0, 0.1))
    pen.box((0.55, 0.55), 0.05, PLASTER, (0, 0.1))
    stripes = [0.2 * k for k in range(-3, 4)]
    for rim, paint in ((0.06, INK), (0.0, WHITE)):
        pen.box((0.72 + rim, 0.16 + rim), 0.06 + rim, paint, (0, -0.48))
        for middle in stripes:
            pen.disc(0.1 + rim, paint, (middle, -0.32))
    for middle in stripes[::2]:
        pen.box((0.1, 0.15), 0.0, WOOD, (middle, -0.47))
        pen.disc(0.1, WOOD, (middle, -0.32))
    draw_hammer(pen.inside(0.52, (0, 0.21)), "grey")


def draw_hammer(pen: Pen, colour: str) -> None:
    """A mallet that leans to the right."""
    turn = math.radians(38)
    for half, middle, paint in (((0.02, 0.54), 0.17, WOOD), ((0.36, 0.14), -0.39, shade(WALL, 0.25))):
        corners = [(x * half[0], middle + y * half[1]) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        turned = [
            (u * math.cos(turn) - v * math.sin(turn), u * math.sin(turn) + v * math.cos(turn)) for u, v in corners
        ]
        pen.polygon(turned, INK, rim=0.12)
        pen.polygon(turned, paint, rim=0.08)


def draw_turn(pen: Pen, colour: str, side: int = 1) -> None:
    """A button with an arrow that turns to the right, or to the left for a `side` of -1."""
    fill = kind(colour)
    pen.disc(0.78, SHADOW, (0.03, 0.09))
    pen.disc(0.78, shade(fill, -0.25))
    pen.disc(0.7, fill)
    line = contrast(fill)
    pen.stroke([(side * x, y) for x, y in arc(0.42, -90, 80)], 0.2, line)
    pen.polygon([(side * -0.36, 0.42), (side * 0.06, 0.1), (side * 0.06, 0.74)], line)


def draw_mirror(pen: Pen, colour: str) -> None:
    """A plate with a line down its middle and an arrow to either side."""
    fill = kind(colour)
    pen.box((0.78, 0.7), 0.16, SHADOW, (0.03, 0.09))
    pen.box((0.78, 0.7), 0.16, shade(fill, -0.25))
    pen.box((0.7, 0.62), 0.12, fill)
    line = contrast(fill)
    pen.stroke([(0, -0.46), (0, 0.46)], 0.1, line)
    for side in (-1, 1):
        pen.polygon([(side * 0.16, -0.3), (side * 0.16, 0.3), (side * 0.56, 0)], line)


def draw_wall(pen: Pen, colour: str) -> None:
    """A block of stone."""
    pen.box((0.95, 0.95), 0.2, shade(WALL, -0.3))
    pen.box((0.95, 0.88), 0.2, WALL, (0, -0.07))
    pen.box((0.89, 0.82), 0.16, shade(WALL, 0.14), (0, -0.07), line=0.025)


def draw_agent(pen: Pen, colour: str) -> None:
    """A smiling face."""
    pen.disc(0.78, SHADOW, (0.03, 0.08))
    pen.disc(0.78, WHITE)
    pen.disc(0.69, INK)
    for side in (-0.27, 0.27):
        pen.stroke([(side, -0.17), (side, -0.11)], 0.27, WHITE)
        pen.disc(0.075, INK, (side + 0.03, -0.11))
    pen.stroke(arc(0.29, 20, 160, (0, 0.06)), 0.1, WHITE)


def arc(radius: float, start: float, end: float, centre: Point = (0, 0), count: int = 24) -> list[Point]:
    """Points on a circle from one angle to another, in degrees: 0 is right, 90 is down."""
    angles = [math.radians(start + (end - start) * k / (count - 1)) for k in range(count)]
    return [(centre[0] + radius * math.cos(a), centre[1] + radius * math.sin(a)) for a in angles]


SHAPES: dict[str, Callable[[Pen, str], None]] = {
    "object": draw_object,
    "switch": draw_switch,
    "deposit": draw_deposit,
    "dump": draw_dump,
    "store": draw_store,
    "hammer": draw_hammer,
    "turn_right": draw_turn,
    "turn_left": functools.partial(draw_turn, side=-1),
    "mirror": draw_mirror,
    "wall": draw_wall,
    "agent": draw_agent,
}
