"""One frame of a film: the map, the attributes with the goal, and the plan."""

import functools
import math

import numpy as np
from PIL import Image

from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Natural, Real
from saplan.goals import meets
from saplan.render import palette
from saplan.render.canvas import Canvas, centred_pen, plate
from saplan.render.chart import chart
from saplan.render.explanation import PlanStep
from saplan.render.palette import Colour, Paint
from saplan.render.pixels import draw
from saplan.render.plane import Plane
from saplan.render.task import Moment, Task

CELL = 32
PANEL = 330
"""Width of the attributes beside the map."""
ROW = 30
LINE_HEIGHT = 26
HEADING = 15
SHOWN = 5
"""Transitions of the plan that are shown."""
MOST_BEADS = 10
BEAD = 18
SLIDER = 150

Interval = tuple[float, float] | None
"""Values of an attribute that meet the goal; None where any value does."""


class Painter:
    """Draws one task, moment by moment."""

    def __init__(self, task: Task, title: str, plane: Plane | None) -> None:
        """`plane` belongs to mining; other games have none."""
        self.task, self.title, self.plane = task, title, plane
        self._chart: tuple[object, Image.Image] | None = None

    def frame(self, moment: Moment) -> Image.Image:
        """The picture after a step."""
        ground = draw(moment.scene, CELL)
        rows = 56 + ROW * len(moment.rho)
        height, width = max(ground.height, rows), ground.width + PANEL
        if self.plane is not None:
            height = max(height, rows + round((PANEL - 16) * self.plane.size[1] / self.plane.size[0]) + 12)
        canvas = Canvas(width, height + 30 + LINE_HEIGHT * (SHOWN + 1))
        canvas.place(ground, 0, 0)
        canvas.write(self.title, ground.width, 25, HEADING, palette.SOFT)
        for k in range(len(moment.rho)):
            _draw_attribute(canvas, self.task, moment, k, ground.width)
        if self.plane is not None:
            self._place_chart(canvas, self.plane, moment, ground.width, rows)
        _draw_plan(canvas, self.task, moment, 12, height, width - 24)
        return canvas.image

    def _place_chart(self, canvas: Canvas, plane: Plane, moment: Moment, x: int, y: int) -> None:
        """The plane of mining for the transition being attempted; drawn again only after a change."""
        task = self.task
        chosen = next((option.name for option in task.explanation.options if option.chosen), None)
        state = (id(task.explanation), len(task.history), moment.ended)
        if self._chart is None or self._chart[0] != state:
            ahead = [] if moment.ended else [plan_step.rho for plan_step in task.explanation.path]
            goal = (tuple(map(float, task.goal.low)), tuple(map(float, task.goal.high)))
            self._chart = state, chart(plane, chosen, task.history, ahead, goal, PANEL - 16)
        canvas.place(self._chart[1], x, y)
        if plane.chances is not None and chosen:
            # The hole in S is the one place that no path crosses.
            scale = (PANEL - 16) / plane.size[0]
            hole = (x + scale * plane.centre[0], y + scale * (plane.size[1] - plane.centre[1]))
            canvas.write(f"p of {chosen}", *hole, 11, palette.SOFT, align="middle")


def _draw_attribute(canvas: Canvas, task: Task, moment: Moment, k: int, x: int) -> None:
    """One row: the name, a picture of the value and of the goal, the value."""
    space = task.game.space
    name, block, value, y = space.names[k], space.blocks[k], moment.rho[k], 44 + ROW * k
    low, high = float(task.goal.low[k]), float(task.goal.high[k])
    goal = (low, high) if np.isfinite(low) or np.isfinite(high) else None
    met = goal is not None and bool(meets(np.float32(low), np.float32(high), np.float32(value)))
    middle = y + ROW / 2 - 2
    _plate(canvas, x - 4, y, PANEL - 12, ROW - 4, palette.FLOOR)
    if goal is not None:
        _plate(canvas, x - 4, y, 5, ROW - 4, palette.GOOD if met else palette.GOAL)
    canvas.write(name.replace("_", " "), x + 8, middle)
    colours = {label: colour for label, colour, _ in moment.scene.inventory}
    _draw_value(canvas, block, value, goal, palette.kind(colours.get(name.removeprefix("map_"), "grey")), x + 104, y)
    canvas.write(
        block.format(value), x + PANEL - 28, middle, colour=palette.GOOD if met else palette.INK, align="right"
    )


