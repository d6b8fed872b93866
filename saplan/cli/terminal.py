"""Keys from a terminal or from a pipe, one at a time."""

import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator

from saplan.errors import InputError

Read = Callable[[float | None], str]
"""Reads one character; returns "" at the end of the input, or if none arrives in time (seconds; None: wait)."""

ESCAPE = "\x1b"
ARROWS = {"A": "w", "B": "s", "C": "d", "D": "a"}
"""The last character of an arrow key's sequence, and the letter with the same meaning."""
PATIENCE = 0.05
"""Seconds. The three characters of an arrow key arrive at once; a later character is another key."""


def keys(read: Read) -> Iterator[str]:
    """Keys until the input ends; arrow keys become w, a, s, d, and unknown sequences are dropped."""
    while character := read(None):
        if character != ESCAPE:
            yield character
        elif read(PATIENCE) in ("[", "O") and (key := ARROWS.get(read(PATIENCE))):
            yield key


def from_pipe(wait: float | None) -> str:
    """Next character of standard input, however long it takes."""
    del wait
    return sys.stdin.read(1)


@contextlib.contextmanager
def raw_keyboard() -> Iterator[Read]:
    """The keyboard, key by key and without echo; the terminal's settings are restored at the end."""
    try:
        import termios
        import tty
    except ImportError:
        raise InputError(
            "playing by keyboard needs a Unix terminal; on this system pipe the keys in, or use --random 20"
        ) from None
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)

    def read(wait: float | None) -> str:
        ready, _, _ = select.select([file], [], [], wait)
        return os.read(file, 1).decode(errors="replace") if ready else ""

    try:
        tty.setcbreak(file)
        yield read
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


@contextlib.contextmanager
def full_screen() -> Iterator[Callable[[str], None]]:
    """The terminal's alternate screen, redrawn in place; the old screen returns at the end."""
    sys.stdout.write("\x1b[?1049h\x1b[?25l")

    def draw(frame: str) -> None:
        # Clearing line by line, not all at once, avoids flicker.
        sys.stdout.write("\x1b[H" + frame.replace("\n", "\x1b[K\n") + "\x1b[J")
        sys.stdout.flush()

    try:
        yield draw
    finally:
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()
