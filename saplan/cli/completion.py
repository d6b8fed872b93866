"""`saplan completion`: a script that lets a shell complete commands, options and names of games."""

import contextlib
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass

from saplan.cli.options import read_options, take_first
from saplan.errors import unknown_name

SHELLS = ("bash", "zsh", "fish")
NAMED = ("play", "train", "games", "label", "evaluate", "plan", "export", "suggest", "watch", "render")
"""Commands whose first argument can be the name of a game."""


@dataclass(frozen=True)
class Completion:
    """Print a script that lets a shell complete saplan's commands and options. SHELL is bash, zsh or fish.

    bash or zsh: `eval "$(saplan completion bash)"`, in ~/.bashrc or ~/.zshrc. fish: `saplan completion fish | source`.
    """


def completion_command(arguments: list[str]) -> None:
    """`saplan completion SHELL`."""
    shell, rest = take_first("a shell", "completion bash", arguments)
    read_options(Completion, "completion SHELL", rest)
    if shell not in SHELLS:
        raise unknown_name("shell", shell, SHELLS)

    from saplan.cli import COMMANDS
    from saplan.games import GAMES

    words = {
        name: [*(GAMES if name in NAMED else ()), *(SHELLS if name == "completion" else ()), *options_of(command)]
        for name, (_, command) in COMMANDS.items()
    }
    print(fish_script(words) if shell == "fish" else bash_script(words, zsh=shell == "zsh"))


def options_of(command: object) -> list[str]:
    """The options of a command, read off its own help."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        command(["--help"])  # type: ignore[operator]
    return sorted(set(re.findall(r"(?<![\w`-])--[a-z][a-z-]*", printed.getvalue())))


def bash_script(words: dict[str, list[str]], zsh: bool) -> str:
    """The function of bash, which zsh can use as well."""
    cases = [f'    {name}) words="{" ".join(each)}" ;;' for name, each in words.items()]
    return "\n".join([
        *(["autoload -U +X bashcompinit && bashcompinit"] if zsh else []),
        "_saplan() {",
        '  local word="${COMP_WORDS[COMP_CWORD]}" words=""',
        f'  if [ "$COMP_CWORD" -eq 1 ]; then words="{" ".join(words)} --help --version"',
        '  else case "${COMP_WORDS[1]}" in',
        *cases,
        "  esac; fi",
        '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
        "}",
        "complete -o default -F _saplan saplan",
    ])  # fmt: skip


def fish_script(words: dict[str, Iterable[str]] | dict[str, list[str]]) -> str:
    """One line per command of fish."""
    lines = [f"complete -c saplan -n __fish_use_subcommand -f -a '{' '.join(words)}'"]
    lines += [
        f"complete -c saplan -n '__fish_seen_subcommand_from {name}' -a '{' '.join(each)}'"
        for name, each in words.items()
    ]
    return "\n".join(lines)
