"""House rules, checked on the source: a room imports only from rooms above it (lazy imports count too), and a public
class or function name is defined in one module only.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import saplan

ROOMS = (
    "errors",
    "storage",
    "interpreter",
    "algebra",
    "goals",
    "games",
    "rl",
    "planning",
    "methods",
    "perception",
    "training",
    "render",
    "envs",
    "viewer",
    "experiments",
    "cli",
)
"""In reading order."""
DOORS = ("__init__", "__main__")
"""Files of the package itself, which may import anything."""

CORE = ROOMS[: ROOMS.index("training") + 1]
NOT_IN_CORE = {"gymnasium", "tyro", "matplotlib", "rich"}
"""The core runs on a bare machine with JAX, Equinox, Optax, SciPy and NumPy."""
NEVER_IMPORTED = {"pickle", "cPickle", "dill", "cloudpickle"}
NEVER_CALLED = {"eval", "exec"}

HOUSE = Path(saplan.__file__).parent


def imported_modules(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything imported anywhere; `package` is where relative imports start."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from saplan import games` names a room after the word import.
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def complaints(source: str, path: Path) -> list[str]:
    """What a file of the package, at `path` below `saplan/`, does against the house rules."""
    tree = ast.parse(source)
    room = path.parts[0].removesuffix(".py")
    found = []
    if room not in (*ROOMS, *DOORS):
        return [f"{path}: no room is called {room}"]
    for line, module in imported_modules(tree, ("saplan", *path.parts[:-1])):
        top, *rest = module.split(".")
        if top == "saplan" and room in ROOMS and rest and rest[0] in ROOMS:
            if ROOMS.index(rest[0]) > ROOMS.index(room):
                found.append(f"{path}:{line}: {room} imports {rest[0]}, which lies below it")
        elif top == "saplan" and room in ROOMS and not (rest and rest[0].startswith("__")):
            found.append(f"{path}:{line}: imports {module}, which is no room")
        if top in NOT_IN_CORE and room in CORE:
            found.append(f"{path}:{line}: the core imports {top}")
        if top in NEVER_IMPORTED:
            found.append(f"{path}:{line}: imports {top}, which can run code from a file")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NEVER_CALLED:
            found.append(f"{path}:{node.lineno}: calls {node.func.id}")
    return found


def test_every_file_keeps_the_house_rules() -> None:
    files = sorted(HOUSE.rglob("*.py"))
    assert len(files) > 10
    found = [line for file in files for line in complaints(file.read_text("utf-8"), file.relative_to(HOUSE))]
    assert not found, "\n".join(found)


def public_names(source: str) -> list[str]:
    """The public classes and functions that a module defines; methods do not count."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name: None for node in ast.parse(source).body if isinstance(node, kinds)}
    return [name for name in names if not name.startswith("_")]


def defined_twice(sources: Mapping[str, str]) -> list[str]:
    """`name: module, module` for every public name that several modules define."""
    modules: dict[str, list[str]] = {}
    for path, source in sources.items():
        for name in public_names(source):
            modules.setdefault(name, []).append(path)
    return [f"{name}: {', '.join(paths)}" for name, paths in sorted(modules.items()) if len(paths) > 1]


def test_a_public_name_is_defined_in_one_module_only() -> None:
    sources = {str(file.relative_to(HOUSE)): file.read_text("utf-8") for file in sorted(HOUSE.rglob("*.py"))}
    found = defined_twice(sources)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def train(): ...", "def train(): ..."),
        ("class Plan: ...", "class Plan: ..."),
        ("class Plan: ...", "def Plan(): ..."),
        ("async def serve(): ...", "def serve(): ..."),
        ("@cache\ndef serve(): ...", "x = 1\ndef serve(): ..."),
    ],
)
def test_a_name_in_two_modules_is_found(one: str, other: str) -> None:
    (line,) = defined_twice({"rl/a.py": one, "cli/b.py": other})
    assert line.endswith(": rl/a.py, cli/b.py")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def _train(): ...", "def _train(): ..."),
        ("class Plan:\n    def step(self): ...", "class Path:\n    def step(self): ..."),
        ("def f():\n    def step(): ...", "def g():\n    def step(): ..."),
        ("from saplan.rl import train", "def train(): ..."),
        ("@overload\ndef f(): ...\ndef f(): ...", "def g(): ..."),
    ],
)
def test_other_names_may_occur_twice(one: str, other: str) -> None:
    assert defined_twice({"rl/a.py": one, "cli/b.py": other}) == []


