"""The configuration of a run, as JSON that people can read and that is validated when it is read back."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saplan.errors import InputError
from saplan.games import GAMES, Game, make_game
from saplan.games.grid import MapRules
from saplan.games.rule_cards import check_rules
from saplan.games.wrapper import GameWrapper
from saplan.methods.ablations import FULL, Ablated, ablated
from saplan.methods.registry import find_method
from saplan.perception.fitted import FittedGame, read_fitted
from saplan.perception.found_space import FoundGame, found_from_json, found_to_json, with_space
from saplan.rl.settings import Settings
from saplan.storage.files import replace_file
from saplan.storage.json_data import is_whole, through_json
from saplan.storage.manifest import TRAIN_AGAIN, OldFormatError, first_difference

ATTRIBUTES = "attributes.safetensors"
"""The file of fitted attributes beside a configuration."""
DEFAULT_STEPS = {
    "switches": 5_000_000, "exchange": 4_000_000, "mining": 25_000_000, "arm": 10_000_000, "tiles": 10_000_000,
}  # fmt: skip
"""A tenth of the paper's budget where the paper states one."""
MOST = {"steps": 2**40, "seed": 2**31 - 1, "eval_points": 64, "eval_tasks": 100_000}
"""Upper bounds on the numbers of a run."""


FEWEST_TASKS, MOST_TASKS = 8, 200
"""Bounds on the tasks of an evaluation during training, unless their number is given."""
SHARE, TASK_STEPS = 10, 150
"""Evaluations play at most a tenth of the steps of their training, if each of their tasks takes all its steps."""


class OtherWorldError(InputError):
    """A run needs its world as an argument, or the given world is another one."""


@dataclass(frozen=True)
class RunConfig:
    """Game, method, settings, budget and seed of a run."""

    game: Game[Any]
    settings: Settings
    steps: int
    seed: int
    method: str = "structured"
    eval_points: int = 5
    """How often training evaluates the agent on held-back tasks; nothing is learnt from them."""
    eval_tasks: int = 200
    """Tasks per evaluation; 0: the agent is saved for a later evaluation instead."""

    def to_json(self) -> dict[str, Any]:
        """JSON data, equal to those that a file gives back."""
        game = _unwrapped(self.game)
        algebra = {"algebra": self.game.algebra} if isinstance(self.game, Ablated) else {}
        attributes = {"attributes": self.game.digest} if isinstance(self.game, FittedGame) else {}
        space = {"space": found_to_json(self.game.found)} if isinstance(self.game, FoundGame) else {}
        data: dict[str, Any] = through_json({
            "method": self.method,
            **game.described(),
            **algebra,
            **attributes,
            **space,
            "settings": dataclasses.asdict(self.settings),
            **{name: getattr(self, name) for name in MOST},
        })  # fmt: skip
        return data


def run_config(
    game: Game[Any] | str,
    steps: int | None,
    seed: int,
    settings: Settings | None,
    method: str,
    eval_points: int = 5,
    eval_tasks: int | None = None,
) -> RunConfig:
    """The configuration of a run, with defaults in place of None."""
    game = make_game(game) if isinstance(game, str) else game
    settings = find_method(method).settings_for(game, False) if settings is None else settings
    steps = DEFAULT_STEPS.get(game.name, 5_000_000) if steps is None else steps
    eval_tasks = affordable_tasks(steps, eval_points) if eval_tasks is None else eval_tasks
    free = [name for name, alone in zip(game.space.names, game.space.exogenous, strict=True) if alone]
    if free and method != "structured":
        raise InputError(f"{free[0]} changes by itself, and only the structured method can plan without it")
    config = RunConfig(game, settings, steps, seed, method, eval_points, eval_tasks)
    for name, most in MOST.items():
        if getattr(config, name) > most:
            raise InputError(f"{name.replace('_', '-')} must be at most {most}, got {getattr(config, name)}")
    per_update = settings.lanes * settings.rollout
    if steps < per_update:
        raise InputError(f"steps must be at least lanes × rollout = {per_update}, got {steps}")
    return config


