"""The plane of mining in a film: the set S, the learnt probability of a transition, the goal and the path."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from saplan.render.canvas import SCALE, Pen, Point
from saplan.render.palette import FLOOR, GOAL, HISTORY, INK, LINE, WHITE, Colour
from saplan.render.plane import INSIDE, Plane
from saplan.render.start import Rho

RAMP: tuple[Colour, ...] = (
    (68, 1, 84), (70, 50, 126), (54, 92, 141), (39, 127, 142), (31, 161, 135), (74, 193, 109), (160, 218, 57),
    (253, 231, 37),
)  # fmt: skip
"""From probability 0 to 1."""


def chart(
    plane: Plane,
    transition: str | None,
    history: Sequence[Rho],
    ahead: Sequence[Rho],
    goal: tuple[Rho, Rho],
    width: int,
) -> Image.Image:
    """A tile that shows the learnt probability of one transition, the path so far, the path ahead and the goal."""
    scale = width / plane.size[0]
    height = round(plane.size[1] * scale)
    image = Image.new("RGB", (width * SCALE, height * SCALE), FLOOR)
    pen, pixel = Pen(image, (scale, -scale), (0, height)), 1 / scale
    centre = (plane.centre[0], plane.centre[1])
    if plane.chances is not None and transition in plane.names:
        colours = _colours(plane.chances[plane.names.index(transition)][::-1])
        image.paste(Image.fromarray(colours).resize(image.size, Image.Resampling.NEAREST))
    else:
        pen.disc(plane.outer, LINE, centre)
        pen.disc(plane.inner, FLOOR, centre)
    for radius in (plane.inner, plane.outer):
        pen.disc(radius + 0.7 * pixel, INK, centre, line=1.4 * pixel)
    _draw_goal(pen, plane, goal, pixel)
    places = _flat(history)
    if ahead:
        pen.stroke([places[-1], *_flat(ahead)], 2 * pixel, WHITE)
    pen.stroke(places, 3 * pixel, HISTORY)
    pen.disc(4 * pixel, HISTORY, places[0])
    pen.disc(6 * pixel, WHITE, places[-1])
    pen.disc(4.5 * pixel, INK, places[-1])
    return pen.tile()


def _draw_goal(pen: Pen, plane: Plane, goal: tuple[Rho, Rho], pixel: float) -> None:
    """The part of the plane that meets the goal, unless that is empty or all of it."""
    low, high = (np.clip(bound[:2], 0, plane.size) for bound in goal)
    if np.all(high > low) and np.any(high - low < np.array(plane.size)):
        middle, half = ((float(a), float(b)) for a, b in ((high + low) / 2, (high - low) / 2))
        pen.box(half, 0.1, (*GOAL, 115), middle)
        pen.box(half, 0.1, WHITE, middle, line=2 * pixel)


def _colours(codes: UInt8[np.ndarray, "height width"]) -> UInt8[np.ndarray, "height width 3"]:
    """Probabilities as colours, read from the bytes of a `Plane`."""
    table: Float[np.ndarray, "256 3"] = np.empty((256, 3))
    table[0] = FLOOR
    steps = np.linspace(0, INSIDE, len(RAMP))
    table[1:] = np.stack([np.interp(np.arange(255), steps, channel) for channel in np.array(RAMP).T], axis=-1)
    colours: UInt8[np.ndarray, "height width 3"] = np.round(table).astype(np.uint8)[codes]
    return colours


def _flat(places: Sequence[Rho]) -> list[Point]:
    return [(place[0], place[1]) for place in places]
