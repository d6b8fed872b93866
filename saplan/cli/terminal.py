"""Keys from a terminal or from a pipe, one at a time."""

import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator

from saplan.errors import InputError

Read = Callable[[float | None], str]
"""Reads one character, waiting at most so many seconds (None: for ever); nothing means there is none."""

ESCAPE = "\x1b"
ARROWS = {"A": "w", "B": "s", "C": "d", "D": "a"}
"""The last character of an arrow key's sequence, and the letter that means the same."""
PATIENCE = 0.05
"""An arrow key arrives as three characters at once; what comes later than this is another key."""


def keys(read: Read) -> Iterator[str]:
    """Keys until the input ends; arrow keys come as w, a, s, d, unknown sequences not at all."""
    while character := read(None):
        if character != ESCAPE:
            yield character
        elif read(PATIENCE) in ("[", "O") and (key := ARROWS.get(read(PATIENCE))):
            yield key


def from_pipe(wait: float | None) -> str:
    """The next character of standard input."""
    del wait
    return sys.stdin.read(1)


@contextlib.contextmanager
def raw_keyboard() -> Iterator[Read]:
    """The keyboard, key by key and without echo; the terminal is put back as it was, whatever happens."""
    try:
        import termios
        import tty
    except ImportError:
        raise InputError(
            "playing by keyboard needs a Unix terminal; here, pipe the keys in or use --random 20"
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
    """A screen of its own, to be redrawn in place; the old one comes back at the end."""
    sys.stdout.write("\x1b[?1049h\x1b[?25l")

    def draw(frame: str) -> None:
        # Cleared line by line and not all at once, so that it does not flicker.
        sys.stdout.write("\x1b[H" + frame.replace("\n", "\x1b[K\n") + "\x1b[J")
        sys.stdout.flush()

    try:
        yield draw
    finally:
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()
