"""`saplan games` and `saplan play`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from saplan.cli.options import check_number, in_colour, read, take_game
from saplan.cli.streams import standard_input
from saplan.errors import InputError

Rules = TypeVar("Rules")
PORTRAIT_SEED = 5
PORTRAIT_STEPS = 250


@dataclass(frozen=True)
class Games:
    """The rules of the games: attributes, actions and admissible transitions."""

    json: bool = False
    """Print the rules as JSON instead of text."""
    pictures: Path | None = None
    """Also write one PNG per game into this directory."""


@dataclass(frozen=True, kw_only=True)
class GamesOf(Games, Generic[Rules]):
    """The rules of one game: attributes, actions and admissible transitions."""

    game: Rules


def games_command(arguments: list[str]) -> None:
    """`saplan games [GAME]`."""
    from saplan.games import GAMES

    if arguments and not arguments[0].startswith("-"):
        name, rest = take_game("games", arguments)
        options = read(GamesOf, f"games {name}", rest, GAMES[name])
        print_games(options, [options.game])
    else:
        print_games(read(Games, "games", arguments), [game() for game in GAMES.values()])


def portrait(game: Any) -> Any:
    """The scene after `PORTRAIT_STEPS` random steps with a fixed seed."""
    import numpy as np

    from saplan.envs.goal_env import GoalEnv

    env = GoalEnv(game)
    env.reset(seed=PORTRAIT_SEED)
    for action in np.random.default_rng(PORTRAIT_SEED).integers(len(game.actions), size=PORTRAIT_STEPS):
        env.step(action)
    return env.scene()


def print_games(options: Games, chosen: list[Any]) -> None:
    """Prints the rule cards, and writes the pictures if a directory is given."""
    import json

    from saplan.games.rule_cards import rule_card, rule_data
    from saplan.render.ansi import strong
    from saplan.render.canvas import save_png
    from saplan.render.pixels import draw
    from saplan.storage.files import make_directory

    if options.json:
        print(json.dumps([rule_data(game) for game in chosen], indent=2, ensure_ascii=False))
    else:
        print("\n\n\n".join(rule_card(game, lambda title: strong(title, in_colour())) for game in chosen))
    if options.pictures is not None:
        make_directory(options.pictures)
        for game in chosen:
            save_png(draw(portrait(game), cell=64), options.pictures / f"{game.name}.png")


@dataclass(frozen=True)
class Play(Generic[Rules]):
    """Play a game yourself, with the keyboard or with piped keys: w a s d, space, 1-9 for trades, n, q."""

    game: Rules
    seed: int = 0
    """Seed of the map."""
    goal: str | None = None
    """The goal, as "red=2 blue=1" or "m1=5.2±0.5"; by default the game draws a task."""
    random: int | None = None
    """Play this many random steps."""


def play_command(arguments: list[str]) -> None:
    """`saplan play GAME`."""
    name, rest = take_game("play", arguments)

    from saplan.cli.player import Player, play_by_keyboard, play_keys, random_keys
    from saplan.games import GAMES

    options = read(Play, f"play {name}", rest, GAMES[name])
    check_number("--seed", options.seed)
    check_number("--random", options.random or 0)
    player = Player(options.game, options.seed, options.goal)
    if options.random is not None:
        play_keys(player, in_colour(), random_keys(player, options.random, options.seed))
        return
    try:
        if standard_input().isatty() and sys.stdout.isatty():
            play_by_keyboard(player, in_colour())
        else:
            play_keys(player, in_colour())
    except UnicodeDecodeError as error:
        raise InputError(f"standard input must be text, one character per key: {error}") from None
