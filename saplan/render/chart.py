"""The plane of mining as part of a film: S, what was learnt of it, the goal and the path."""

import numpy as np
from numpy.typing import NDArray

from saplan.render.distance import Field, box, disc, stroke
from saplan.render.palette import FLOOR, INK, LINE, WHITE, Colour
from saplan.render.plane import INSIDE, Plane
from saplan.render.sprites import Layer, flatten
from saplan.render.start import Rho

RAMP: tuple[Colour, ...] = (
    (68, 1, 84), (70, 50, 126), (54, 92, 141), (39, 127, 142), (31, 161, 135), (74, 193, 109), (160, 218, 57),
    (253, 231, 37),
)  # fmt: skip
WALKED: Colour = (255, 90, 54)
WISH: Colour = (122, 79, 192)


def chart(
    plane: Plane, transition: str | None, history: list[Rho], ahead: list[Rho], goal: tuple[Rho, Rho], width: int
) -> Field:
    """A tile: colours by the learnt probability of one transition, the path so far, the one ahead, the goal."""
    scale = width / plane.size[0]
    height = round(plane.size[1] * scale)
    tile = np.concatenate([_ground(plane, transition, height, width), np.ones((height, width, 1), np.float32)], axis=-1)
    x, y = np.meshgrid(
        (np.arange(width, dtype=np.float32) + np.float32(0.5)) / np.float32(scale),
        (height - np.arange(height, dtype=np.float32) - np.float32(0.5)) / np.float32(scale),
    )
    for layer in _lines(x, y, plane, history, ahead, goal, 1 / scale):
        cover = flatten([layer], 1 / scale)
        tile[..., :3] += (cover[..., :3] - tile[..., :3]) * cover[..., 3:]
    return tile


def _ground(plane: Plane, transition: str | None, height: int, width: int) -> Field:
    """S in the colours of what was learnt, plain where nothing was; outside the page shines through."""
    rows, columns = np.arange(height)[::-1], np.arange(width)
    if plane.chances is None or transition not in plane.names:
        first, second = (columns + 0.5) * plane.size[0] / width, (rows + 0.5) * plane.size[1] / height
        distance = np.hypot(*np.meshgrid(first - plane.centre[0], second - plane.centre[1]))
        inside = (distance >= plane.inner) & (distance <= plane.outer)
        return np.where(inside[..., None], np.array(LINE, np.float32), np.array(FLOOR, np.float32))
    layer = plane.chances[plane.names.index(transition)]
    shown = layer[np.ix_(rows * layer.shape[0] // height, columns * layer.shape[1] // width)]
    colours = _tint((shown.astype(np.float32) - 1) / INSIDE)
    return np.where((shown > 0)[..., None], colours, np.array(FLOOR, np.float32))


def _tint(share: NDArray[np.float32]) -> Field:
    ramp = np.array(RAMP, np.float32)
    places = np.linspace(0, 1, len(ramp))
    return np.stack([np.interp(share, places, ramp[:, k]) for k in range(3)], axis=-1).astype(np.float32)


def _lines(
    x: Field, y: Field, plane: Plane, history: list[Rho], ahead: list[Rho], goal: tuple[Rho, Rho], pixel: float
) -> list[Layer]:
    """What lies over the ground, from back to front."""
    centre = (plane.centre[0], plane.centre[1])
    layers: list[Layer] = [
        (np.abs(disc(x, y, radius, centre)) - np.float32(0.7 * pixel), INK, 1.0)
        for radius in (plane.inner, plane.outer)
    ]
    low, high = (np.clip(side[:2], 0, plane.size) for side in goal)
    if np.all(high > low) and np.any(high - low < np.array(plane.size)):
        half, middle = (high - low) / 2, (high + low) / 2
        shape = box(x, y, (float(half[0]), float(half[1])), 0.1, (float(middle[0]), float(middle[1])))
        layers += [(shape, WISH, 0.45), (np.abs(shape) - np.float32(pixel), WHITE, 1.0)]
    flat = lambda places: [(place[0], place[1]) for place in places]  # noqa: E731
    if ahead:
        layers.append((stroke(x, y, flat([history[-1], *ahead]), 2 * pixel), WHITE, 0.8))
    layers.append((stroke(x, y, flat(history), 3 * pixel), WALKED, 1.0))
    layers.append((disc(x, y, 4 * pixel, flat(history)[0]), WALKED, 1.0))
    layers += [
        (disc(x, y, 6 * pixel, flat(history)[-1]), WHITE, 1.0),
        (disc(x, y, 4.5 * pixel, flat(history)[-1]), INK, 1.0),
    ]
    return layers