def affordable_tasks(steps: int, eval_points: int) -> int:
    """Tasks of every evaluation during training, few in a short training, so that they take little of its time."""
    return max(FEWEST_TASKS, min(MOST_TASKS, steps // (SHARE * TASK_STEPS * max(1, eval_points))))


def config_from_json(data: Any, where: Path, world: Game[Any] | None = None) -> RunConfig:
    """The configuration in JSON data; `InputError` names their source `where` if they are invalid.

    Fitted attributes are read from a file beside it. A `world` that is not one of our games must be given, since no
    file describes how to make it. A given `world` must be the one that the data describe.
    """
    try:
        _check_fields(data)
        numbers = {name: data[name] for name in MOST if name in data}
        for name, value in numbers.items():
            if not is_whole(value, 0, MOST[name]):
                raise InputError(f"{name} must be a whole number in 0..{MOST[name]}, got {value!r}")
        game = ablated(_game_of(data, where, world), data.get("algebra", FULL))
        if "space" in data:
            game = with_space(game, found_from_json(data["space"]))
        return RunConfig(
            game=_fitted(game, where.with_name(ATTRIBUTES), data["attributes"]) if "attributes" in data else game,
            settings=_settings_of(data, where),
            method=data["method"],
            **numbers,
        )
    except (OtherWorldError, OldFormatError):
        raise
    except InputError as error:
        raise InputError(f"{where} is not a run's configuration: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{where} is not a run's configuration: {type(error).__name__}: {reason}") from None


def _settings_of(data: dict[str, Any], where: Path) -> Settings:
    kind, given = find_method(data["method"]).settings, data["settings"]
    unknown = [name for name in given if name not in kind.__dataclass_fields__]
    if unknown:
        raise OldFormatError(
            f"{where} was saved by another version of saplan, with a setting {unknown[0][:80]!r}; {TRAIN_AGAIN}"
        )
    return kind(**{**kind.absent, **given})


def _game_of(data: Any, where: Path, world: Game[Any] | None) -> Game[Any]:
    """The game that a configuration describes: made from its rules, or the given one."""
    described = {name: data[name] for name in ("game", "rules", "world") if name in data}
    if "world" not in data and data["game"] in GAMES and (world is None or is_ours(world)):
        check_rules(GAMES[data["game"]](), data["rules"])
        rules = {name: _frozen(value) for name, value in data["rules"].items()}
        if "maps" in rules:
            rules["maps"] = MapRules(**data["rules"]["maps"])
        made = make_game(data["game"], **rules)
        if world is None:
            return made
        described = through_json(made.described())
    elif world is None and "world" in data:
        how = "load it from Python with that world, or name the world's file with --world"
        raise OtherWorldError(f"{where} belongs to the world {data['game']!r}: {how}")
    elif world is None:
        raise InputError(f"unknown game {data['game']!r}")
    given = _unwrapped(world)
    if through_json(given.described()) != described:
        difference = first_difference(through_json(given.described()), described)
        raise OtherWorldError(f"{where} belongs to the world {data['game']!r}, not to the given one: {difference}")
    return given


def is_ours(game: Game[Any]) -> bool:
    """Whether a configuration is enough to make this game again."""
    return GAMES.get(game.name) is type(_unwrapped(game))


def _unwrapped(game: Game[Any]) -> Game[Any]:
    return game.game if isinstance(game, GameWrapper) else game


def _check_fields(data: Any) -> None:
    """`InputError` if a field of a configuration is missing, or of another type altogether."""
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


def _fitted(game: Game[Any], path: Path, digest: Any) -> FittedGame:
    found = read_fitted(path).view(game)
    if found.digest != digest:
        raise InputError(f"{path} is not the file that this run was trained with: its SHA-256 differs")
    return found


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def write_attributes(directory: Path, config: RunConfig) -> None:
    """Write the file of fitted attributes beside a configuration, if its game has them."""
    if isinstance(config.game, FittedGame):
        replace_file(directory / ATTRIBUTES, config.game.source.data)
