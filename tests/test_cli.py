"""The command line: what it prints, and what it says when a person gets something wrong."""

import io
import json
import os
import re
import select
import subprocess
import sys
import time

import pytest

from saplan.cli import COMMANDS, main
from saplan.cli.options import message_of
from saplan.games import GAMES

MISTAKES = [
    (["plai"], "did you mean 'play'"),
    (["--hlep"], "did you mean '--help'"),
    (["play"], "name the game first"),
    (["play", "--seed", "3", "switches"], "name the game first"),
    (["play", "swiches"], "did you mean 'switches'"),
    (["play", "switches", "--kinds", "0"], "1..6"),
    (["play", "switches", "--kinds", "two"], "--kinds: 'two' is not a whole number"),
    (["play", "switches", "--kinds"], "--kinds"),
    (["play", "switches", "--kindz", "2"], "did you mean --kinds?"),
    (["play", "switches", "extra"], "extra"),
    (["play", "switches", "--seed", "-1"], "--seed"),
    (["play", "switches", "--random", "-1"], "--random"),
    (["play", "switches", "--goal", "red=-1"], "negative"),
    (["play", "switches", "--goal", "red=nan"], "finite"),
    (["play", "switches", "--goal", "reed=1"], "did you mean 'red'"),
    (["play", "switches", "--goal", "switch=7"], "ℤ/3"),
    (["play", "switches", "--goal", ""], "empty"),
    (["play", "switches", "--smallest", "2"], "3 <= smallest"),
    (["play", "mining", "--yield-low", "x"], "'x' is not a number"),
    (["play", "exchange", "--gives", "1,2/3,4"], "3 × 3"),
    (["games", "switches", "--kinds", "0"], "1..6"),
    (["games", "--kinds", "0"], "--kinds"),
    (["games", "--json", "yes"], "yes"),
    (["games", "--pictures", "/dev/null/here"], "cannot write"),
    (["demo", "--steps", "-1"], "steps must be at least"),
]


def saplan(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "saplan", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **options,
    )