def _draw_value(canvas: Canvas, block: Block, value: float, goal: Interval, colour: Colour, x: int, y: int) -> None:
    """A dial, beads or a slider, as the block's algebra suggests."""
    if isinstance(block, Cyclic):
        canvas.place(_dial(ROW - 4, block.q, value, goal), x, y)
    elif isinstance(block, Natural):
        wanted = goal[1] if goal is not None and np.isfinite(goal[1]) else 0
        for bead in range(min(MOST_BEADS, math.ceil(max(value, 4, wanted)))):
            ringed = goal is not None and goal[0] <= bead + 1 <= goal[1]
            canvas.place(_bead(colour, bead < value, ringed), x + 17 * bead, y + 4)
        if goal is not None and goal[0] <= 0:
            _plate(canvas, x - 8, y + 8, 3, 10, palette.GOAL)
    elif isinstance(block, Real) and block.bounded:
        at = functools.partial(_slide, block)
        _plate(canvas, x, y + 11, SLIDER, 5, palette.LINE)
        if goal is not None:
            start, end = at(goal[0]), at(goal[1])
            _plate(canvas, x + start, y + 4, max(4, end - start), BEAD, (*palette.GOAL, 89))
        canvas.place(_bead(colour, True, False), x + at(value) - BEAD / 2, y + 4)
    elif isinstance(block, Circle):
        canvas.place(_ring(ROW - 4, block.period, value, goal), x, y)
    elif isinstance(block, Dihedral):
        canvas.place(_tile(ROW - 4, block.n, int(value), colour), x, y)
        if goal is not None:
            canvas.place(_tile(ROW - 4, block.n, int(goal[0]), palette.GOAL), x + ROW, y)
    elif isinstance(block, Categorical):
        canvas.write(block.format(value), x, y + ROW / 2 - 2)


def _slide(block: Real, value: float) -> float:
    """The place of a value on a slider, nearest to it if the value lies beyond."""
    return SLIDER * (min(max(value, block.low), block.high) - block.low) / (block.high - block.low)


@functools.lru_cache(maxsize=128)
def _bead(colour: Colour, filled: bool, ringed: bool) -> Image.Image:
    """A count of one: filled if present, ringed if it meets the goal."""
    pen = centred_pen(BEAD, BEAD)
    pen.disc(BEAD * 0.34, palette.shade(colour, -0.2) if filled else palette.LINE)
    pen.disc(BEAD * 0.34 - 1.5, colour if filled else palette.FLOOR)
    if ringed:
        pen.disc(BEAD * 0.5, palette.GOAL, line=2)
    return pen.tile()


@functools.lru_cache(maxsize=128)
def _dial(size: int, q: int, value: float, goal: Interval) -> Image.Image:
    """A clock face with q stops and a hand; the goal's stops stand out."""
    pen = centred_pen(size, size, size)

    def at(radius: float, stop: float) -> tuple[float, float]:
        turn = 2 * math.pi * stop / q - math.pi / 2
        return radius * math.cos(turn), radius * math.sin(turn)

    pen.disc(0.48, palette.LINE)
    pen.disc(0.48 - 2 / size, palette.WHITE)
    for stop in range(q if q <= 12 else 0):
        wanted = goal is not None and goal[0] <= stop <= goal[1]
        pen.disc((3 if wanted else 2) / size, palette.GOAL if wanted else palette.SOFT, at(0.36, stop))
    pen.stroke([(0, 0), at(0.32, value)], 2.6 / size, palette.INK)
    return pen.tile()


