"""`saplan check` and `saplan suggest`."""

import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from saplan.cli.options import check_number, read_options, take_first
from saplan.errors import InputError

WORLD = "world"


@dataclass(frozen=True)
class Check:
    """Find mistakes in a world of yours by random play. FILE is imported as a Python module; it defines a world, or a
    function without arguments that makes one.

    Finds attributes outside their space, blocks that do not fit the values, changes that no action causes, hidden
    preconditions, and resets that do not clear all state. Exit code 1 if something must be fixed.
    """

    steps: int = 500
    """Steps per lane."""
    lanes: int = 32
    """Episodes played side by side."""
    seed: int = 0
    """Seed of all randomness."""


def check_command(arguments: list[str]) -> None:
    """`saplan check FILE`."""
    place, rest = take_first(
        "a file that defines a world", "check my_world.py` or `saplan check my_world.py:taxi", arguments
    )
    options = read_options(Check, "check FILE[:NAME]", rest)
    for name, least in (("steps", 20), ("lanes", 1)):
        if not least <= getattr(options, name) <= 100_000:
            raise InputError(f"--{name} must lie in {least}..100000, got {getattr(options, name)}")

    from saplan.envs.check import check_world, findings_text

    world = load_world(place)
    print(f"{world.name}: {world.space}", flush=True)
    found = check_world(
        world, options.steps, options.lanes, options.seed, lambda line: print(line, file=sys.stderr, flush=True)
    )
    print("\n".join(findings_text(found)))
    if any(finding.wrong for finding in found):
        raise SystemExit(1)


@dataclass(frozen=True)
class Suggest:
    """Find the algebra of a world's attributes from random play, without any task. WORLD is a game, or a Python file
    that defines a world; of its space only the names count.

    Prints a block for every attribute, its margin over the next block in bits, and the evidence. Below 8 bits the
    choice is undecided: more steps may decide it.
    """

    steps: int = 200_000
    """Steps of play."""
    lanes: int = 64
    """Games played side by side."""
    seed: int = 0
    """Seed of all randomness."""
    json: bool = False
    """Print the suggestion as JSON, which `saplan train --space FILE` reads."""


def suggest_command(arguments: list[str]) -> None:
    """`saplan suggest WORLD`."""
    place, rest = take_first("a game or a file that defines a world", "suggest my_world.py", arguments)
    options = read_options(Suggest, "suggest WORLD", rest)
    check_number("--seed", options.seed)
    for name, least, most in (("steps", 100, 10**8), ("lanes", 1, 100_000)):
        if not least <= getattr(options, name) <= most:
            raise InputError(f"--{name} must lie in {least}..{most}, got {getattr(options, name)}")

    import json

    from saplan.games import GAMES, make_game
    from saplan.perception.suggest import suggest_space

    world = make_game(place) if place in GAMES else load_world(place)
    found = suggest_space(world, options.steps, options.seed, options.lanes)
    if options.json:
        print(json.dumps({"game": world.name, **found.to_json()}, indent=1, ensure_ascii=False))
    else:
        print("\n".join([f"{world.name}, {found.lines()[0]}", *found.lines()[1:]]))


def named_world(place: str | None) -> Any:
    """The world that `--world` names, or None."""
    return None if place is None else load_world(place)


def load_world(place: str) -> Any:
    """The world that a Python file defines: `my_world.py:name`, or the one called `world`, or the only one."""
    from saplan.games import Game

    text, _, name = place.rpartition(":") if place.rpartition(":")[0].endswith(".py") else (place, "", "")
    path = Path(text)
    if not path.is_file() or path.suffix != ".py":
        raise InputError(f"{text} is not a Python file: write one that defines a world, see docs/your-world.md")
    module = _import_file(path)
    found = worlds_of(module)
    listed = f"its worlds are {', '.join(f'{path}:{one}' for one in found)}" if found else "it defines no world"
    if not name and WORLD not in found and len(found) != 1:
        more = f"name one: {listed}" if found else f"{listed}: call it `{WORLD}`, or name it as in `{path}:name`"
        raise InputError(f"{path}: {more}")
    name = name or (WORLD if WORLD in found else found[0])
    if not hasattr(module, name):
        raise InputError(f"{path} does not define {name!r}; {listed}")
    if len(found) > 1:
        print(f"{path}: {listed}; taking {name}", file=sys.stderr, flush=True)
    value = getattr(module, name)
    try:
        made = value() if callable(value) and not isinstance(value, Game) else value
    except TypeError as error:
        raise InputError(f"{path}: {name} does not make a world: {error}") from None
    if not isinstance(made, Game):
        raise InputError(f"{path}: {name} is not a world; {listed}")
    return made


def worlds_of(module: ModuleType) -> list[str]:
    """Names of the worlds in a module, and of its functions without arguments that say that they return one."""
    from saplan.games import Game

    def makes_one(name: str, value: Any) -> bool:
        if isinstance(value, Game):
            return True
        if not inspect.isfunction(value) or value.__module__ != module.__name__:
            return False
        parameters = inspect.signature(value).parameters.values()
        if any(parameter.default is parameter.empty for parameter in parameters):
            return False
        returns = value.__annotations__.get("return")
        words = returns if isinstance(returns, str) else getattr(returns, "__name__", "")
        return name == WORLD or words.endswith(("World", "Game"))

    return [name for name, value in vars(module).items() if makes_one(name, value)]


def _import_file(path: Path) -> ModuleType:
    import importlib.util

    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except (ImportError, SyntaxError) as error:
        raise InputError(f"{path} cannot be run: {error}") from None
    return module
