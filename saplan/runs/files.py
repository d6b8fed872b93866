"""Files that are whole or not there at all, reading that trusts nothing, and the lock of a run directory."""

import os
import stat
from pathlib import Path
from typing import Any

from saplan.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows, where two processes on one run directory go unnoticed
    fcntl = None  # type: ignore[assignment]

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_bytes(path: Path, largest: int) -> bytes:
    """The bytes of a plain file of at most `largest` bytes; neither links are followed nor devices opened."""
    try:
        file = os.open(path, os.O_RDONLY | NO_FOLLOW)
    except OSError as error:
        reason = "it is a symbolic link" if path.is_symlink() else error.strerror
        raise InputError(f"cannot read {path}: {reason}") from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"cannot read {path}: it is not a plain file")
        if status.st_size > largest:
            raise InputError(f"{path} is larger than {largest // 2**20} MiB: no such file of ours is")
        with os.fdopen(file, "rb", closefd=False) as opened:
            return opened.read(largest)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    finally:
        os.close(file)


def write_synced(path: Path, data: bytes) -> None:
    """Writes a new file and waits until the disk has it. Raises `OSError`."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_FOLLOW, 0o666)
    try:
        write_all(file, data)
        os.fsync(file)
    finally:
        os.close(file)


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
