"""The README's commands and its example, as printed."""

import ast
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from saplan.cli import main
from tests.reliability.tiny import SMALL, STEPS

README = Path(__file__).parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")
COMMANDS = [line[2:] for line in TEXT.splitlines() if line.startswith("$ saplan ")]
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)

SHORTER = {
    r"--steps \d+": f"--steps {STEPS} --eval-points 0 {' '.join(SMALL)}",
    r"check (\S+)": r"check \1 --steps 100 --lanes 8",
}
"""A tiny training shows that the command runs, in seconds instead of minutes."""


@pytest.fixture(scope="module", autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A directory like the clone's, in which commands may leave things: later ones build on earlier ones."""
    place, before = tmp_path_factory.mktemp("clone"), Path.cwd()
    (place / "examples").symlink_to(README.parent / "examples")
    os.chdir(place)
    yield
    os.chdir(before)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "saplan watch"])
def test_every_command_runs(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("wasd q"))
    shorter = command
    for words, fewer in SHORTER.items():
        shorter = re.sub(words, fewer, shorter)
    assert main(shlex.split(shorter)[1:]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out


def test_the_commands_are_those_that_people_need() -> None:
    assert [command.split()[1] for command in COMMANDS] == ["plan", "watch", "train", "check"]


def test_watch_opens_a_page_and_ends_with_ctrl_c() -> None:
    pytest.importorskip("starlette")
    env = {**os.environ, "BROWSER": "true", "PYTHONUNBUFFERED": "1"}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a shell it is ignored
    server = subprocess.Popen([sys.executable, "-m", "saplan", "watch"], stdout=subprocess.PIPE, text=True, env=env)
    signal.signal(signal.SIGINT, before)
    try:
        assert server.stdout is not None
        assert re.match(r"watch at http://127\.0\.0\.1:\d+/ ", server.stdout.readline())
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) in (0, 130, -signal.SIGINT)
    finally:
        server.kill()


def test_the_example_runs_and_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    assert len([line for line in EXAMPLE.splitlines() if line.strip()]) <= 15
    exec(compile(EXAMPLE, str(README), "exec"), {})
    shown = capsys.readouterr().out
    assert "a path was found" in shown
    assert float(re.findall(r"success +([\d.]+)%", shown)[0]) > 85


def test_the_example_passes_a_strict_type_checker(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(EXAMPLE)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "example.py"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    """The package is on no index: what names it in a `pip install` fails."""
    sources = [README, *README.parent.glob("docs/*.md"), *README.parent.glob("saplan/**/*.py")]
    for path in sources:
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not re.search(r"pip install ['\"]?saplan", line), f"{path}: {line}"


def test_what_is_imported_is_declared() -> None:
    """Pillow was imported and not declared."""
    wanted = (README.parent / "pyproject.toml").read_text(encoding="utf-8").lower()
    names = {"PIL": "pillow", "imageio_ffmpeg": "imageio-ffmpeg", "stable_baselines3": "stable-baselines3"}
    for path in (README.parent / "saplan").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in (name.split(".")[0] for name in found):
                known = module in sys.stdlib_module_names or module == "saplan"
                assert known or names.get(module, module.replace("_", "-")) in wanted, f"{path} imports {module}"


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (README.parent / target).exists(), target
