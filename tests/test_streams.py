"""Standard input, output and error that are closed or full: one line where one can be printed, and an exit code."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from saplan.errors import LONGEST, say, visible

COMMANDS = ["games", "--help", "play switches --random 2", "train --help"]
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")


def shell(words: str) -> tuple[int, str]:
    """The exit code of a command line and what it says on standard error."""
    line = f"{shlex.quote(sys.executable)} -m saplan {words}"
    done = subprocess.run(["/bin/sh", "-c", line], stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", COMMANDS)
def test_standard_output_is_closed(words: str) -> None:
    code, said = shell(f"{words} >&-")
    assert (code, said.count("\n")) == (2, 1), said
    assert said.startswith("saplan: standard output is closed")


@FULL
@pytest.mark.parametrize("words", COMMANDS)
def test_standard_output_is_full(words: str) -> None:
    code, said = shell(f"{words} >/dev/full")
    assert (code, said) == (2, "saplan: cannot write to standard output: No space left on device\n")


def test_standard_input_is_closed() -> None:
    code, said = shell("play switches <&- >/dev/null")
    assert (code, said.count("\n")) == (2, 1), said
    assert said.startswith("saplan: standard input is closed")
    assert shell("games <&- >/dev/null") == (0, ""), "other commands do not need it"
    assert shell("play switches --random 1 <&- >/dev/null") == (0, "")


def test_standard_input_holds_no_keys() -> None:
    line = f"printf '\\377' | PYTHONIOENCODING=utf-8:strict {shlex.quote(sys.executable)} -m saplan play switches"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=120, check=False)
    code, said = done.returncode, done.stderr
    assert (code, said.count("\n")) == (2, 1), said
    assert said.startswith("saplan: standard input must be text")


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
@pytest.mark.parametrize(("words", "code"), [("games", 0), ("plai", 2)])
def test_standard_error_is_closed(words: str, code: int, closed: str, tmp_path: Path) -> None:
    if "/dev/full" in closed and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    out = tmp_path / "out"
    done, said = shell(f"{words} >{shlex.quote(str(out))} {closed}")
    assert (done, said) == (2 if ">&- 2" in closed or closed.startswith(">/dev/full") else code, "")
    assert "Traceback" not in out.read_text()
    assert "saplan: unknown" not in out.read_text(), "complaints do not go among the answers"


def test_closed_streams_are_not_mistaken_for_files(tmp_path: Path) -> None:
    """The next file that is opened must not get the number of standard output, or prints would go into it."""
    out = tmp_path / "labels"
    code, _ = shell(f"label switches --pairs 10 --out {shlex.quote(str(out))} <&- 2>&- >/dev/null")
    assert code == 0
    assert out.read_bytes()[8:9] == b"{"


@pytest.mark.parametrize(
    "char", [chr(code) for code in (*range(32), *range(0x7F, 0xA0), 0x202E, 0x2066, 0x200F, 0xD800)]
)
def test_nothing_that_is_said_moves_the_terminal(char: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"a{char}b")
    said = capsys.readouterr().err
    assert said.startswith("saplan: a")
    assert said.endswith("b\n")
    assert said[:-1].isprintable()
    assert char.isspace() or f"{ord(char):x}" in said or char in "\t\n\r", "and it is seen"


def test_long_texts_are_cut() -> None:
    assert len(visible("a" * 10**6)) == LONGEST
    assert visible("two\n  lines") == "two lines"


@pytest.mark.skipif(os.name != "posix", reason="needs a pipe")
def test_a_reader_that_has_gone() -> None:
    line = f"({shlex.quote(sys.executable)} -m saplan games; echo $? >&2) | true"
    done = subprocess.run(["/bin/sh", "-c", line], stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.stderr.strip() in ("0", "141")
