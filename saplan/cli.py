"""The command line. Nothing heavy is imported before a command needs it, so that `saplan --help` answers at once.

A command is a frozen dataclass of options, whose docstrings are its help, and a function that reads them from the
arguments and does the work; `COMMANDS` names it. What a person gets wrong is an `InputError`: one line, exit code 2.
"""

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from saplan.errors import InputError, NotFiniteError, StoppedError, unknown_name

Options = TypeVar("Options")
Rules = TypeVar("Rules")
Numbers = TypeVar("Numbers")


@dataclass(frozen=True)
class Games:
    """The rules of the games: attributes, actions and admissible transitions."""

    json: bool = False
    """Print the cards as JSON."""
    pictures: Path | None = None
    """Also write one PNG per game into this folder."""


@dataclass(frozen=True, kw_only=True)
class GamesOf(Games, Generic[Rules]):
    """The rules of one game: attributes, actions and admissible transitions."""

    game: Rules


def games(arguments: list[str]) -> None:
    """`saplan games [GAME]`."""
    from saplan.games import GAMES

    if arguments and not arguments[0].startswith("-"):
        name, rest = take_game("games", arguments)
        options = read(GamesOf, f"games {name}", rest, GAMES[name])
        print_games(options, [options.game])
    else:
        print_games(read(Games, "games", arguments), [game() for game in GAMES.values()])


def print_games(options: Games, chosen: list[Any]) -> None:
    """Prints the cards, and paints the pictures if they are asked for."""
    import json

    from saplan.envs.cards import portrait, rule_card, rule_data
    from saplan.envs.picture import paint
    from saplan.envs.png import save_png

    if options.json:
        print(json.dumps([rule_data(game) for game in chosen], indent=2, ensure_ascii=False))
    else:
        print("\n\n\n".join(rule_card(game, in_colour()) for game in chosen))
    if options.pictures is not None:
        try:
            options.pictures.mkdir(parents=True, exist_ok=True)
            for game in chosen:
                save_png(paint(portrait(game), cell=64), options.pictures / f"{game.name}.png")
        except OSError as error:
            raise InputError(f"cannot write pictures to {options.pictures}: {error.strerror}") from None


@dataclass(frozen=True)
class Play(Generic[Rules]):
    """Play a game yourself, with the keyboard or with keys from a pipe: w a s d, space, 1-9 for trades, n, q."""

    game: Rules
    seed: int = 0
    """Which map."""
    goal: str | None = None
    """What to reach, as "red=2 blue=1" or "m1=5.2±0.5"; by default a task that the game draws."""
    random: int | None = None
    """Let chance play this many steps."""


def play(arguments: list[str]) -> None:
    """`saplan play GAME`."""
    name, rest = take_game("play", arguments)

    from saplan.envs.play import Player, play_by_keyboard, play_keys, random_keys
    from saplan.games import GAMES

    options = read(Play, f"play {name}", rest, GAMES[name])
    check_number("--seed", options.seed)
    check_number("--random", options.random or 0)
    player = Player(options.game, options.seed, options.goal)
    if options.random is not None:
        play_keys(player, in_colour(), random_keys(player, options.random, options.seed))
    elif sys.stdin.isatty() and sys.stdout.isatty():
        play_by_keyboard(player, in_colour())
    else:
        play_keys(player, in_colour())


@dataclass(frozen=True)
class Train(Generic[Rules, Numbers]):
    """Train an agent on a game, without any task; leaves a run directory with configuration, metrics and agent.

    `--paper` starts from the paper's variant; the other options then change that.
    """

    game: Rules
    settings: Numbers
    method: str = "structured"
    """structured, unstructured or curriculum; each has settings of its own."""
    steps: int | None = None
    """Environment steps, all of them counted; by default a tenth of the paper's on switches and
    exchange, and 25 M on mining."""
    seed: int = 0
    """Seed of everything random."""
    out: Path | None = None
    """The run directory; by default runs/GAME-SEED, with the method's name where it is another."""
    looks: int = 5
    """How often to try held-back tasks: at the end, half-way, at a quarter, and so on."""
    save_every: float = 60.0
    """Seconds between two checkpoints. Ctrl-C and SIGTERM save, too."""
    resume: Path | None = None
    """Go on with the run in this directory: `saplan train --resume RUN` is enough. Options that are given as well must
    be those of the run."""


