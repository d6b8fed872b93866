"""Exceptions that the command line reports in one line, with their exit codes, and the printing of that line."""

import contextlib
import difflib
import sys
from collections.abc import Iterable

LONGEST = 1000
"""Most characters of such a line: a file may hold a name of any length."""


class InputError(ValueError):
    """Bad input: one line that says what is wrong and what would be right. The command line exits with 2."""


class NoPathError(Exception):
    """No plan leads to the goal, and no step was taken. The command line exits with 4."""


class NotFiniteError(ArithmeticError):
    """Training stopped at a number that is not finite. The command line exits with 3."""


class StoppedError(Exception):
    """A signal stopped training, which has been saved. The command line exits with 128 + the signal."""

    def __init__(self, signal: int, message: str) -> None:
        """`signal` is the number of the signal: 2 for Ctrl-C, 15 for SIGTERM."""
        super().__init__(message)
        self.signal = signal


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Error for a name that does not exist, with the nearest one that does."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return InputError(f"unknown {kind} {name!r}: {hint}(known: {', '.join(known)})")


def visible(text: str) -> str:
    """The text as one line that is safe to print on a terminal: control characters are escaped, as in `\\x1b`."""
    line = " ".join(text.split())
    line = line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


def say(text: str) -> None:
    """Prints one line on standard error; a closed or full one is ignored."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print("saplan:", visible(text), file=sys.stderr, flush=True)
