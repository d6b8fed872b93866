"""A scene as text: two characters per cell, the shape and the first letter of the kind."""

from collections.abc import Iterator

from saplan.games.scene import Scene, Thing
from saplan.render.palette import TERMINAL

SYMBOLS = {
    "object": "●", "switch": "◉", "deposit": "◆", "dump": "▼", "store": "⌂", "hammer": "⚒", "turn_right": "↻",
    "turn_left": "↺", "mirror": "⇆",
}  # fmt: skip
WALL, FLOOR, AGENT = "██", "· ", "☻"
WALL_SHADE, FLOOR_SHADE = 240, 244
RESET = "\x1b[0m"


def scene_text(scene: Scene, colour: bool = True) -> str:
    """The map in a frame, with the inventory below it; empty for a world without a map."""
    if not scene.has_map:
        return ""
    lines = ["┌" + "─" * (2 * scene.width + 1) + "┐"]
    lines += ["│ " + "".join(row) + "│" for row in _rows(scene, colour)]
    lines.append("└" + "─" * (2 * scene.width + 1) + "┘")
    lines.append("  " + "   ".join(_entry(*entry, colour) for entry in scene.inventory))
    return "\n".join(lines)


def legend(scene: Scene) -> str:
    """The symbols on a map and what they stand for, in one line."""
    shapes: dict[str, list[str]] = {}
    for thing in scene.things:
        symbol = (SYMBOLS.get(thing.shape, "?") + letter(thing.colour)).strip()
        if symbol not in shapes.setdefault(thing.shape, []):
            shapes[thing.shape].append(symbol)
    things = [f"{' '.join(sorted(symbols))} {shape}" for shape, symbols in shapes.items()]
    return " · ".join([f"{AGENT} you", *things, f"{WALL} wall"])


def tint(words: str, code: int, colour: bool, bold: bool = False) -> str:
    """Words in one of the terminal's 256 colours; unchanged unless `colour`."""
    return f"\x1b[{'1;' if bold else ''}38;5;{code}m{words}{RESET}" if colour else words


def strong(words: str, colour: bool) -> str:
    """Words in bold; unchanged unless `colour`."""
    return f"\x1b[1m{words}{RESET}" if colour else words


def _rows(scene: Scene, colour: bool) -> Iterator[list[str]]:
    things = {(thing.row, thing.column): thing for thing in scene.things}
    for row in range(scene.height):
        yield [_cell(scene, things.get((row, column)), (row, column), colour) for column in range(scene.width)]


def _cell(scene: Scene, thing: Thing | None, place: tuple[int, int], colour: bool) -> str:
    if place in scene.walls:
        return tint(WALL, WALL_SHADE, colour)
    if place == scene.agent:
        # The letter stays: it shows the kind of the thing that the agent stands on.
        under = tint(letter(thing.colour), TERMINAL.get(thing.colour, 246), colour) if thing else " "
        return strong(AGENT, colour) + under
    if thing is None:
        return tint(FLOOR, FLOOR_SHADE, colour)
    return tint(SYMBOLS.get(thing.shape, "?") + letter(thing.colour), TERMINAL.get(thing.colour, 246), colour)


def letter(colour: str) -> str:
    """First letter of a kind; a space for things without a kind."""
    return " " if colour == "grey" else colour[0]


def _entry(label: str, kind: str, value: str, colour: bool) -> str:
    return f"{tint(label, TERMINAL.get(kind, 246), colour)} {strong(value, colour)}"
