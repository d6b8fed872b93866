"""Standard input, output and error when they are closed or full: one line, and an exit code."""

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
    """Makes closed streams harmless; `InputError` if there is no standard output to answer on."""
    for number in range(3):
        _occupy(number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for as long as the program runs)
    if sys.stdout is None:
        raise InputError(CLOSED)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a narrow terminal encoding must not end in a traceback


def _occupy(number: int) -> None:
    """Keeps the number of a closed stream from being given to the next file, which prints would then go into."""
    try:
        os.fstat(number)
    except OSError:
        with contextlib.suppress(OSError):
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)


def takes_no_more(error: OSError) -> bool:
    """Whether an error comes from a print: files name themselves in theirs."""
    return error.filename is None and error.errno in NO_ROOM


def settle(stream: Any) -> None:
    """Drops what a stream does not take, so that Python does not fail again when it closes its files."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError, io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def standard_input() -> Any:
    """What a person types, or `InputError` if that stream is closed."""
    if sys.stdin is None:
        raise InputError("standard input is closed: type keys, or send some through a pipe")
    return sys.stdin
