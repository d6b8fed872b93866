"""Drawing with Pillow: shapes with smooth edges, text, and PNG files."""

import functools
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from saplan.render.palette import INK, PAGE, Colour, Paint
from saplan.storage.files import replace_file

Point = tuple[float, float]

SCALE = 4
"""Shapes are drawn this many times larger, then reduced: that makes their edges smooth."""


@functools.cache
def font(size: int) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which matplotlib ships, at `size` pixels."""
    import matplotlib  # only now: it takes a tenth of a second

    path = Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)


class Canvas:
    """A picture at its final size, on which tiles and text are placed."""

    def __init__(self, width: int, height: int) -> None:
        self.image = Image.new("RGB", (width, height), PAGE)
        self._draw = ImageDraw.Draw(self.image)

    def place(self, tile: Image.Image, x: float, y: float) -> None:
        """Places a tile with its upper left corner at (x, y); parts beyond the canvas are cut off."""
        self.image.paste(tile, (round(x), round(y)), tile if tile.mode == "RGBA" else None)

    def write(
        self, text: str, x: float, y: float, size: int = 13, colour: Colour = INK, *, align: str = "left"
    ) -> None:
        """Writes a line of text with its left end, middle or right end at x, and its middle at the height y."""
        self._draw.text((round(x), round(y)), text, colour, font(size), anchor=f"{align[0]}m")


@dataclass(frozen=True)
class Pen:
    """Draws the shapes of one tile, in units and from an origin of its own.

    A shape on a transparent tile replaces whatever it covers; an opaque ground shines through a translucent shape.
    """

    image: Image.Image
    """The tile, `SCALE` times larger."""
    unit: Point
    """Pixels of the tile per unit, to the right and downwards; a negative second one lets y grow upwards."""
    origin: Point
    """In pixels of the tile."""

    def inside(self, size: float, centre: Point) -> "Pen":
        """A pen for the same tile whose unit is `size` and whose origin is `centre` of this one."""
        (ux, uy), (ox, oy) = self.unit, self.origin
        return Pen(self.image, (ux * size, uy * size), (ox + centre[0] * ux, oy + centre[1] * uy))

    def tile(self) -> Image.Image:
        """The drawing at its final size."""
        return self.image.reduce(SCALE)

    def disc(self, radius: float, colour: Paint, centre: Point = (0, 0), line: float = 0.0) -> None:
        """A circle, filled or as a line of this width inside its edge."""
        self._draw.ellipse(self._bounds((radius, radius), centre), **self._style(colour, line))

    def box(self, half: Point, corner: float, colour: Paint, centre: Point = (0, 0), line: float = 0.0) -> None:
        """A rectangle of these half sides with rounded corners, filled or as a line inside its edge."""
        self._draw.rounded_rectangle(self._bounds(half, centre), self._length(corner), **self._style(colour, line))

    def polygon(self, points: Sequence[Point], colour: Paint, rim: float = 0.0) -> None:
        """A filled polygon, larger by `rim` on all sides and rounded there."""
        self._draw.polygon([self._at(point) for point in points], colour)
        if rim:
            self.stroke([*points, points[0]], 2 * rim, colour)

    def stroke(self, points: Sequence[Point], width: float, colour: Paint) -> None:
        """A line through the points with round bends and ends; one point alone is a dot."""
        self._draw.line([self._at(point) for point in points], colour, self._length(width))
        for point in points:
            self.disc(width / 2, colour, point)

    @property
    def _draw(self) -> ImageDraw.ImageDraw:
        return ImageDraw.Draw(self.image, "RGBA")

    def _style(self, colour: Paint, line: float) -> dict[str, Any]:
        return {"outline": colour, "width": self._length(line)} if line else {"fill": colour}

    def _at(self, point: Point) -> Point:
        x, y = (SCALE * (o + u * p) for o, u, p in zip(self.origin, self.unit, point, strict=True))
        return x, y

    def _length(self, length: float) -> int:
        return round(SCALE * self.unit[0] * length)

    def _bounds(self, half: Point, centre: Point) -> tuple[float, float, float, float]:
        (x, y), (width, height) = self._at(centre), (SCALE * abs(u) * h for u, h in zip(self.unit, half, strict=True))
        # Pillow counts the last pixel in.
        return x - width, y - height, max(x - width, x + width - 1), max(y - height, y + height - 1)


def centred_pen(width: int, height: int, unit: float = 1.0) -> Pen:
    """A pen for a transparent tile, with its origin in the middle."""
    return Pen(Image.new("RGBA", (width * SCALE, height * SCALE)), (unit, unit), (width / 2, height / 2))


@functools.lru_cache(maxsize=512)
def plate(
    width: int, height: int, corner: float, fill: Paint, rim: Colour | None = None, rim_width: int = 1
) -> Image.Image:
    """A rounded rectangle, with a thin rim if it has a colour."""
    pen = centred_pen(width, height)
    corner = min(corner, width / 2, height / 2)
    pen.box((width / 2, height / 2), corner, fill if rim is None else rim)
    if rim is not None:
        pen.box((width / 2 - rim_width, height / 2 - rim_width), corner - rim_width, fill)
    return pen.tile()


def save_png(image: Image.Image, path: Path) -> None:
    """Writes a PNG file, whole or not at all; a link of that name is replaced, not followed."""
    data = io.BytesIO()
    image.save(data, "PNG", optimize=True)
    replace_file(path, data.getvalue())
