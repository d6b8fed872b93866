"""One frame of a film: the map, the attributes with the goal, and the plan, painted with numpy as the pictures are."""

import numpy as np

from saplan.algebra import Block, Categorical, Cyclic, Natural, Real
from saplan.render.chart import chart
from saplan.render.distance import Field, box, disc, stroke
from saplan.render.lettering import text
from saplan.render.palette import FLOOR, INK, KINDS, LINE, PAGE, WHITE, Colour, shade
from saplan.render.pixels import Picture, paint
from saplan.render.plane import Plane
from saplan.render.sprites import flatten
from saplan.render.task import Moment, Task
from saplan.render.trace import PlanStep

CELL = 32
PANEL = 330
"""Width of the attributes beside the map."""
ROW = 30
LETTERS = 15
STRIP = 5
"""Transitions of the plan that are shown."""
GOOD: Colour = (11, 122, 87)
BAD: Colour = (185, 58, 36)
WISH: Colour = (122, 79, 192)
LIT: Colour = (255, 236, 176)
SOFT: Colour = (120, 124, 134)
MOST_BEADS = 10


class Canvas:
    """Colours that are painted over."""

    def __init__(self, height: int, width: int) -> None:
        """An empty page."""
        self.pixels = np.empty((height, width, 3), np.float32)
        self.pixels[:] = PAGE

    @property
    def picture(self) -> Picture:
        """What has been painted."""
        return np.round(self.pixels).astype(np.uint8)

    def lay(self, tile: Field, top: float, left: float, opacity: float = 1.0) -> None:
        """Lays a tile of colour and opacity over it; what reaches beyond is cut off."""
        row, column = max(0, round(top)), max(0, round(left))
        part = self.pixels[row : row + tile.shape[0], column : column + tile.shape[1]]
        tile = tile[: part.shape[0], : part.shape[1]]
        part += (tile[..., :3] - part) * tile[..., 3:] * opacity

    def write(self, words: str, top: float, left: float, size: int = LETTERS, colour: Colour = INK) -> int:
        """Writes words, and says how wide they are."""
        cover = text(words, size)
        tile = np.concatenate([np.broadcast_to(np.array(colour, np.float32), (*cover.shape, 3)), cover[..., None]], -1)
        self.lay(tile, top, left)
        return cover.shape[1]

    def plate(self, top: float, left: float, height: float, width: float, colour: Colour, opacity: float = 1.0) -> None:
        """A rounded rectangle."""
        x, y = _places(round(height), round(width))
        shape = box(x, y, (round(width) / 2, round(height) / 2), min(8.0, height / 2))
        self.lay(flatten([(shape, colour, 1)], 1.0), top, left, opacity)

    def bead(self, top: float, left: float, size: int, colour: Colour, full: bool, wanted: bool) -> None:
        """A count of one: full if it is there, ringed if it is wished for."""
        x, y = _places(size, size)
        layers = [(disc(x, y, size * 0.34), shade(colour, -0.2) if full else LINE, 1.0)]
        layers.append((disc(x, y, size * 0.34 - 1.5), colour if full else FLOOR, 1.0))
        if wanted:
            layers.append((np.abs(disc(x, y, size * 0.46)) - np.float32(1.2), WISH, 1.0))
        self.lay(flatten(layers, 1.0), top, left)


def _places(height: int, width: int) -> tuple[Field, Field]:
    """Coordinates of pixels from the middle."""
    across = np.arange(width, dtype=np.float32) - np.float32((width - 1) / 2)
    down = np.arange(height, dtype=np.float32) - np.float32((height - 1) / 2)
    x, y = np.meshgrid(across, down)
    return x, y


