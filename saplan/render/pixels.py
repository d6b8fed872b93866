"""A scene as a picture: an array of red, green and blue, painted with numpy alone."""

import functools

import numpy as np
from numpy.typing import NDArray

from saplan.games.scene import Scene
from saplan.render.distance import Field, box
from saplan.render.lettering import text
from saplan.render.palette import FLOOR, INK, LINE, PAGE, Colour, shade
from saplan.render.sprites import flatten, sprite

Picture = NDArray[np.uint8]


def paint(scene: Scene, cell: int = 48, least: tuple[int, int] = (0, 0)) -> Picture:
    """The scene at `cell` pixels a cell, its inventory in a strip below.

    Maps differ in size; `least` (rows, columns) centres small ones on a canvas that all of them share, as films need.
    """
    rows, columns = max(scene.height, least[0]), max(scene.width, least[1])
    margin, strip = cell // 3, cell
    canvas = np.empty((rows * cell + strip + 3 * margin, columns * cell + 2 * margin, 3), np.float32)
    canvas[:] = PAGE
    top = margin + (rows - scene.height) * cell // 2
    left = margin + (columns - scene.width) * cell // 2
    _floor(canvas, top, left, scene.height, scene.width, cell)
    _things(canvas, top, left, scene, cell)
    _inventory(canvas, rows * cell + 2 * margin, margin, scene, strip)
    return np.round(canvas).astype(np.uint8)


def _floor(canvas: Field, top: int, left: int, height: int, width: int, cell: int) -> None:
    """The ground: a light plate with a soft grid."""
    _lay(canvas, _plate(height * cell, width * cell, cell, FLOOR), top, left)
    thickness = max(1, cell // 32)
    plate = canvas[top : top + height * cell, left : left + width * cell]
    for k in range(1, height):
        plate[k * cell - thickness // 2 :, thickness:-thickness][:thickness] = LINE
    for k in range(1, width):
        plate[thickness:-thickness, k * cell - thickness // 2 :][:, :thickness] = LINE


@functools.lru_cache(maxsize=32)
def _plate(height: int, width: int, cell: int, fill: Colour) -> Field:
    """A rounded rectangle with a thin rim."""
    x, y = np.meshgrid(
        np.arange(width, dtype=np.float32) - np.float32((width - 1) / 2),
        np.arange(height, dtype=np.float32) - np.float32((height - 1) / 2),
    )
    distance = box(x, y, (width / 2, height / 2), cell / 6)
    return flatten([(distance, shade(LINE, -0.15), 1), (distance + max(1, cell // 32), fill, 1)], 1.0)


def _things(canvas: Field, top: int, left: int, scene: Scene, cell: int) -> None:
    """Walls, things and the agent. The agent and what it stands on share their cell, both smaller."""
    for row, column in scene.walls:
        _lay(canvas, sprite("wall", "grey", cell), top + row * cell, left + column * cell)
    shared = round(cell * 0.68)
    for thing in scene.things:
        size = shared if (thing.row, thing.column) == scene.agent else cell
        _lay(canvas, sprite(thing.shape, thing.colour, size), top + thing.row * cell, left + thing.column * cell)
    stands = any((thing.row, thing.column) == scene.agent for thing in scene.things)
    size = shared if stands else cell
    row, column = scene.agent
    _lay(canvas, sprite("agent", "grey", size), top + (row + 1) * cell - size, left + (column + 1) * cell - size)


def _inventory(canvas: Field, top: int, left: int, scene: Scene, height: int) -> None:
    """The strip that says what the agent holds: an icon and a number each, evenly spread."""
    width = canvas.shape[1] - 2 * left
    _lay(canvas, _plate(height, width, height, FLOOR), top, left)
    gap, icon = height // 6, round(height * 0.72)
    entries = [
        (sprite(_icon(scene, label), colour, icon), text(value, round(height * 0.42)))
        for label, colour, value in scene.inventory
    ]
    needed = sum(tile.shape[1] + gap // 2 + words.shape[1] for tile, words in entries)
    space = (width - needed) / (len(entries) + 1) if entries else 0
    x = left + max(gap, space)
    for tile, words in entries:
        _lay(canvas, tile, top + (height - icon) // 2, round(x))
        x += tile.shape[1] + gap // 2
        _write(canvas, words, top + (height - words.shape[0]) // 2 + height // 20, round(x))
        x += words.shape[1] + max(gap, space)


def _icon(scene: Scene, label: str) -> str:
    """The shape that stands for an inventory entry."""
    if label in ("switch", "hammer"):
        return label
    return "deposit" if any(thing.shape == "deposit" for thing in scene.things) else "object"


def _lay(canvas: Field, tile: Field, top: int, left: int) -> None:
    """Lays a tile over the canvas; what reaches beyond the canvas is cut off."""
    part = canvas[top : top + tile.shape[0], left : left + tile.shape[1]]
    tile = tile[: part.shape[0], : part.shape[1]]
    part += (tile[..., :3] - part) * tile[..., 3:]


def _write(canvas: Field, words: Field, top: int, left: int) -> None:
    part = canvas[top : top + words.shape[0], left : left + words.shape[1]]
    part += (np.asarray(INK, np.float32) - part) * words[: part.shape[0], : part.shape[1], None]