@dataclass(frozen=True)
class Resume:
    """Go on with a run from its newest checkpoint, as if it had never stopped."""

    resume: Path
    """The run directory."""
    save_every: float = 60.0
    """Seconds between two checkpoints."""


def train(arguments: list[str]) -> None:
    """`saplan train GAME`, or `saplan train --resume RUN`."""
    from saplan.experiments.show import Shower

    if value_of("--resume", arguments, "") and arguments[0].startswith("-"):
        given = read(Resume, "train", arguments)
        out = given.resume
        check_seconds("--save-every", given.save_every)
        with contextlib.closing(Shower()) as shower:
            go_on(out, None, shower, given.save_every)
    else:
        out = train_anew(arguments, Shower)
    print(f"trained; the agent is in {out}: try `saplan evaluate {out}`")


def go_on(out: Path, wanted: Any, shower: Any, save_every: float) -> None:
    """Goes on with a run."""
    from saplan.experiments.train import resume

    resume(out, wanted, show=shower, save_every=save_every)


def train_anew(arguments: list[str], shower_of: Any) -> Path:
    """`saplan train GAME`, whose options may also name a run to go on with."""
    name, rest = take_game("train", arguments)
    faithful = "--paper" in rest
    rest = [word for word in rest if word != "--paper"]

    from saplan.baselines.methods import find_method
    from saplan.experiments.train import run_config
    from saplan.experiments.train import train as train_agent
    from saplan.games import GAMES

    game, method = GAMES[name](), find_method(value_of("--method", rest, "structured"))
    default = Train(game=game, settings=method.settings_for(game, faithful), method=method.name)
    options = read(Train, f"train {name}", rest, (GAMES[name], method.settings), default)
    check_number("--seed", options.seed)
    check_number("--looks", options.looks)
    check_seconds("--save-every", options.save_every)
    config = run_config(options.game, options.steps, options.seed, options.settings, method.name)
    title = name if method.name == "structured" else f"{name}-{method.name}"
    out = options.resume or options.out or Path("runs") / f"{title}-{options.seed}"
    with contextlib.closing(shower_of()) as shower:
        if options.resume is not None:
            go_on(out, config, shower, options.save_every)
        else:
            train_agent(
                config.game, config.steps, config.seed, config.settings, out, options.looks,
                show=shower, method=method.name, save_every=options.save_every,
            )  # fmt: skip
    return out


@dataclass(frozen=True)
class Evaluate:
    """Success of a trained agent on fixed tasks. RUN is a run directory, or a game's name for the shipped agent."""

    tasks: int = 1000
    """Number of tasks."""
    task_seed: int = 0
    """Which tasks: the same for every agent."""
    budget: int = 150
    """Steps allowed per task."""
    method: str | None = None
    """Insist on a method; `oracle` needs a game and no run: it knows the rules and sees the map."""
    paper: bool = False
    """Plan as the paper does: the likeliest path by the one probability its detector gives."""
    json: bool = False
    """Print JSON."""


def evaluate(arguments: list[str]) -> None:
    """`saplan evaluate RUN`."""
    run, rest = take_run("evaluate", arguments)
    options = read(Evaluate, "evaluate RUN", rest)
    check_number("--task-seed", options.task_seed)
    for option, value in (("--tasks", options.tasks), ("--budget", options.budget)):
        if not 1 <= value <= 100_000:
            raise InputError(f"{option} must lie in 1..100000, got {value}")

    import json

    from saplan.experiments.summary import evaluation_text, summarise
    from saplan.model.walk import FAITHFUL, IMPROVED

    planning = FAITHFUL if options.paper else IMPROVED
    result = summarise(run, options.tasks, options.task_seed, options.budget, planning, options.method)
    print(json.dumps(result, indent=2, ensure_ascii=False) if options.json else evaluation_text(result))