class Painter:
    """Paints one task, moment by moment."""

    def __init__(self, task: Task, title: str, plane: Plane | None) -> None:
        """`plane` is there on mining."""
        self.task, self.title, self.plane = task, title, plane
        self._chart: tuple[object, Field] | None = None

    def frame(self, moment: Moment) -> Picture:
        """What there is to see after a step."""
        ground = paint(moment.scene, CELL)
        rows = 56 + ROW * len(moment.rho)
        height, width = max(ground.shape[0], rows), ground.shape[1] + PANEL
        if self.plane is not None:
            height = max(height, rows + round((PANEL - 16) * self.plane.size[1] / self.plane.size[0]) + 12)
        canvas = Canvas(height + _strip_height(), width)
        canvas.pixels[: ground.shape[0], : ground.shape[1]] = ground
        _attributes(canvas, self.task, moment, ground.shape[1], self.title)
        if self.plane is not None:
            self._lay_plane(canvas, self.plane, moment, rows, ground.shape[1])
        _strip(canvas, self.task, moment, height, 12, width - 24)
        return canvas.picture

    def _lay_plane(self, canvas: Canvas, plane: Plane, moment: Moment, top: int, left: int) -> None:
        """The plane of mining, coloured by what is tried next; painted anew only where something has changed."""
        task = self.task
        chosen = next((option.name for option in task.explanation.options if option.chosen), None)
        changes = (id(task.explanation), len(task.history), moment.ended)
        if self._chart is None or self._chart[0] != changes:
            ahead = [] if moment.ended else [plan_step.rho for plan_step in task.explanation.path]
            goal = (tuple(map(float, task.goal.low)), tuple(map(float, task.goal.high)))
            self._chart = changes, chart(plane, chosen, task.history, ahead, goal, PANEL - 16)
        canvas.lay(self._chart[1], top, left)
        words = f"p of {_plain(chosen)}" if plane.chances is not None and chosen else ""
        canvas.write(words, top + 4, left + 6, 12, SOFT)


def _attributes(canvas: Canvas, task: Task, moment: Moment, left: int, title: str) -> None:
    canvas.write(title, 16, left, LETTERS, SOFT)
    space = task.game.space
    colours = {label: colour for label, colour, _ in moment.scene.inventory}
    for k, (name, block) in enumerate(zip(space.names, space.blocks, strict=True)):
        top = 44 + ROW * k
        low, high, value = float(task.goal.low[k]), float(task.goal.high[k]), moment.rho[k]
        asked = bool(np.isfinite(low) or np.isfinite(high))
        met = low <= value <= high
        canvas.plate(top, left - 4, ROW - 4, PANEL - 12, FLOOR)
        if asked:
            canvas.plate(top, left - 4, ROW - 4, 5, GOOD if met else WISH)
        canvas.write(name.replace("_", " "), top + 4, left + 8, 13)
        colour = KINDS.get(colours.get(name.removeprefix("map_"), "grey"), KINDS["grey"])
        _value(canvas, block, value, (low, high) if asked else None, colour, top, left + 104)
        canvas.write(block.format(value), top + 4, left + PANEL - 58, 13, GOOD if asked and met else INK)


def _value(
    canvas: Canvas, block: Block, value: float, goal: tuple[float, float] | None, colour: Colour, top: int, left: int
) -> None:
    """An attribute as its algebra is."""
    if isinstance(block, Cyclic):
        _dial(canvas, block.q, value, goal, top, left)
    elif isinstance(block, Natural):
        for bead in range(MOST_BEADS):
            wanted = goal is not None and goal[0] <= bead + 1 <= goal[1]
            if bead < max(value, 4, 0 if goal is None or not np.isfinite(goal[1]) else goal[1]):
                canvas.bead(top + 4, left + 17 * bead, 18, colour, bead < value, wanted)
        if goal is not None and goal[0] <= 0:
            canvas.plate(top + 8, left - 8, 10, 3, WISH)
    elif isinstance(block, Real) and block.bounded:
        _slider(canvas, block, value, goal, colour, top, left)
    elif isinstance(block, Categorical):
        canvas.write(block.format(value).lower(), top + 4, left, 13)


