"""A task as a film or as a sheet of pictures: the page without a browser."""

import importlib
import importlib.util
import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from saplan.errors import InputError
from saplan.methods.agent import Agent
from saplan.render.canvas import save_png
from saplan.render.frame import Painter
from saplan.render.plane import plane_of
from saplan.render.start import BUDGET, start
from saplan.render.task import Moment, Task
from saplan.storage.files import cannot_write, replace_file

FORMATS = (".gif", ".mp4", ".png")
RATE = 6
"""Steps per second."""
LINGER = 12
"""Frames for which the last picture stays."""
COLOURS = 128
"""Colours of a GIF."""
PICTURES = 6
"""Pictures on a sheet."""
ACROSS = 3
"""Pictures in a row of a sheet."""

ShowStep = Callable[[int, int], None]
"""Called after every step with its number and the budget."""


def check_format(path: Path) -> None:
    """`InputError` unless a film can be written to this path."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"--out must end in {', '.join(FORMATS)}, got {str(path)!r}")
    if path.suffix.lower() == ".mp4" and importlib.util.find_spec("imageio_ffmpeg") is None:
        raise InputError("an .mp4 needs imageio-ffmpeg: pip install imageio-ffmpeg, or write a .gif")
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {str(path.parent)!r} to write {path.name} to")


def render(agent: Agent, title: str, goal: str, seed: int, path: Path, show: ShowStep) -> Moment:
    """Carries out a task and writes its film; returns the last moment.

    The file is written whole or not at all; a link of that name is replaced, not followed.
    """
    check_format(path)
    task = Task(agent, start(agent.game, seed), goal, seed)
    frames, decisions = [], [0]
    for number, (picture, moment) in enumerate(pictures(task, title, agent)):
        frames.append(picture)
        if moment.tried:
            decisions.append(number)
        show(moment.step, BUDGET)
    if path.suffix.lower() == ".png":
        save_png(sheet([frames[k] for k in few([*decisions, len(frames) - 1])]), path)
    else:
        try:
            data = as_gif(frames) if path.suffix.lower() == ".gif" else as_mp4(frames)
        except OSError as error:
            raise cannot_write(path, error) from None
        replace_file(path, data)
    return task.now()


def pictures(task: Task, title: str, agent: Agent) -> Iterator[tuple[Image.Image, Moment]]:
    """A picture of the start, and one after every step."""
    painter, moment = Painter(task, title, plane_of(agent)), task.now()
    yield painter.frame(moment), moment
    while not moment.ended:
        moment = task.forward()
        yield painter.frame(moment), moment


def few(numbers: list[int]) -> list[int]:
    """At most `PICTURES` of the numbers, evenly spread, with the first and the last."""
    distinct = sorted(set(numbers))
    places = np.linspace(0, len(distinct) - 1, min(PICTURES, len(distinct)))
    return [distinct[round(float(place))] for place in places]


def sheet(frames: list[Image.Image], across: int = ACROSS) -> Image.Image:
    """Frames side by side, row by row."""
    width, height = frames[0].size
    columns, rows = min(len(frames), across), -(-len(frames) // across)
    image = Image.new("RGB", (columns * width, rows * height), frames[0].getpixel((0, 0)))
    for k, frame in enumerate(frames):
        image.paste(frame, (k % across * width, k // across * height))
    return image


def as_gif(frames: list[Image.Image]) -> bytes:
    """A GIF of all frames in one palette; with `optimize`, Pillow leaves unchanged pixels transparent."""
    palette = sheet([frames[k] for k in few(list(range(len(frames))))]).quantize(COLOURS)
    first, *rest = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    pauses = [1000 // RATE] * len(rest) + [1000 * LINGER // RATE]
    data = io.BytesIO()
    first.save(data, "GIF", save_all=True, append_images=rest, duration=pauses, loop=0, disposal=1, optimize=True)
    return data.getvalue()


def as_mp4(frames: list[Image.Image]) -> bytes:
    """An MP4 at `RATE` frames per second; both sides of it must be even."""
    encoder = importlib.import_module("imageio_ffmpeg")
    width, height = (side - side % 2 for side in frames[0].size)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "film.mp4")
        writer = encoder.write_frames(
            str(path), (width, height), fps=RATE, macro_block_size=2, ffmpeg_log_level="error"
        )
        writer.send(None)
        for frame in [*frames, *[frames[-1]] * LINGER]:
            writer.send(frame.crop((0, 0, width, height)).tobytes())
        writer.close()
        return path.read_bytes()
