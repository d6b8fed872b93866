"""Closed or full standard streams: one line and an exit code instead of a traceback."""

import contextlib
import errno
import io
import os
import sys
from typing import Any

from saplan.errors import InputError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
CLOSED = "standard output is closed: send it somewhere, such as `>/dev/null`"


def check_streams() -> None:
    """Makes closed streams harmless; `InputError` if standard output is closed."""
    for number in range(3):
        _occupy(number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open until the program ends)
    if sys.stdout is None:
        raise InputError(CLOSED)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a narrow terminal encoding must not end in a traceback


def _occupy(number: int) -> None:
    """Opens the null device for a closed stream, so that the next file does not get its number and the prints."""
    try:
        os.fstat(number)
    except OSError:
        with contextlib.suppress(OSError):
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)


def takes_no_more(error: OSError) -> bool:
    """Whether an error comes from a print: errors of files have a file name."""
    return error.filename is None and error.errno in NO_ROOM


def settle(stream: Any) -> None:
    """Discards output that a stream does not accept, so that Python does not fail again at exit."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError, io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def standard_input() -> Any:
    """Standard input, or `InputError` if it is closed."""
    if sys.stdin is None:
        raise InputError("standard input is closed: type keys, or send some through a pipe")
    return sys.stdin