def _slider(
    canvas: Canvas, block: Real, value: float, goal: tuple[float, float] | None, colour: Colour, top: int, left: int
) -> None:
    width = 150
    share = lambda x: width * (min(max(x, block.low), block.high) - block.low) / (block.high - block.low)  # noqa: E731
    canvas.plate(top + 11, left, 5, width, LINE)
    if goal is not None:
        start, end = share(goal[0]), share(goal[1])
        canvas.plate(top + 4, left + start, 18, max(4, end - start), WISH, 0.35)
    canvas.bead(top + 4, left + share(value) - 9, 18, colour, True, False)


def _dial(canvas: Canvas, q: int, value: float, goal: tuple[float, float] | None, top: int, left: int) -> None:
    size = ROW - 4
    x, y = _places(size, size)
    angle = 2 * np.pi * value / q - np.pi / 2
    hand = [(0.0, 0.0), (size * 0.32 * float(np.cos(angle)), size * 0.32 * float(np.sin(angle)))]
    layers = [(disc(x, y, size * 0.48), LINE, 1.0), (disc(x, y, size * 0.48 - 2), WHITE, 1.0)]
    for stop in range(q if q <= 12 else 0):
        turn = 2 * np.pi * stop / q - np.pi / 2
        centre = (size * 0.36 * float(np.cos(turn)), size * 0.36 * float(np.sin(turn)))
        wanted = goal is not None and goal[0] <= stop <= goal[1]
        layers.append((disc(x, y, 3.0 if wanted else 2.0, centre), WISH if wanted else SOFT, 1.0))
    layers.append((stroke(x, y, hand, 2.6), INK, 1.0))
    canvas.lay(flatten(layers, 1.0), top, left)


def _strip_height() -> int:
    return 30 + 26 * (STRIP + 1)


def _strip(canvas: Canvas, task: Task, moment: Moment, top: int, left: int, width: int) -> None:
    """The plan: what was tried last, what is tried now, what comes next."""
    canvas.write(f"goal {_plain(task.text)}", top, left, LETTERS)
    words = "reached" if moment.reached else "not reached" if moment.ended else ""
    canvas.write(f"step {moment.step} {words}", top, left + width - 190, LETTERS, GOOD if moment.reached else INK)
    top += 28
    tried = [one for one in task.tried if one.step <= moment.step]
    if tried:
        last = tried[-1]
        sign, colour = ("failed", BAD) if last.success is False else ("done", GOOD)
        canvas.write(f"{sign}  {_plain(last.name)}", top, left + 8, 13, colour)
    plan_steps: tuple[PlanStep, ...] = () if moment.ended else task.explanation.path
    for k, plan_step in enumerate(plan_steps[:STRIP]):
        y = top + 26 * (k + 1)
        if k == 0:
            canvas.plate(y - 5, left, 25, width, LIT)
        canvas.write(_plain(plan_step.name), y, left + 8, 13, INK if k == 0 else SOFT)
        _chance(canvas, plan_step, y, left + 230)
    if len(plan_steps) > STRIP:
        canvas.write(f"and {len(plan_steps) - STRIP} more", top + 26 * STRIP, left + width - 110, 13, SOFT)


def _chance(canvas: Canvas, plan_step: PlanStep, top: int, left: int) -> None:
    if plan_step.chance is None:
        return
    canvas.plate(top + 5, left, 6, 80, LINE)
    canvas.plate(top + 5, left, 6, max(4.0, 80 * plan_step.chance), GOOD)
    steps = "" if plan_step.steps is None else f"  {plan_step.steps:.0f} steps"
    canvas.write(f"p {plan_step.chance:.2f}{steps}", top, left + 92, 13, SOFT)


def _plain(words: str) -> str:
    """Words in the letters that the font of the pictures has."""
    return words.replace("→", " to ").replace("±", " +- ").replace(">=", " from ").replace("<=", " up to ")