@pytest.mark.parametrize(
    ("arguments", "words"), MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, words, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("saplan: ")
    assert error.count("\n") == 1
    assert error.endswith("\n")
    assert words in error


@pytest.mark.parametrize(
    "arguments",
    [["plai"], ["play", "switches", "--kinds", "0"], ["play", "mining", "--goal", "m1=x"], ["games", "--x"]],
)
def test_a_mistake_in_a_process_of_its_own(arguments):
    done = saplan(*arguments, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("columns", ["30", "300"])
def test_the_width_of_the_terminal_does_not_matter(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["play", "switches", "--kinds", "two"]) == 2
    assert capsys.readouterr().err == "saplan: --kinds: 'two' is not a whole number\n"


def test_boxes_become_lines():
    plain = " T \n ----- \n  Missing value. \n  -----\n  For full helptext \n   \n"
    assert message_of(plain) == "missing value."
    box = "╭─ T ─╮\n│ Unrecognized options: --a │\n│ ───── │\n│ Perhaps you meant: │\n│     --b INT │\n╰─────╯\n"
    assert message_of(box) == "unrecognized options: --a (did you mean --b?)"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_every_command(arguments, capsys):
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert all(re.search(rf"^  {name} ", printed, re.MULTILINE) for name in COMMANDS)


def test_help_does_not_wait_for_heavy_imports():
    code = "import sys; from saplan.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split()
    assert not {"jax", "numpy", "gymnasium", "tyro", "matplotlib"} & set(loaded)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_own_help(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert not stop.value.code
    assert f"usage: saplan {command}" in capsys.readouterr().out


def test_version():
    assert re.fullmatch(r"saplan \d+\.\d+\S*\n", saplan("--version").stdout)


def test_games_prints_every_card(capsys):
    assert main(["games"]) == 0
    printed = capsys.readouterr().out
    for words in ("SWITCHES", "switch ∈ ℤ/3", "switch +1 mod 3", "'trade red→green'", "red -2, green +1", "A task is"):
        assert words in printed


def test_games_as_json(capsys):
    assert main(["games", "--json"]) == 0
    cards = {card["name"]: card for card in json.loads(capsys.readouterr().out)}
    assert set(cards) == set(GAMES)
    assert cards["mining"]["attributes"][-1] == {"name": "hammer", "algebra": "ℕ"}
    assert cards["switches"]["actions"] == ["up", "down", "left", "right", "interact"]
    assert {"name": "pick up red", "delta": {"map_red": -1, "red": 1}} in cards["switches"]["transitions"]
    assert len(cards["exchange"]["transitions"]) == 9


def test_games_of_other_rules(capsys):
    assert main(["games", "exchange", "--kinds", "2", "--gives", "0,3/2,0", "--takes", "0,1/1,0", "--json"]) == 0
    (card,) = json.loads(capsys.readouterr().out)
    assert {"name": "trade red→green", "delta": {"red": -3, "green": 1}} in card["transitions"]


def test_pictures_are_written(tmp_path, capsys):
    assert main(["games", "--pictures", str(tmp_path / "new")]) == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(f"{game}.png" for game in GAMES)


def play(arguments, typed, monkeypatch, capsys) -> list[str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert main(["play", *arguments]) == 0
    return re.split(r"\n\n(?=\w+ · step)", capsys.readouterr().out)


def test_play_with_keys_from_a_pipe(monkeypatch, capsys):
    frames = play(
        ["switches", "--goal", "red=0 blue>=1 green>=0 green<=3"],
        "wasd\n\x1b[A\x1b[B nwq" + "w" * 9,
        monkeypatch,
        capsys,
    )
    assert len(frames) == 1 + 4 + 2 + 1 + 1 + 1
    assert [int(re.findall(r"step (\d+)", frame)[0]) for frame in frames] == [*range(8), 0, 1]
    assert all("✓ red=0   ✓ green>=0   ✓ green<=3   · blue>=1" in frame for frame in frames)
    assert "\x1b" not in "".join(frames)


def test_arrow_keys_are_letters(monkeypatch, capsys):
    letters = play(["exchange"], "wwdds", monkeypatch, capsys)
    arrows = play(["exchange"], "\x1b[A\x1bOA\x1b[C\x1b[C\x1b[B", monkeypatch, capsys)
    assert letters == arrows
    assert letters[0] != letters[-1]


def test_an_unknown_key_is_a_mistake(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("x"))
    assert main(["play", "mining"]) == 2
    assert "'x'" in capsys.readouterr().err


def test_play_by_chance(capsys):
    printed = []
    for _ in range(2):
        assert main(["play", "exchange", "--random", "5", "--seed", "7"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert printed[0].count("· step") == 6


def test_what_has_changed_stands_out(capsys):
    assert main(["play", "exchange", "--random", "150", "--seed", "1"]) == 0
    frames = capsys.readouterr().out.split("· step")
    picks = [(frame, pick[1]) for frame in frames if (pick := re.search(r"map_(\w+) -1, \1 \+1", frame))]
    assert picks
    assert all(re.search(rf"\[map_{kind}=\d+\].* \[{kind}=\d+\]", frame) for frame, kind in picks)
    assert not any("[" in frame for frame in frames if "δρ     nothing" in frame)


def test_a_reader_that_leaves_early_is_no_error():
    command = f"{sys.executable} -m saplan play exchange --random 2000 | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.startswith("exchange")
    assert done.stderr == ""


def test_interrupting_gives_130(monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setitem(COMMANDS, "demo", ("", interrupted))
    assert main(["demo"]) == 130


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals there")
def test_play_in_a_terminal():
    import pty
    import termios

    terminal, inner = pty.openpty()
    before = termios.tcgetattr(terminal)
    command = [sys.executable, "-m", "saplan", "play", "exchange", "--seed", "2"]
    process = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner, start_new_session=True)
    try:
        assert "step 0" in read_until(terminal, "q quit")
        assert not termios.tcgetattr(terminal)[3] & termios.ECHO
        os.write(terminal, b"\x1b[A")
        assert "step 1" in read_until(terminal, "q quit")
        os.write(terminal, b"\x1bxz1")
        assert "step 2" in read_until(terminal, "q quit")
        os.write(terminal, b"n")
        assert "step 0" in read_until(terminal, "q quit")
        os.write(terminal, b"q")
        assert "\x1b[?1049l" in read_until(terminal, "\x1b[?1049l")
        assert process.wait(timeout=30) == 0
        assert termios.tcgetattr(terminal) == before
    finally:
        process.kill()
        os.close(terminal)
        os.close(inner)


def read_until(terminal: int, words: str, patience: float = 60) -> str:
    """What appears on a terminal until the words do."""
    seen, deadline = b"", time.monotonic() + patience
    while words.encode() not in seen and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 65536)
    return seen.decode(errors="replace")
