"""A scene as a picture: the map, and the inventory in a strip below it."""

import functools

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from saplan.games.scene import Scene
from saplan.render.canvas import Canvas, font, plate
from saplan.render.palette import FLOOR, LINE, shade
from saplan.render.sprites import sprite

RIM = shade(LINE, -0.15)
ICONS = {
    "switch": "switch", "chosen": "switch", "hammer": "hammer", "shoulder": "turn_right", "elbow": "turn_right",
}  # fmt: skip
"""Shapes of inventory entries that are not objects of a kind."""
WIDEST = 10
"""Cells that the picture of a world without a map is wide at most."""


def paint(scene: Scene, cell: int = 48, least: tuple[int, int] = (0, 0)) -> UInt8[np.ndarray, "height width 3"]:
    """The scene as an array of red, green and blue; see `draw`."""
    return np.array(draw(scene, cell, least))


def draw(scene: Scene, cell: int = 48, least: tuple[int, int] = (0, 0)) -> Image.Image:
    """The scene at `cell` pixels per cell.

    Maps differ in size: `least` (rows, columns) centres small ones on a canvas that all of them share. A world without
    a map is drawn by its own picture, or as an empty cell.
    """
    if not scene.has_map:
        own = Image.new("RGB", (cell, cell), FLOOR) if scene.picture is None else Image.fromarray(scene.picture)
        width = min(own.width, WIDEST * cell)
        return own.resize((width, round(own.height * width / own.width)))
    rows, columns = max(scene.height, least[0]), max(scene.width, least[1])
    margin = cell // 3
    canvas = Canvas(columns * cell + 2 * margin, (rows + 1) * cell + 3 * margin)
    left = margin + (columns - scene.width) * cell // 2
    top = margin + (rows - scene.height) * cell // 2
    canvas.place(_floor(scene.height, scene.width, cell), left, top)
    _draw_things(canvas, scene, left, top, cell)
    _draw_inventory(canvas, scene, margin, rows * cell + 2 * margin, cell)
    return canvas.image


@functools.lru_cache(maxsize=32)
def _floor(height: int, width: int, cell: int) -> Image.Image:
    """A light plate with a faint grid."""
    thickness = max(1, cell // 32)
    floor = plate(width * cell, height * cell, cell / 6, FLOOR, RIM, thickness).copy()
    for y in range(cell - thickness // 2, (height - 1) * cell + 1, cell):
        floor.paste(LINE, (thickness, y, width * cell - thickness, y + thickness))
    for x in range(cell - thickness // 2, (width - 1) * cell + 1, cell):
        floor.paste(LINE, (x, thickness, x + thickness, height * cell - thickness))
    return floor


def _draw_things(canvas: Canvas, scene: Scene, left: int, top: int, cell: int) -> None:
    """Walls, things and the agent. The agent and a thing that it stands on share the cell, both smaller."""
    for row, column in scene.walls:
        canvas.place(sprite("wall", "grey", cell), left + column * cell, top + row * cell)
    small, agent_size = round(cell * 0.68), cell
    for thing in scene.things:
        shared = (thing.row, thing.column) == scene.agent
        agent_size = small if shared else agent_size
        tile = sprite(thing.shape, thing.colour, small if shared else cell)
        canvas.place(tile, left + thing.column * cell, top + thing.row * cell)
    row, column = scene.agent
    corner = cell - agent_size
    canvas.place(sprite("agent", "grey", agent_size), left + column * cell + corner, top + row * cell + corner)


def _draw_inventory(canvas: Canvas, scene: Scene, left: int, top: int, height: int) -> None:
    """An icon and a value for everything the agent holds, evenly spread over a strip."""
    width = canvas.image.width - 2 * left
    canvas.place(plate(width, height, height / 6, FLOOR, RIM, max(1, height // 32)), left, top)
    icon, letters, gap = round(height * 0.72), round(height * 0.42), height // 12
    lengths = [icon + gap + font(letters).getlength(value) for _, _, value in scene.inventory]
    space = max(2 * gap, (width - sum(lengths)) / (len(lengths) + 1))
    x = left + space
    for (label, colour, value), length in zip(scene.inventory, lengths, strict=True):
        canvas.place(sprite(_icon(scene, label), colour, icon), x, top + (height - icon) // 2)
        canvas.write(value, x + icon + gap, top + height / 2, letters)
        x += length + space


def _icon(scene: Scene, label: str) -> str:
    """The shape that stands for an inventory entry."""
    if label in ICONS:
        return ICONS[label]
    return "deposit" if any(thing.shape == "deposit" for thing in scene.things) else "object"
