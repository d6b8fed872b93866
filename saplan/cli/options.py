"""Command-line options, read into dataclasses; every mistake becomes one line."""

import contextlib
import io
import os
import re
import sys
from typing import Any, TypeVar

from saplan.errors import InputError, unknown_name

Options = TypeVar("Options")


def take_game(command: str, arguments: list[str]) -> tuple[str, list[str]]:
    """Splits off the first argument, a game's name; the game's rules are among the other arguments."""
    from saplan.games import GAMES

    known = ", ".join(GAMES)
    if arguments and arguments[0] in ("-h", "--help"):
        print(f"usage: saplan {command} GAME [options], where GAME is one of {known}. The options of switches:\n")
        return next(iter(GAMES)), arguments
    if not arguments or arguments[0].startswith("-"):
        raise InputError(f"name the game first, as in `saplan {command} {next(iter(GAMES))}` (known: {known})")
    if arguments[0] not in GAMES:
        raise unknown_name("game", arguments[0], GAMES)
    return arguments[0], arguments[1:]


def value_of(option: str, arguments: list[str], default: str) -> str:
    """The value of an option that decides which other options exist."""
    for k, word in enumerate(arguments):
        if word.startswith(option + "="):
            return word.partition("=")[2]
        if word == option and k + 1 < len(arguments):
            return arguments[k + 1]
    return default


def take_run(command: str, arguments: list[str]) -> tuple[str, list[str]]:
    """Splits off the first argument, a run."""
    return take_first("a run directory or a game", f"{command} switches", arguments)


def take_first(what: str, example: str, arguments: list[str]) -> tuple[str, list[str]]:
    """Splits off the first argument of a command, which is required except before `--help`."""
    if arguments and arguments[0] in ("-h", "--help"):
        return "", arguments
    if not arguments or arguments[0].startswith("-"):
        raise InputError(f"name {what} first, as in `saplan {example}`")
    return arguments[0], arguments[1:]


def read_options(
    options: type[Options],
    command: str,
    arguments: list[str],
    rules: type | tuple[type, ...] | None = None,
    default: Options | None = None,
) -> Options:
    """The options of a command, read from its arguments; `rules` are the type arguments of a generic dataclass."""
    import tyro

    shape: type[Options] = options if rules is None else options[rules]  # type: ignore[index]
    # A setting can be switched on and off; an option of a command is a switch that is off unless it is given.
    pairs = tyro.conf.FlagCreatePairsOff if default is None else tyro.conf.OmitArgPrefixes
    config = (tyro.conf.OmitArgPrefixes, pairs, tyro.conf.DisallowNone)
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), tables():
            given: dict[str, Any] = {} if default is None else {"default": default}
            found: Options = tyro.cli(shape, prog=f"saplan {command}", args=arguments, config=config, **given)
            return found
    except SystemExit as stop:
        if not stop.code:
            raise
        raise InputError(message_of(complaint.getvalue())) from None


read = read_options  # for games.py and watching.py


def tables() -> Any:
    """A context in which tyro reads tables of integers written as `0,2,3/3,0,2/2,3,0`."""
    from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

    registry = ConstructorRegistry()

    @registry.primitive_rule
    def table(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        if info.type != tuple[tuple[int, ...], ...]:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="N,N/N,N",
            instance_from_str=lambda words: tuple(tuple(map(int, row.split(","))) for row in words[0].split("/")),
            is_instance=lambda value: isinstance(value, tuple),
            str_from_instance=lambda value: ["/".join(",".join(map(str, row)) for row in value)],
        )

    return registry


RULE = "\0"
"""Stands for a horizontal line in a box."""


def message_of(box: str) -> str:
    """One line from the box that tyro prints: the message, and the option that it suggests."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    rows = [row.strip("│ ") for row in plain.splitlines() if not row.startswith(("╭", "╰"))]
    parts = " ".join(RULE if set(row) in ({"─"}, {"-"}) else row for row in rows).split(RULE)
    # Where the terminal has no line-drawing characters, the title is a part of its own.
    parts = parts if plain.startswith("╭") else parts[1:]
    message = " ".join(parts[0].split())
    message = re.sub(r"^Error parsing (--\S+?): ", r"\1: ", message)
    message = re.sub(r"^Error parsing \S+: ", "", message)
    message = re.sub(r"invalid literal for int\(\) with base 10: ('.*')", r"\1 is not a whole number", message)
    message = re.sub(r"could not convert string to float: ('.*')", r"\1 is not a number", message)
    near = re.search(r"Perhaps you meant: (--[\w.-]+)", " ".join(" ".join(parts[1:]).split()))
    return message[:1].lower() + message[1:] + (f" (did you mean {near[1]}?)" if near else "")


def check_number(option: str, value: int) -> None:
    """Raises `InputError` unless the number can be a seed or a count of steps."""
    if not 0 <= value < 2**31:
        raise InputError(f"{option} must lie in 0..{2**31 - 1}, got {value}")


def check_seconds(option: str, value: float) -> None:
    """Raises `InputError` unless the number can be a time."""
    if not 0 <= value < float("inf"):
        raise InputError(f"{option} must be a number of seconds from 0 up, got {value}")


def number_of_devices(text: str) -> int:
    """The number of devices in `--devices`, 0 for all."""
    if text == "all":
        return 0
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        raise InputError(f"--devices must be a number from 1 up, or all, got {text!r}")
    return int(text[:9])


def in_colour() -> bool:
    """Whether standard output shows colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def use_one_core() -> None:
    """Keep NumPy's matrix products, small where one task is planned, on one core; call this before NumPy is imported.

    A user's own setting wins.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


ARENA_MAX = -8
"""M_ARENA_MAX of glibc's mallopt."""


def use_one_heap() -> None:
    """Let all threads share one heap: with one each, as glibc does it, the page's server held twice as much memory.

    Nothing happens where the C library has no such setting.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(ARENA_MAX, 1)
