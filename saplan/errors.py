"""The one exception that means "a person gave something wrong"."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Bad input: one line that says what is wrong and what would be right. The command line exits with 2."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """An error for a name that does not exist, suggesting the nearest one that does."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return InputError(f"unknown {kind} {name!r}: {hint}(known: {', '.join(known)})")