@pytest.mark.parametrize(
    ("path", "source", "complaint"),
    [
        ("algebra/real.py", "from saplan.games import Game", "algebra imports games"),
        ("algebra/real.py", "import saplan.goals", "algebra imports goals"),
        ("algebra/real.py", "from saplan import games", "algebra imports games"),
        ("algebra/real.py", "from ..games import grid", "algebra imports games"),
        ("errors.py", "from .algebra import Real", "errors imports algebra"),
        (
            "games/grid.py",
            "def f():\n    from saplan.methods.structured.agent import Agent",
            "games/grid.py:2: games imports methods",
        ),
        ("training/config.py", "from saplan.experiments import sweep", "training imports experiments"),
        ("goals.py", "from saplan.cli import main", "goals imports cli"),
        ("methods/structured/agent.py", "import matplotlib.pyplot as plt", "the core imports matplotlib"),
        ("rl/ppo.py", "def f():\n    from rich.progress import track", "the core imports rich"),
        ("planning/search.py", "import gymnasium", "the core imports gymnasium"),
        ("training/checkpoint.py", "import pickle", "imports pickle"),
        ("viewer/server.py", "from pickle import loads", "imports pickle"),
        ("cli.py", "x = eval('1')", "calls eval"),
        ("envs/gym.py", "def f():\n    exec('1')", "calls exec"),
        ("attic/old.py", "", "no room is called attic"),
        ("games/grid.py", "from saplan.gmaes import x", "which is no room"),
        ("__main__.py", "import pickle", "imports pickle"),
    ],
)
def test_the_check_can_fail(path: str, source: str, complaint: str) -> None:
    found = complaints(source, Path(path))
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("games/grid.py", "from saplan.errors import InputError\nfrom saplan.games.game import Game"),
        ("games/grid.py", "from . import game\nfrom .game import Game\nfrom ..algebra import Real"),
        ("experiments/sweep.py", "from saplan.training import config"),
        ("cli.py", "import tyro\nimport rich"),
        ("envs/gym.py", "import gymnasium"),
        ("cli.py", "from saplan import __version__"),
        ("methods/structured/agent.py", "import jax\nimport equinox as eqx\nmodel.eval()"),
        ("__main__.py", "from saplan.cli import main"),
        ("__init__.py", "from saplan.viewer import show"),
    ],
)
def test_what_is_allowed_passes(path: str, source: str) -> None:
    assert complaints(source, Path(path)) == []


OLD_WORDS = re.compile(
    r"\b(nobody|whoever|anew|dearer|gladly|by and by|gone on with|tried out|wish(es|ed)?|not to be had|can be had)\b",
    re.IGNORECASE,
)
"""Words that plain technical English does without."""
DOCUMENTS = sorted([*HOUSE.rglob("*.py"), *(HOUSE.parent / "docs").glob("*.md"), *HOUSE.parent.glob("*.md")])


def odd_words(text: str) -> list[str]:
    """The words of a text that are on the list."""
    return [found[0] for found in OLD_WORDS.finditer(text)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_plain_words(path: Path) -> None:
    assert odd_words(path.read_text("utf-8")) == []


def test_odd_words_are_found() -> None:
    assert odd_words("Nobody wishes for a plan anew.") == ["Nobody", "wishes", "anew"]


GUIDE = (HOUSE.parent / "CONTRIBUTING.md").read_text("utf-8")
WALK = GUIDE[GUIDE.index("## One training step and one goal") : GUIDE.index("## Habits")]
STEPS = [" ".join(step.split("\n\n")[0].split()) for step in re.split(r"^\d+\. ", WALK, flags=re.MULTILINE)[1:]]
ROOM = re.compile(r"^\| `([a-z]+(?:\.py|/))` \| (.+) \|$", re.MULTILINE)


def in_backticks(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def defined_names(source: str) -> set[str]:
    """Functions and classes of a module, and `Class.member` for what a class defines."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            members = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            fields = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
            found |= {f"{node.name}.{one.name}" for one in members}
            found |= {f"{node.name}.{one.id}" for one in fields if isinstance(one, ast.Name)}
    return found


def missing_on_the_walk(step: str, house: Path = HOUSE) -> list[str]:
    """The names in a step of the walk that its file neither defines nor mentions; the first one must be defined."""
    path, *names = in_backticks(step)
    source = (house / path).read_text("utf-8")
    here, words = defined_names(source), set(re.findall(r"\w+", source))
    for other in [name for name in names if name.endswith(".py")]:
        here |= defined_names(next(house.rglob(other)).read_text("utf-8"))
    names = [name for name in names if re.fullmatch(r"[A-Za-z_.]+", name) and not name.endswith(".py")]
    unknown = [name for name in names if name not in here and (name not in words or "." in name)]
    return unknown if not names or names[0] in here else [names[0], *unknown]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: in_backticks(step)[0])
def test_the_walk_names_what_exists(step: str) -> None:
    assert missing_on_the_walk(step) == []


def test_the_walk_passes_through_a_file_once() -> None:
    first, second = (re.findall(r"^\d+\. `([^`]+)`", part, re.MULTILINE) for part in WALK.split("### ")[1:])
    for files in (first, second):
        assert len(files) > 10
        assert len(set(files)) == len(files)


@pytest.mark.parametrize(
    ("step", "missing"),
    [
        ("`goals.py`: `parse_goal` turns the text into an interval.", []),
        ("`goals.py`: `parse_task` turns the text into an interval.", ["parse_task", "parse_task"]),
        ("`goals.py`: `Product` turns the text into an interval.", ["Product"]),
        ("`goals.py`: `Goal.low` is kept, `Goal.lowest` is not.", ["Goal.lowest"]),
    ],
)
def test_a_wrong_walk_is_found(step: str, missing: list[str]) -> None:
    assert missing_on_the_walk(step) == missing


@pytest.mark.parametrize(("room", "contents"), ROOM.findall(GUIDE))
def test_the_table_of_rooms_names_what_exists(room: str, contents: str) -> None:
    below = {path.stem for path in (HOUSE / room).rglob("*.py")} | {path.name for path in (HOUSE / room).glob("*")}
    below |= defined_names((HOUSE / room).read_text("utf-8")) if room.endswith(".py") else set()
    assert [name for name in in_backticks(contents) if name.rstrip("/") not in below] == []


def test_the_table_of_rooms_is_complete() -> None:
    assert [room.removesuffix(".py").rstrip("/") for room, _ in ROOM.findall(GUIDE)] == list(ROOMS)
