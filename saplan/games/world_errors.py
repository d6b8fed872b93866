"""Errors of a world that runs outside of JAX, in one line."""

import contextlib
from collections.abc import Iterator

from saplan.errors import InputError
from saplan.games.game import Game, State


@contextlib.contextmanager
def readable_errors(game: Game[State]) -> Iterator[None]:
    """Raises an exception of the world's own code as an `InputError`, in place of JAX's error about a callback.

    The world's exception, with its traceback, is the cause of the `InputError`.
    """
    game.fault()  # discards older errors
    try:
        yield
    except Exception as error:  # its type depends on how JAX calls the program
        fault = game.fault()
        if fault is None or isinstance(error, InputError):
            raise
        if isinstance(fault, InputError):
            raise InputError(str(fault)) from fault
        raise InputError(f"the world {game.name!r} failed: {one_line(fault)}") from fault


def one_line(error: BaseException) -> str:
    """The type of an exception and the first line of its message."""
    text = str(error).strip().partition("\n")[0][:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
