"""The configuration of a run, as JSON that a person can read and a program can trust."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saplan.errors import InputError
from saplan.games import GAMES, Game, make_game
from saplan.games.grid import MapRules
from saplan.games.rules import check_rules
from saplan.games.wrapper import GameWrapper
from saplan.methods.ablations import FULL, Ablated, ablated
from saplan.methods.registry import find_method
from saplan.perception.fitted import Fitted
from saplan.perception.formats import read_fitted
from saplan.rl.settings import Settings
from saplan.storage.files import read_bytes, replace_file
from saplan.storage.json_data import is_whole, parse_json
from saplan.training.checkpoint import first_difference

ATTRIBUTES = "attributes.safetensors"
"""The file of attributes that are not the game's own."""
LARGEST = 2**22
"""Bytes of a JSON file. Beyond this nothing is read."""
MOST = {"steps": 2**40, "seed": 2**31 - 1, "eval_points": 64, "eval_tasks": 100_000}
"""Of the numbers of a run."""


class OtherWorldError(InputError):
    """A run's world has to be given, or the one given is another."""


@dataclass(frozen=True)
class RunConfig:
    """What was trained, how, and with which seed."""

    game: Game[Any]
    settings: Settings
    steps: int
    seed: int
    method: str = "structured"
    eval_points: int = 5
    """How often training tries held-back tasks, to report its progress; nothing is learnt from them."""
    eval_tasks: int = 200
    """How many each time; 0: the agent is kept, and whoever wants to know tries it later."""

    def to_json(self) -> dict[str, Any]:
        """Plain data, exactly as it comes back from a JSON file: lists in place of tuples."""
        game = _unwrapped(self.game)
        algebra = {"algebra": self.game.algebra} if isinstance(self.game, Ablated) else {}
        attributes = {"attributes": self.game.digest} if isinstance(self.game, Fitted) else {}
        data = {
            "method": self.method,
            **game.described(),
            **algebra,
            **attributes,
            "settings": dataclasses.asdict(self.settings),
            "steps": self.steps,
            "seed": self.seed,
            "eval_points": self.eval_points,
            "eval_tasks": self.eval_tasks,
        }
        return _plain(data)


def config_from_json(data: Any, where: Path, world: Game[Any] | None = None) -> RunConfig:
    """The configuration that plain data describe; `InputError` naming `where` they are from if they describe none.

    Attributes that are not the game's own lie in a file beside it. A `world` that is not one of our games has to be
    given: no file says how to make one. Any `world` that is given must be the one that the data describe.
    """
    try:
        _check_fields(data)
        numbers = {name: data[name] for name in ("steps", "seed")}
        numbers |= {name: data[name] for name in ("eval_points", "eval_tasks") if name in data}
        for name, value in numbers.items():
            if not is_whole(value, 0, MOST[name]):
                raise InputError(f"{name} must be a whole number in 0..{MOST[name]}, got {value!r}")
        settings = find_method(data["method"]).settings(**data["settings"])
        game = ablated(_game_of(data, where, world), data.get("algebra", FULL))
        return RunConfig(
            game=_fitted(game, where.with_name(ATTRIBUTES), data["attributes"]) if "attributes" in data else game,
            settings=settings,
            method=str(data["method"]),
            **numbers,
        )
    except OtherWorldError:
        raise
    except InputError as error:
        raise InputError(f"{where} is not a run's configuration: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{where} is not a run's configuration: {type(error).__name__}: {reason}") from None


def _game_of(data: Any, where: Path, world: Game[Any] | None) -> Game[Any]:
    """The game that a configuration describes: made by its rules, or the one that a person gives."""
    described = {name: data[name] for name in ("game", "rules", "world") if name in data}
    if "world" not in data and data["game"] in GAMES and (world is None or is_ours(world)):
        check_rules(GAMES[data["game"]](), data["rules"])
        rules = {name: _frozen(value) for name, value in data["rules"].items()}
        if "maps" in rules:
            rules["maps"] = MapRules(**data["rules"]["maps"])
        made = make_game(data["game"], **rules)
        if world is None:
            return made
        described = _plain(made.described())
    elif world is None and "world" in data:
        raise OtherWorldError(f"{where} is of the world {data['game']!r}: load it from Python with that world")
    elif world is None:
        raise InputError(f"unknown game {data['game']!r}")
    given = _unwrapped(world)
    if _plain(given.described()) != described:
        difference = first_difference(_plain(given.described()), described)
        raise OtherWorldError(
            f"{where} is of the world {data['game']!r}, and the one given is another, or has changed: {difference}"
        )
    return given


def is_ours(game: Game[Any]) -> bool:
    """Whether a configuration says all that is needed to make this game again."""
    return GAMES.get(game.name) is type(_unwrapped(game))


def _unwrapped(game: Game[Any]) -> Game[Any]:
    return game.game if isinstance(game, GameWrapper) else game


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(data))


def _check_fields(data: Any) -> None:
    """`InputError` if a field of a configuration is missing, or of another kind altogether."""
    if not isinstance(data, dict):
        raise InputError("it is not an object")
    wanted = ("method", "game", "settings", "steps", "seed", *(() if "world" in data else ("rules",)))
    missing = [name for name in wanted if name not in data]
    if missing:
        raise InputError(f"{missing[0]} is missing")
    if not isinstance(data["method"], str) or not isinstance(data["game"], str):
        raise InputError("method and game must be names")
    if not isinstance(data["settings"], dict):
        raise InputError("settings must be an object")


def _fitted(game: Game[Any], path: Path, digest: Any) -> Fitted:
    found = read_fitted(path).view(game)
    if found.digest != digest:
        raise InputError(f"{path} is not the file that this run was trained with: its SHA-256 is another")
    return found


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def read_json(path: Path) -> Any:
    """The data in a JSON file, or `InputError`."""
    return parse_json(read_bytes(path, LARGEST), path)


def write_json(path: Path, data: Any) -> None:
    """Writes readable JSON, or raises `InputError`."""
    replace_file(path, (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode())


def write_attributes(directory: Path, config: RunConfig) -> None:
    """Puts the file of attributes that are not the game's own beside a configuration."""
    if isinstance(config.game, Fitted):
        replace_file(directory / ATTRIBUTES, config.game.source.data)
