"""The documents: their tutorials and commands run as printed, at small sizes; the site builds; nothing is forgotten."""

import functools
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import saplan
from saplan.cli import COMMANDS, main
from saplan.cli.completion import options_of
from saplan.training.progress import Progress
from saplan.training.tensorboard import TAGS
from tests.loading import load
from tests.reliability.tiny import SIZES, SMALL, STEPS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
CODE = re.compile(r"^```\w*\n.*?^```|^(?:    \S.*\n)+", flags=re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
SIZE = ", ".join(f"{name}={value}" for name, value in SIZES.items())
SHORTER: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"--steps \d+(?! --lanes)": f"--steps {STEPS} --eval-points 0 {' '.join(SMALL)}",
    r"--method curriculum (.*?) --edge-hidden.*?--capacity 8 --cells 256": r"--method curriculum \1",
    r"evaluate mining --tasks \d+": "evaluate mining --tasks 5 --budget 20",
    r"--pairs \d+": "--pairs 2000",
    r"fit-attributes (\S+)": r"fit-attributes \1 --steps 20",
    r"--tasks \d+$": "--tasks 2 --budget 10",
    r"^saplan card (\S+)$": r"saplan card \1 --tasks 2 --budget 10",
    r"check (\S+)": r"check \1 --steps 60 --lanes 8",
    r"suggest (\S+)": r"suggest \1 --steps 2000 --lanes 8",
    r"lanes=32, minibatches=4|lanes=64, minibatches=8": SIZE,
    r"max_nodes=1_000_000": "max_nodes=2000",
    r"1?[05]00?_000, out=\"runs/jax": f'{STEPS}, settings=saplan.StructuredSettings({SIZE}), out="runs/jax',
    r"1?[05]00?_000|300_000": str(STEPS),
    r'(out="runs/taxi")': r"\1, eval_points=0",
    r"tasks=100|agent, [13]00": lambda found: re.sub("[13]00", "6, budget=10", found[0]),
    r"--world (\S+) --goal": r"--world \1 --anyway --budget 5 --goal",
}
"""Small sizes in place of the printed ones: tests show that everything runs, `docs/results.md` how well."""
IMPOSSIBLE = ("red=30", "red=3 green=3 blue=14")
ENDS = {
    'saplan plan switches --goal "blue=3"': 4,
    **{f'saplan plan exchange --rules fewest=8 most=8 --goal "{goal}"': 4 for goal in IMPOSSIBLE},
    'saplan plan exchange --rules fewest=8 most=8 --goal "red=1 green=16 blue=1" --visited-only': 4,
}
NOT_RUN = {
    "saplan watch": "tests/test_readme.py",
    "saplan demo": "tests/test_commands.py",
    "saplan reproduce --quick --out runs/reproduced": "tests/experiments/test_reproduce.py",
    "python -m build": "tests/test_install.py",
    "python3 -m venv .venv": "Makefile",
    "source .venv/bin/activate": "Makefile",
    "pip install -e '.[viewer]'": "Makefile",
    "pip install -e '.[viewer]' 'jax[cuda12]'": "docs/install.md",
    "pip install build": "tests/test_install.py",
    "pip install dist/saplan-0.1.0-py3-none-any.whl": "tests/test_install.py",
    'eval "$(saplan completion bash)"': "tests/test_sharing.py",
}
"""Commands that another file executes, and that file; the GPU's installation cannot be tested without one."""