@dataclass(frozen=True)
class PlanOptions:
    """Plan a path of attributes to a goal, and walk it. RUN is a run directory, or a game's name."""

    goal: str
    """What to reach, as "red=2 blue=1", "m1=5.2±0.5" or "red>=2"; attributes not named are free."""
    seed: int = 0
    """Which map."""
    budget: int = 150
    """Steps allowed."""
    method: str | None = None
    """Insist on a method; `oracle` needs a game and no run: it knows the rules and sees the map."""
    paper: bool = False
    """Plan as the paper does: the likeliest path by the one probability its detector gives."""
    json: bool = False
    """Print JSON."""


def plan(arguments: list[str]) -> None:
    """`saplan plan RUN --goal TEXT`."""
    run, rest = take_run("plan", arguments)
    options = read(PlanOptions, "plan RUN", rest)
    check_number("--seed", options.seed)
    if not 0 <= options.budget <= 100_000:
        raise InputError(f"--budget must lie in 0..100000, got {options.budget}")

    import json

    from saplan.envs.tell import narrate, tell_json
    from saplan.model.walk import FAITHFUL, IMPROVED
    from saplan.runs.store import open_agent

    agent, planning = open_agent(run, options.method)[0], FAITHFUL if options.paper else IMPROVED
    if options.json:
        told = tell_json(agent, options.goal, options.seed, options.budget, planning)
        print(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        for text in narrate(agent, options.goal, options.seed, options.budget, in_colour(), planning):
            print(text, flush=True)


@dataclass(frozen=True)
class Doctor:
    """Check that this installation works: versions, devices, games, shipped agents."""


def doctor(arguments: list[str]) -> None:
    """`saplan doctor`."""
    read(Doctor, "doctor", arguments)

    from saplan.experiments.summary import WELL, examine

    line = ""
    for line in examine():
        print(line, flush=True)
    if line != WELL:
        raise SystemExit(1)


@dataclass(frozen=True)
class Demo:
    """Train on switches, compare with the paper's figure, and carry out one plan."""

    steps: int = 2_500_000
    """Environment steps: a twentieth of the paper's."""
    seed: int = 0
    """Seed of everything random."""
    tasks: int = 1000
    """Test tasks."""


def demo(arguments: list[str]) -> None:
    """`saplan demo`."""
    options = read(Demo, "demo", arguments)
    check_number("--seed", options.seed)

    from saplan.envs.tell import narrate
    from saplan.experiments.evaluate import evaluate as run_tasks
    from saplan.experiments.show import Shower
    from saplan.experiments.summary import PAPER
    from saplan.experiments.train import train as train_agent

    print(f"Training on switches, without any task, for {options.steps / 1e6:g} M steps (the paper: 50 M) ...")
    shower = Shower()
    agent = train_agent("switches", options.steps, options.seed, looks=2, show=shower)
    shower.close()
    print(f"\nTrying {options.tasks} tasks it never saw, 150 steps each ...")
    success = float(run_tasks(agent, options.tasks).success.mean())
    print(f"success {success:.1%}   (paper: {PAPER['structured']['switches']:.1%} after 50 M steps)\n")
    for text in narrate(agent, "red=1 green=1 blue=1", options.seed, 150, in_colour()):
        print(text, flush=True)


COMMANDS: dict[str, tuple[str, Callable[[list[str]], None]]] = {
    "games": ("the rules of the games, as text, data or pictures", games),
    "play": ("play a game yourself", play),
    "train": ("train an agent on a game, without any task", train),
    "evaluate": ("success of a trained agent on fixed tasks", evaluate),
    "plan": ("plan a path of attributes to a goal, and walk it", plan),
    "demo": ("train on switches, compare with the paper, carry out a plan", demo),
    "doctor": ("check that this installation works", doctor),
}


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a narrow terminal encoding shall not end in a traceback
    try:
        dispatch(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except InputError as error:
        print("saplan:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    except NotFiniteError as error:
        print("saplan:", error, file=sys.stderr)
        return 3
    except StoppedError as stop:
        print("saplan:", stop, file=sys.stderr)
        return 128 + stop.signal
    except BrokenPipeError:
        # The reader has gone; what is still buffered must not fail again when Python closes its files.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    return 0


def dispatch(argv: list[str]) -> None:
    """Finds the command and hands it its arguments."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
    elif argv[0] in ("-V", "--version"):
        from importlib.metadata import version

        print(f"saplan {version('saplan')}")
    elif argv[0] in COMMANDS:
        COMMANDS[argv[0]][1](argv[1:])
    elif argv[0].startswith("-"):
        raise unknown_name("option", argv[0], ["--help", "--version"])
    else:
        raise unknown_name("command", argv[0], COMMANDS)


def usage() -> str:
    """The text of `saplan --help`."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, (summary, _) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: saplan COMMAND [options]",
            "",
            "Train once without any task, then reach any goal you can write as attributes.",
            "",
            *lines,
            "",
            "`saplan COMMAND --help` lists a command's options; `saplan --version` tells the version.",
            "Exit codes: 0 done, 2 bad input, 3 a number was not finite, 130 and 143 stopped by Ctrl-C and SIGTERM.",
        ]
    )


def take_game(command: str, arguments: list[str]) -> tuple[str, list[str]]:
    """Splits off the game's name, the first argument of a command; its rules are among the other arguments."""
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
    """The value of an option that decides which other options there are."""
    for k, word in enumerate(arguments):
        if word.startswith(option + "="):
            return word.partition("=")[2]
        if word == option and k + 1 < len(arguments):
            return arguments[k + 1]
    return default


def take_run(command: str, arguments: list[str]) -> tuple[str, list[str]]:
    """Splits off the run, the first argument of a command."""
    if arguments and arguments[0] in ("-h", "--help"):
        return "", arguments
    if not arguments or arguments[0].startswith("-"):
        raise InputError(f"name a run directory or a game first, as in `saplan {command} switches`")
    return arguments[0], arguments[1:]


def read(
    options: type[Options],
    command: str,
    arguments: list[str],
    rules: type | tuple[type, ...] | None = None,
    default: Options | None = None,
) -> Options:
    """The options of a command, read from its arguments; `rules` are the types that a generic one takes."""
    import tyro

    shape: type[Options] = options if rules is None else options[rules]  # type: ignore[index]
    config = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone)
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), tables():
            given: dict[str, Any] = {} if default is None else {"default": default}
            return tyro.cli(shape, prog=f"saplan {command}", args=arguments, config=config, **given)
    except SystemExit as stop:
        if not stop.code:
            raise
        raise InputError(one_line(complaint.getvalue())) from None


def tables() -> Any:
    """Teaches tyro, while it is entered, to read tables of whole numbers as `0,2,3/3,0,2/2,3,0`."""
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
"""Stands for a line drawn across a box."""


def one_line(box: str) -> str:
    """What tyro says in a box, as one line: its first part, and the option it suggests."""
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
    """`InputError` unless the number can be a seed or a count of steps."""
    if not 0 <= value < 2**31:
        raise InputError(f"{option} must lie in 0..{2**31 - 1}, got {value}")


def check_seconds(option: str, value: float) -> None:
    """`InputError` unless the number can be a time."""
    if not 0 <= value < float("inf"):
        raise InputError(f"{option} must be a number of seconds, not negative, got {value}")


def in_colour() -> bool:
    """Whether standard output shows colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


if __name__ == "__main__":
    sys.exit(main())
