"""Malformed configurations, goals, command lines and run directories: one line, exit code 2, no traceback."""

import contextlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from saplan.cli import COMMANDS, main
from saplan.errors import InputError
from saplan.games import GAMES
from saplan.goals import parse_goal
from tests.reliability import record, times

EACH = times(250, 40)
often = settings(
    max_examples=EACH, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip
tally: dict[str, list[bool]] = {}


def refuses(kind: str, arguments: list[str]) -> None:
    """The command line says in at most three lines what is wrong, and exits with 2."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    said = err.getvalue()
    good = code == 2 and said.startswith("saplan: ") and said.count("\n") <= 3 and "Traceback" not in said
    tally.setdefault(kind, []).append(good)
    assert good, (code, arguments, said, out.getvalue()[-300:])


@pytest.fixture(scope="module", autouse=True)
def figures() -> Any:
    yield
    for kind, all_good in tally.items():
        record(f"malformed {kind}: one line and exit code 2", sum(all_good), len(all_good))


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
wild = st.one_of(words, st.sampled_from(["nan", "inf", "-1", "1e400", "9" * 30, "--", "-", "", " ", "0x10", "½", "\n"]))
not_numbers = st.one_of(
    st.sampled_from(["", "x", "1.5.2", "--", "0x1g", "1e", "½", "one", "1,5", "None", "[]", "{}"]),
    st.text("abcdxyz!?", min_size=1, max_size=8),
)
not_whole = st.one_of(not_numbers, st.sampled_from(["1.5", "nan", "inf", "-inf", "1e400"]))
negative = st.integers(-(2**40), -1).map(str)
too_large = st.integers(2**31, 2**80).map(str)


def whole(command: list[str], option: str) -> Any:
    return st.one_of(not_whole, negative, too_large).map(lambda value: [*command, option, value])


def number(command: list[str], option: str) -> Any:
    return st.one_of(not_numbers, st.sampled_from(["nan", "inf", "-inf", "-1"])).map(
        lambda value: [*command, option, value]
    )


names = sorted({*COMMANDS, *GAMES, "help", "-h", "--help", "-V", "--version"})
command_lines = st.one_of(
    st.tuples(wild.filter(lambda word: word not in names)).map(list),
    st.tuples(st.sampled_from(["train", "play"]), wild.filter(lambda word: word not in names)).map(list),
    st.tuples(st.sampled_from(["evaluate", "plan"]), wild.filter(lambda word: word not in names)).map(
        lambda words: [*words, "--goal", "red=1"] if words[0] == "plan" else list(words)
    ),
    whole(["train", "switches"], "--seed"),
    whole(["train", "exchange"], "--eval-points"),
    whole(["play", "switches"], "--seed"),
    whole(["evaluate", "switches"], "--tasks"),
    whole(["evaluate", "switches"], "--budget"),
    whole(["plan", "switches", "--goal", "red=1"], "--seed"),
    whole(["demo"], "--seed"),
    number(["train", "mining"], "--save-every"),
    number(["train", "mining"], "--learning-rate"),
    number(["train", "mining"], "--discount"),
    number(["train", "mining", "--method", "unstructured"], "--temperature"),
    not_whole.map(lambda value: ["train", "switches", "--lanes", value]),
    not_whole.map(lambda value: ["train", "switches", "--steps", value]),
    not_whole.map(lambda value: ["train", "switches", "--kinds", value]),
    words.map(lambda word: ["train", "switches", f"--no-such-{word}"]),
    words.filter(lambda word: word not in ("structured", "unstructured", "curriculum")).map(
        lambda word: ["train", "switches", f"--method={word}"]
    ),
    words.filter(lambda word: word != "structured").map(lambda word: ["evaluate", "switches", f"--method={word}x"]),
    words.map(lambda word: ["train", "--resume", f"/nowhere/{word}"]),
    st.lists(wild, min_size=1, max_size=4).map(lambda rest: ["doctor", "surplus", *rest]),
    st.just(["plan", "switches"]),
)


@often
@given(command_lines)
def test_command_lines(arguments: list[str]) -> None:
    if any(word in ("-h", "--help") for word in arguments):
        return
    refuses("command lines", arguments)


goal_texts = st.one_of(
    words,
    st.lists(
        st.tuples(
            st.sampled_from(["red", "blue", "switch", "m1", "reds", "", "map_red"]),
            st.sampled_from(["=", ">=", "<=", "==", "<", "≥", "±", ""]),
            wild,
        ).map("".join),
        min_size=1,
        max_size=3,
    ).map(" ".join),
)


@often
@given(st.sampled_from(list(GAMES)), goal_texts)
def test_goals(game: str, text: str) -> None:
    with contextlib.suppress(InputError):
        parse_goal(GAMES[game]().space, text)
        assume(False)
    refuses("goals", ["plan", game, f"--goal={text}"])


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in plain data."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


def put(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Plain data with another value at one place."""
    if not path:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = put(copy[path[0]], path[1:], value)
    return copy


@often
@given(st.data())
def test_configurations(trained: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Any other configuration is refused: if it is one, because the checkpoints are of another."""
    config = json.loads((trained / "config.json").read_text())
    place = data.draw(st.sampled_from(places(config)))
    other = put(config, place, data.draw(json_values))
    assume(json.dumps(other) != json.dumps(config) and other != config)
    run = tmp_path_factory.mktemp("runs") / "run"
    shutil.copytree(trained, run)
    (run / "config.json").write_text(json.dumps(other))
    refuses("configurations", ["train", "--resume", str(run)])
    shutil.rmtree(run)


@often
@given(st.data())
def test_run_directories(trained: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    run = tmp_path_factory.mktemp("runs") / "run"
    shutil.copytree(trained, run)
    resume = data.draw(st.booleans())
    path = run / data.draw(st.sampled_from(["config.json"] if resume else ["manifest.json", "agent.safetensors"]))
    before = path.read_bytes()
    path.unlink()
    kind = data.draw(st.sampled_from(["missing", "directory", "bytes", "cut", "link"]))
    if kind == "directory":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(data.draw(st.sampled_from(["/dev/null", "nowhere", str(path)])))
    elif kind != "missing":
        content = data.draw(st.binary(max_size=64)) if kind == "bytes" else before[: data.draw(st.integers(0, 400))]
        path.write_bytes(content)
    elsewhere = ["evaluate", str(run), "--tasks", "1"]
    refuses("run directories", ["train", "--resume", str(run)] if resume else elsewhere)
    shutil.rmtree(run)
