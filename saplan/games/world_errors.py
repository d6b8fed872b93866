"""What goes wrong in a world outside of JAX, told in one sentence."""

import contextlib
from collections.abc import Iterator
from typing import Any

from saplan.errors import InputError
from saplan.games.game import Game


@contextlib.contextmanager
def readable_errors(game: Game[Any]) -> Iterator[None]:
    """Raises what a world's own code raised, as an `InputError`, in place of JAX's error about a callback.

    The world's exception, with its traceback, is the cause of the one that is raised.
    """
    game.fault()  # nothing from before
    try:
        yield
    except Exception as error:  # of which kind, depends on how JAX calls the program
        fault = game.fault()
        if fault is None or isinstance(error, InputError):
            raise
        if isinstance(fault, InputError):
            raise InputError(str(fault)) from fault
        raise InputError(f"the world {game.name!r} failed: {one_line(fault)}") from fault


def one_line(error: BaseException) -> str:
    """The kind of an exception and the first line of what it says."""
    text = str(error).strip().partition("\n")[0][:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
