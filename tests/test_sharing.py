"""Printed plans and results, and everything that makes a run readable and shareable."""

import re
import shutil
import subprocess
from pathlib import Path

import jax
import numpy as np
import pytest

import saplan
from saplan.cli import COMMANDS, main
from saplan.errors import InputError
from saplan.methods.oracle.agent import Oracle
from saplan.training.hub import _fetched
from saplan.training.tensorboard import TAGS
from tests.reliability.tiny import SMALL, STEPS

GAMES = {"switches": "red=1", "exchange": "red=1", "mining": "hammer=1"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run with a log for TensorBoard."""
    pytest.importorskip("tensorboardX")
    out = tmp_path_factory.mktemp("runs") / "shared"
    command = ["train", "switches", "--steps", str(STEPS), "--eval-points", "1", "--out", str(out), *SMALL]
    assert main([*command, "--log", "tensorboard"]) == 0
    return out


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("method", ["structured", "oracle"])
def test_plans_print_in_80_columns_and_in_the_words_of_the_game(game: str, method: str) -> None:
    agent = saplan.load(game) if method == "structured" else Oracle(saplan.make_game(game))
    plan = agent.plan(agent.game.reset(jax.random.key(1)), GAMES[game])
    first, *rows = repr(plan).splitlines()
    assert first.startswith("a path was found: ")
    assert len(rows) == len(plan.path)
    names = {name for name, _ in agent.game.admissible()}
    for row, step in zip(rows, plan.path, strict=True):
        assert len(row) <= 80
        assert step.words in names
        assert step.words in row
        assert step.result
    html = plan._repr_html_()
    assert html.count("<tr>") == 1 + len(rows)
    assert "<" not in re.sub(r"</?(table|caption|tr|th|td)>", "", html)


def test_a_plan_that_fails_says_why() -> None:
    agent = saplan.load("switches")
    plan = agent.plan(agent.game.reset(jax.random.key(0)), "red=99")
    assert repr(plan) == plan.outcome.value
    assert plan.outcome.value in plan._repr_html_()


def test_results_print_as_a_summary() -> None:
    result = saplan.EvalResult(np.array([True, False]), np.array([10, 150]))
    assert "50.0% (1 of 2 tasks)" in repr(result)
    assert "10.0" in repr(result)
    assert "50.0%" in result._repr_html_()


def test_a_run_can_be_drawn(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(run), "--out", str(tmp_path / "figure.svg")]) == 0
    assert "held-back tasks" in (tmp_path / "figure.svg").read_text() or "<svg" in (tmp_path / "figure.svg").read_text()
    assert len(saplan.plot_run(run).axes) == 5
    assert main(["plot", str(tmp_path)]) == 2
    assert "holds no metrics" in capsys.readouterr().err


def test_a_card_describes_the_run(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    assert main(["card", str(copy), "--tasks", "2", "--budget", "5"]) == 0
    card = (copy / "README.md").read_text(encoding="utf-8")
    for words in ("**switches**", "of 2 fixed tasks", f"saplan train switches --steps {STEPS}", "saplan.load", "ℤ/3"):
        assert words in card
    for picture in re.findall(r"!\[\w+\]\((.+?)\)", card):
        assert (copy / picture).read_bytes().startswith(b"\x89PNG")
    saplan.load(copy)


def test_every_metric_reaches_tensorboard(run: Path) -> None:
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.record_writer import RecordWriter

    del RecordWriter  # only the format of records is known: length, checksum, data, checksum
    (file,) = (run / "tensorboard").iterdir()
    data, tags = file.read_bytes(), set()
    while data:
        size = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + size])
        tags |= {value.tag for value in event.summary.value}
        data = data[12 + size + 4 :]
    assert tags == set(TAGS)


def test_an_unknown_log_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "switches", "--log", "tensorbord", "--out", str(tmp_path / "run")]) == 2
    assert "did you mean 'tensorboard'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.fixture
def hub(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache of one repository, in its layout: snapshots are links to blobs."""
    pytest.importorskip("huggingface_hub")
    home, commit = tmp_path / "hub", "0" * 40
    repository = home / "models--someone--switches"
    snapshot = repository / "snapshots" / commit
    for folder in (repository / "blobs", repository / "refs", snapshot):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    for number, name in enumerate(("manifest.json", "agent.safetensors", "config.json", "metrics.jsonl")):
        shutil.copy(run / name, repository / "blobs" / str(number))
        (snapshot / name).symlink_to(f"../../blobs/{number}")
    (snapshot / "evil.py").write_text("raise SystemExit('executed')")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    _fetched.cache_clear()
    return snapshot


def test_a_run_is_loaded_from_the_hub(hub: Path, run: Path) -> None:
    agent = saplan.load("hf:someone/switches")
    ours, theirs = (jax.tree.leaves(each) for each in (saplan.load(run), agent))
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_a_damaged_or_hostile_run_of_the_hub_is_refused(hub: Path, tmp_path: Path) -> None:
    blob = (hub / "agent.safetensors").resolve()
    blob.write_bytes(blob.read_bytes()[:-1] + b"\xff")
    with pytest.raises(InputError, match="damaged"):
        saplan.load("hf:someone/switches")
    _fetched.cache_clear()
    (tmp_path / "secret").write_text("{}")
    (hub / "manifest.json").unlink()
    (hub / "manifest.json").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="leads outside"):
        saplan.load("hf:someone/switches")


@pytest.mark.parametrize("name", ["hf:", "hf:switches", "hf:../x/y", "hf:a/b/c", "hf:a/b@"])
def test_names_that_are_no_repositories(name: str) -> None:
    with pytest.raises(InputError, match="owner/name"):
        saplan.load(name)


def test_bash_completes_commands_games_and_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)

    def completed(*words: str) -> list[str]:
        line = " ".join(f"'{word}'" for word in words)
        script = f"source {tmp_path}/script; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _saplan"
        script += "; echo ${COMPREPLY[*]}"
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert completed("saplan", "pl") == ["play", "plan", "plot"]
    assert completed("saplan", "plan", "sw") == ["switches"]
    assert "--goal" in completed("saplan", "plan", "--")
    assert "--lanes" in completed("saplan", "train", "--l")
    for shell in ("zsh", "fish"):
        assert main(["completion", shell]) == 0
        printed = capsys.readouterr().out
        assert all(command in printed for command in COMMANDS)
