"""The exceptions that a person is told about in one line, each with its exit code."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Bad input: one line that says what is wrong and what would be right. The command line exits with 2."""


class NoPathError(Exception):
    """No plan leads to the goal, so nothing was done. The command line exits with 4."""


class NotFiniteError(ArithmeticError):
    """Training met a number that is not finite, and stopped. The command line exits with 3."""


class StoppedError(Exception):
    """A person or the system asked training to stop; it is saved. The command line exits with 128 + the signal."""

    def __init__(self, signal: int, message: str) -> None:
        """`signal` is its number: 2 for Ctrl-C, 15 for SIGTERM."""
        super().__init__(message)
        self.signal = signal


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """An error for a name that does not exist, suggesting the nearest one that does."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return InputError(f"unknown {kind} {name!r}: {hint}(known: {', '.join(known)})")
