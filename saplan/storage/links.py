"""Links in a directory that saplan writes to are refused, so that nothing outside it ever changes."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from saplan.errors import InputError

MOST = 200_000
"""Files below a directory. Our own directories hold a few hundred."""
DEEPEST = 8


def refuse_links(directory: Path, names: Iterable[str]) -> None:
    """`InputError` if one of these names in a directory, or anything below it, is a link, a device or a pipe.

    The directory itself is the one that a person named, and may be reached by a link.
    """
    left = [(directory / name, 0) for name in names]
    count = 0
    while left:
        path, depth = left.pop()
        kind = _kind(path)
        if kind is None:
            continue
        if kind not in (stat.S_IFREG, stat.S_IFDIR):
            what = "a symbolic link" if kind == stat.S_IFLNK else "neither a file nor a directory"
            raise InputError(f"{path} is {what}, and might lead outside {directory}: remove it, or put a copy there")
        if kind == stat.S_IFDIR:
            left += [(Path(entry), depth + 1) for entry in _entries(path)]
        count += 1
        if count > MOST or depth > DEEPEST:
            raise InputError(f"{directory} holds too many files, or too deeply nested ones, to be written by saplan")


def _kind(path: Path) -> int | None:
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _entries(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.path for entry in entries]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