def shorter(text: str) -> str:
    for words, fewer in SHORTER.items():
        text = re.sub(words, fewer, text)
    return text


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            yield kind, text
        else:
            yield from ((kind, line[2:]) for line in text.splitlines() if line.startswith("$ "))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.StringIO("wasd q"))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def carry_out(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": page.stem.replace("-", "_")}
    for kind, text in blocks(page):
        if kind == "python" and (file := re.match(r"# file: (\S+)\n", text)):
            Path(file[1]).write_text(text, encoding="utf-8")
        elif kind == "python":
            exec(compile(shorter(text), str(page), "exec"), names)
        elif text not in NOT_RUN:
            if shlex.split(text)[1] not in COMMANDS:
                pytest.skip(f"this version has no command {shlex.split(text)[1]}")
            assert main(shlex.split(shorter(text))[1:]) == ENDS.get(text, 0), (text, capsys.readouterr().err)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorials_run_and_say_how_long_they_take(
    page: Path, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.search(r"^\*\w+ minutes", text, flags=re.MULTILINE), "the duration comes first"
    assert list(blocks(page))
    carry_out(page, capsys)


@pytest.mark.parametrize("page", [DOCS / "commands.md", DOCS / "install.md"], ids=lambda page: page.stem)
def test_commands_run(page: Path, elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    carry_out(page, capsys)


def test_the_page_on_planning_shows_real_output(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every line below a command is a line that the command prints; `…` stands for lines that are left out."""
    page = (DOCS / "planning.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```console\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
        command, *shown = block.splitlines()
        assert main(shlex.split(command[2:])[1:]) == ENDS.get(command[2:], 0), command
        printed = capsys.readouterr().out.splitlines()
        assert len(shown) > 1, command
        for line in shown:
            assert line == "…" or line in printed, (command, line)


def test_the_guide_to_worlds_runs(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The examples of docs/your-world.md, one after the other; a sketch of a call is left out."""
    names: dict[str, object] = {}
    for kind, text in blocks(DOCS / "your-world.md"):
        if kind == "python" and not text.startswith("world = saplan.jax_world("):
            exec(compile(shorter(text), "your-world.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "row=0 column=0 passenger=taxi" in shown, "success for every goal"


PRINTED = re.compile(r"^(?:    |\$ |)(saplan [a-z-]+ [^#\n]*)", flags=re.MULTILINE)


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_every_printed_command_exists(page: Path) -> None:
    """Long trainings and benchmarks are not run here; their commands and options must at least be known."""
    for line in PRINTED.findall("\n".join(CODE.findall(page.read_text(encoding="utf-8")))):
        command, *words = shlex.split(line)[1:]
        assert command in COMMANDS, line
        known = known_options(command)
        for word in words:
            assert not word.startswith("--") or word.split("=")[0] in known, line


@functools.cache
def known_options(command: str) -> set[str]:
    more = {"train": {"--paper", "--nodes", "--set"}}
    return {*options_of(COMMANDS[command][1]), *more.get(command, ())}


def test_what_is_not_run_here_is_run_where_it_says() -> None:
    for place in NOT_RUN.values():
        assert (ROOT / place).is_file()


def test_long_commands_are_carried_out_at_small_sizes() -> None:
    """The script shortens every benchmark and example that documents print, and nothing in its record failed."""
    script = load("benchmarks/commands.py")
    record = json.loads((ROOT / "results" / "commands.json").read_text(encoding="utf-8"))
    assert record["counts"]["failed"] == 0, [row for row in record["commands"] if row["status"] == "failed"]
    for page in script.documents():
        for printed in script.printed_commands(page):
            found = script.way(printed)
            if name := program(printed.text):
                assert found.status != "ran" or found.ran != printed.text or name in AS_PRINTED, printed
                assert (ROOT / name).is_file(), printed


AS_PRINTED = {
    *("benchmarks/results.py", "benchmarks/generalisation_tables.py", "examples/ogbench_film.py"),
    *("benchmarks/viewer.py", "benchmarks/attributes.py"),  # `first` and `picture`
}
"""Programs that take a moment as they are."""


def program(command: str) -> str:
    """The file of this repository that a command runs, or nothing."""
    found = re.match(r"python3? ((?:benchmarks|examples)/\w+\.py)", command)
    return found[1] if found else ""


def test_every_command_has_its_line() -> None:
    text = (DOCS / "commands.md").read_text(encoding="utf-8") + (DOCS / "tutorials/exporting-a-plan.md").read_text()
    for command in COMMANDS:
        assert f"saplan {command}" in text, f"docs/commands.md does not show {command}"


def test_every_metric_is_documented() -> None:
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    for name in (*Progress.__dataclass_fields__, *TAGS):
        assert f"`{name}`" in text, name


def test_every_extra_is_described() -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    table = (DOCS / "install.md").read_text(encoding="utf-8")
    for name in extras:
        assert f"| `{name}` |" in table, name


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Links and anchors that lead nowhere, and pages that no index names, are warnings."""
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package, reason=f"{package} is not installed: it comes with the extra `docs`")
    from sphinx.cmd.build import main as build

    assert build(["-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path / "site")]) == 0
    site = tmp_path / "site"
    assert (site / "searchindex.js").is_file()
    api = (site / "api.html").read_text(encoding="utf-8")
    for name in saplan.__all__:
        assert f'id="saplan.{name}"' in api, name
    for page in site.rglob("*.html"):
        assert not re.search(r'(?:src|href)="https?://(?!arxiv)[^"]*\.(?:js|css)"', page.read_text("utf-8")), page
    assert os.path.getsize(site / "index.html") > 1000
