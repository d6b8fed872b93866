"""Files that are whole or not there at all, reading that trusts nothing, and the lock of a run directory."""

import contextlib
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from saplan.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows, where two processes on one run directory go unnoticed
    fcntl = None  # type: ignore[assignment]

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_bytes(path: Path, largest: int, beginning: int | None = None) -> bytes:
    """The bytes of a plain file of at most `largest` bytes; neither links are followed nor devices opened.

    `beginning` reads no more than so many of them.
    """
    with open_plain(path) as opened:
        if os.fstat(opened.fileno()).st_size > largest:
            raise InputError(f"{path} is larger than {largest / 2**20:.3g} MiB, which it should not be")
        try:
            return opened.read(largest if beginning is None else beginning)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None


def open_plain(path: Path) -> BinaryIO:
    """A plain file to read; `InputError` for anything else, links and devices among that."""
    try:
        file = os.open(path, os.O_RDONLY | NO_FOLLOW)
    except (OSError, ValueError) as error:  # the latter: a name with a zero byte
        reason = "it is a symbolic link" if _is_link(path) else getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise InputError(f"cannot read {path}: it is not a plain file")
    return os.fdopen(file, "rb")


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except (OSError, ValueError):
        return False


def write_synced(path: Path, data: bytes) -> None:
    """Writes a new file and waits until the disk has it. Raises `OSError`."""
    file = open_fresh(path)
    try:
        write_all(file, data)
        os.fsync(file)
    finally:
        os.close(file)


def open_fresh(path: Path) -> int:
    """A new, empty file. One of that name is unlinked, not emptied: it may have another name elsewhere."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o666)


def write_all(file: int, data: bytes) -> None:
    """Writes all of the data to an open file, however many calls that takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def replace_file(path: Path, data: bytes) -> None:
    """Puts a file in place that is the old or the new one at every moment, or raises `InputError`."""
    aside = path.with_name(f".{path.name}.new")
    try:
        write_synced(aside, data)
        os.replace(aside, path)
        sync_directory(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise cannot_write(path, error) from None


def make_directory(path: Path) -> None:
    """Makes a directory and those above it, unless it is there; `InputError` if that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None


def sync_directory(path: Path) -> None:
    """Waits until the disk has the names in a directory."""
    if os.name == "posix":
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def cannot_write(path: Path, error: OSError) -> InputError:
    """What to tell a person when the disk is full or the directory read-only."""
    return InputError(f"cannot write {path}: {error.strerror or error}")


class Lock:
    """Keeps other processes out of a run directory. The system releases it when this process ends, however it ends."""

    def __init__(self, directory: Path) -> None:
        """Takes the lock, or raises `InputError` if another process has it."""
        path = directory / "lock"
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o666)
        except OSError as error:
            raise cannot_write(path, error) from None
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            os.close(self._file)
            raise InputError(f"{path} is not a plain file: remove it")
        try:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise InputError(f"another process is at work in {directory}: wait for it, or stop it") from None

    def release(self) -> None:
        """Lets others in. The file stays: to remove it would let two processes hold two locks of one name."""
        os.close(self._file)

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, *_: Any) -> None:
        self.release()
