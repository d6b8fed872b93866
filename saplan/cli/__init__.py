"""The command line. A command imports heavy packages only when it runs, so that `saplan --help` answers at once.

A command is a frozen dataclass of options, whose docstrings are its help, and a function that reads them from the
arguments and does the work; `COMMANDS` names it. Bad input is an `InputError`: one line, exit code 2.
"""

import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from saplan.cli.agents import evaluate_command, plan_command
from saplan.cli.attributes import fit_attributes_command, label_command
from saplan.cli.completion import completion_command
from saplan.cli.doctor import doctor_command
from saplan.cli.exporting import export_command
from saplan.cli.games import games_command, play_command
from saplan.cli.reproducing import reproduce_command
from saplan.cli.sharing import card_command, plot_command
from saplan.cli.streams import check_streams, settle, takes_no_more
from saplan.cli.training import demo_command, train_command
from saplan.cli.watching import render_command, watch_command
from saplan.cli.worlds import check_command, suggest_command
from saplan.errors import InputError, NoPathError, NotFiniteError, StoppedError, say, unknown_name

COMMANDS: dict[str, tuple[str, Callable[[list[str]], None]]] = {
    "games": ("show the rules of the games as text, data or pictures", games_command),
    "play": ("play a game yourself", play_command),
    "train": ("train an agent on a game, without any task", train_command),
    "label": ("write observations of a game with their attributes, to learn from", label_command),
    "fit-attributes": ("learn to read attributes from observations", fit_attributes_command),
    "check": ("find mistakes in a world of your own", check_command),
    "suggest": ("find the algebra of a world's attributes from play", suggest_command),
    "evaluate": ("measure an agent's success on fixed tasks", evaluate_command),
    "plan": ("plan a path of attributes to a goal and execute it", plan_command),
    "export": ("write the learnt model as PDDL, as a graph, or a plan", export_command),
    "watch": ("watch an agent plan and act, in the browser", watch_command),
    "render": ("write the same as a film or a strip of pictures", render_command),
    "plot": ("draw the training of a run", plot_command),
    "card": ("write a model card beside an agent", card_command),
    "reproduce": ("compute the paper's table and figures, with intervals", reproduce_command),
    "demo": ("train on switches, compare with the paper, execute a plan", demo_command),
    "doctor": ("check that this installation works", doctor_command),
    "completion": ("print a script that completes commands in your shell", completion_command),
}
EXIT_CODES = {InputError: 2, NotFiniteError: 3, NoPathError: 4}
STOPPED = (130, 143)
HELP = """
`saplan COMMAND --help` lists a command's options; `saplan --version` prints the version.
Exit codes: 0 done, 1 a check found a mistake, 2 bad input, 3 a number was not finite,
4 no plan leads to the goal, 130 and 143 stopped by Ctrl-C and SIGTERM."""


def program() -> NoReturn:
    """The program `saplan`. Once stopped, it does not wait for threads that prepare an agent.

    An interpreter that shuts down around threads of the compiler aborts.
    """
    code = main()
    if code in STOPPED and threading.active_count() > 1:
        os._exit(code)
    sys.exit(code)


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    try:
        check_streams()
        return run(sys.argv[1:] if argv is None else argv)
    except (InputError, NotFiniteError, NoPathError) as error:
        say(str(error))
        return next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind))
    except StoppedError as stop:
        say(str(stop))
        return 128 + stop.signal
    except BrokenPipeError:  # the reader closed the pipe
        return 141
    except OSError as error:
        if error.filename is not None:
            say(f"cannot use {error.filename}: {error.strerror}")
        elif takes_no_more(error):
            say(f"cannot write to standard output: {error.strerror or error}")
        else:
            raise
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        settle(sys.stdout)
        settle(sys.stderr)


def run(argv: list[str]) -> int:
    """Runs one command and flushes its output."""
    try:
        dispatch(argv)
    except SystemExit:
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return 0


def dispatch(argv: list[str]) -> None:
    """Finds the command and passes it its arguments."""
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
    title = "Train once without any task, then reach any goal you can write as attributes."
    return "\n".join(["usage: saplan COMMAND [options]", "", title, "", *lines, HELP])