@functools.lru_cache(maxsize=128)
def _ring(size: int, period: float, value: float, goal: Interval) -> Image.Image:
    """A ring with a hand; an arc along the ring is the goal, also through zero."""
    pen = centred_pen(size, size, size)

    def at(radius: float, place: float) -> tuple[float, float]:
        turn = 2 * math.pi * place / period - math.pi / 2
        return radius * math.cos(turn), radius * math.sin(turn)

    pen.disc(0.48, palette.LINE)
    pen.disc(0.48 - 2 / size, palette.WHITE)
    if goal is not None:
        width = (goal[1] - goal[0]) % period
        pen.stroke([at(0.42, goal[0] + width * k / 24) for k in range(25)], 3 / size, palette.GOAL)
    pen.stroke([(0, 0), at(0.36, value)], 2.6 / size, palette.INK)
    return pen.tile()


@functools.lru_cache(maxsize=128)
def _tile(size: int, n: int, code: int, colour: Colour) -> Image.Image:
    """A polygon with a flag in it, mirrored and turned as the code says."""
    pen, mirrored, turn = centred_pen(size, size, size / 2), code >= n, 2 * math.pi * (code % n) / n

    def oriented(x: float, y: float) -> tuple[float, float]:
        x = -x if mirrored else x
        return x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)

    corners = [2 * math.pi * (k + 0.5) / max(n, 3) - math.pi / 2 for k in range(max(n, 3))]
    outline = [oriented(0.95 * math.cos(a), 0.95 * math.sin(a)) for a in corners]
    pen.stroke([*outline, outline[0]], 0.12, colour)
    flag = [(-0.2, 0.45), (-0.2, -0.45), (0.4, -0.45), (0.25, -0.2), (0.4, 0.05), (0.0, 0.05), (0.0, 0.45)]
    pen.polygon([oriented(*point) for point in flag], colour)
    return pen.tile()


def _draw_plan(canvas: Canvas, task: Task, moment: Moment, x: int, y: int, width: int) -> None:
    """The goal, the last attempt, the present one and those that follow."""
    canvas.write(f"goal  {task.text.replace('>=', '≥').replace('<=', '≤')}", x, y + 8, HEADING)
    end = "  reached" if moment.reached else "  not reached" if moment.ended else ""
    colour = palette.GOOD if moment.reached else palette.INK
    canvas.write(f"step {moment.step}{end}", x + width - 8, y + 8, HEADING, colour, align="right")
    y += 36
    tried = [attempt for attempt in task.tried if attempt.step <= moment.step]
    if tried:
        failed = tried[-1].success is False
        canvas.write(
            f"{'✗' if failed else '✓'}  {tried[-1].name}", x + 8, y, colour=palette.BAD if failed else palette.GOOD
        )
    plan_steps: tuple[PlanStep, ...] = () if moment.ended else task.explanation.path
    for k, plan_step in enumerate(plan_steps[:SHOWN]):
        y += LINE_HEIGHT
        if k == 0:
            _plate(canvas, x, y - 12, width, 25, palette.CURRENT)
        canvas.write(plan_step.name, x + 8, y, colour=palette.INK if k == 0 else palette.SOFT)
        _draw_chance(canvas, plan_step, x + 230, y)
    if len(plan_steps) > SHOWN:
        canvas.write(f"and {len(plan_steps) - SHOWN} more", x + width - 8, y, colour=palette.SOFT, align="right")


def _draw_chance(canvas: Canvas, plan_step: PlanStep, x: int, y: int) -> None:
    if plan_step.chance is None:
        return
    _plate(canvas, x, y - 3, 80, 6, palette.LINE)
    _plate(canvas, x, y - 3, max(6.0, 80 * plan_step.chance), 6, palette.GOOD)
    steps = ""
    if plan_step.steps is not None:
        steps = f"   {plan_step.steps:.0f} {'step' if round(plan_step.steps) == 1 else 'steps'}"
    canvas.write(f"{100 * plan_step.chance:.1f} %{steps}", x + 92, y, colour=palette.SOFT)


def _plate(canvas: Canvas, x: float, y: float, width: float, height: int, colour: Paint) -> None:
    canvas.place(plate(round(width), height, 8, colour), x, y)
