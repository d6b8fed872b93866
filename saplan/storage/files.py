"""Atomic writes, reads that follow no link and open no device, and the lock of a directory."""

import contextlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

from saplan.errors import InputError

try:
    import fcntl
except ImportError:  # Windows, where two processes in one run directory go unnoticed
    fcntl = None  # type: ignore[assignment]

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_bytes(path: Path, largest: int) -> bytes:
    """The bytes of a regular file of at most `largest` bytes; links are not followed, devices not opened."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > largest:
            raise InputError(f"{path} is larger than the {largest / 2**20:.3g} MiB that are allowed here")
        try:
            return file.read(largest)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None


def open_regular(path: Path) -> BinaryIO:
    """A regular file, opened for reading; `InputError` for anything else, such as a link or a device."""
    try:
        file = os.open(path, os.O_RDONLY | NO_FOLLOW)
    except (OSError, ValueError) as error:  # ValueError: the name contains a zero byte
        reason = "it is a symbolic link" if os.path.islink(path) else getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise InputError(f"cannot read {path}: it is not a regular file")
    return os.fdopen(file, "rb")


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file and wait until it is on disk. Raises `OSError`."""
    file = open_fresh(path)
    try:
        write_all(file, data)
        os.fsync(file)
    finally:
        os.close(file)


def open_fresh(path: Path) -> int:
    """A new, empty file. An existing one is unlinked, not truncated: hard links to it keep their content."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o666)


def write_all(file: int, data: bytes) -> None:
    """Write all of the data to an open file, in as many calls as that takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically: at every moment it is the old one or the new one. Raises `InputError`."""
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
    """Create a directory and its parents unless it exists; `InputError` if that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None


def sync_directory(path: Path) -> None:
    """Wait until the entries of a directory are on disk."""
    if os.name == "posix":
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def cannot_write(path: Path, error: OSError) -> InputError:
    """The error to raise when the disk is full or the directory read-only."""
    return InputError(f"cannot write {path}: {error.strerror or error}")


class Lock:
    """Excludes other processes from a directory. The system releases it when this process ends in any way."""

    def __init__(self, directory: Path) -> None:
        """Take the lock, or raise `InputError` if another process holds it."""
        path = directory / "lock"
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o666)
        except OSError as error:
            raise cannot_write(path, error) from None
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            os.close(self._file)
            raise InputError(f"{path} is not a regular file: remove it")
        try:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise InputError(f"{directory} is in use by another process: wait until it ends, or stop it") from None

    def release(self) -> None:
        """Admit other processes. The file stays: without it, two processes could lock two files of one name."""
        os.close(self._file)

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
