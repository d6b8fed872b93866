"""A task as a film or as a strip of pictures: the page without a browser."""

import contextlib
import importlib
import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from saplan.errors import InputError
from saplan.methods.registry import AnyAgent
from saplan.render.frame import Painter
from saplan.render.pixels import Picture
from saplan.render.plane import plane_of
from saplan.render.png import save_png
from saplan.render.start import BUDGET, start
from saplan.render.task import Moment, Task

FORMATS = (".gif", ".mp4", ".png")
RATE = 6
"""Steps a second."""
LINGER = 12
"""Frames that the end stays."""
COLOURS = 128
"""Of a GIF, besides one that lets the frame before shine through."""
UNCHANGED = COLOURS
PICTURES = 6
"""Of a strip."""
ACROSS = 3

Shown = Callable[[int, int], None]
"""Is told how many of how many steps are done."""


def check_format(path: Path) -> None:
    """`InputError` unless a film can be written to this path."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"--out must end in {', '.join(FORMATS)}, got {str(path)!r}")
    if path.suffix.lower() == ".mp4" and importlib.util.find_spec("imageio_ffmpeg") is None:
        raise InputError("an .mp4 needs imageio-ffmpeg: pip install imageio-ffmpeg, or write a .gif")
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {str(path.parent)!r} to write {path.name} to")


def render(agent: AnyAgent, title: str, goal: str, seed: int, path: Path, show: Shown) -> Moment:
    """Carries out a task and writes what there is to see; returns how it ended."""
    check_format(path)
    task = Task(agent, start(agent.game, seed), goal, seed)
    frames, decisions = [], [0]
    for number, (picture, moment) in enumerate(pictures(task, title, agent)):
        frames.append(picture)
        if moment.tried:
            decisions.append(number)
        show(moment.step, BUDGET)
    if path.suffix.lower() == ".png":
        save_png(strip([frames[k] for k in few([*decisions, len(frames) - 1])]), path)
    else:
        with in_place_of(path) as aside:
            (save_gif if path.suffix.lower() == ".gif" else save_mp4)(frames, aside)
    return task.now()


@contextlib.contextmanager
def in_place_of(path: Path) -> Iterator[Path]:
    """A path to write to, which then takes the place of another; a link there is not followed."""
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".film-") as folder:
            yield Path(folder) / path.name
            os.replace(Path(folder) / path.name, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def pictures(task: Task, title: str, agent: AnyAgent) -> Iterator[tuple[Picture, Moment]]:
    """A picture of the start, and one after every step."""
    painter, moment = Painter(task, title, plane_of(agent)), task.now()
    yield painter.frame(moment), moment
    while not moment.ended:
        moment = task.forward()
        yield painter.frame(moment), moment


def few(numbers: list[int]) -> list[int]:
    """At most `PICTURES` of them, evenly spread, the first and the last among them."""
    distinct = sorted(set(numbers))
    places = np.linspace(0, len(distinct) - 1, min(PICTURES, len(distinct)))
    return [distinct[round(float(place))] for place in places]


def strip(frames: list[Picture]) -> Picture:
    """Frames side by side, row by row."""
    height, width, _ = frames[0].shape
    rows, columns = -(-len(frames) // ACROSS), min(len(frames), ACROSS)
    sheet = np.broadcast_to(frames[0][:1, :1], (rows * height, columns * width, 3)).copy()
    for k, picture in enumerate(frames):
        top, left = k // ACROSS * height, k % ACROSS * width
        sheet[top : top + height, left : left + width] = picture
    return sheet


def save_gif(frames: list[Picture], path: Path) -> None:
    """All frames in the same few colours. What does not change is left transparent: long runs take little room."""
    from PIL import Image

    some = np.concatenate([frames[k] for k in few(list(range(len(frames))))])
    palette = Image.fromarray(some).quantize(COLOURS)
    coded = [np.asarray(Image.fromarray(f).quantize(palette=palette, dither=Image.Dither.NONE)) for f in frames]
    images = []
    for k, codes in enumerate(coded):
        image = Image.fromarray(codes if k == 0 else np.where(codes == coded[k - 1], UNCHANGED, codes).astype(np.uint8))
        image.putpalette([*(palette.getpalette() or [])[: 3 * COLOURS], 0, 0, 0])
        images.append(image)
    pauses = [1000 // RATE] * (len(frames) - 1) + [1000 * LINGER // RATE]
    images[0].save(
        path, save_all=True, append_images=images[1:], duration=pauses, loop=0, transparency=UNCHANGED, disposal=1,
        optimize=False,
    )  # fmt: skip


def save_mp4(frames: list[Picture], path: Path) -> None:
    """Every frame at `RATE` a second; both sides of a film must be even."""
    encoder = importlib.import_module("imageio_ffmpeg")
    height, width = (side - side % 2 for side in frames[0].shape[:2])
    writer = encoder.write_frames(str(path), (width, height), fps=RATE, macro_block_size=2, ffmpeg_log_level="error")
    writer.send(None)
    for picture in [*frames, *[frames[-1]] * LINGER]:
        writer.send(np.ascontiguousarray(picture[:height, :width]))
    writer.close()
