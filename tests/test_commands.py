"""Train, evaluate, plan and doctor, in this process: what they leave and print, and what they say of bad input."""

import itertools
import json
import shutil
from pathlib import Path

import pytest

from saplan.cli import main
from saplan.games import GAMES
from saplan.training.shipped import shipped_methods
from saplan.training.store import ARRAYS, MANIFEST, load, load_agent, save_agent, untrained_agent
from tests.reliability.tiny import SMALL, STEPS


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory of a training far too short to be good for anything."""
    out = tmp_path_factory.mktemp("runs") / "tiny"
    options = ["--steps", str(STEPS), *SMALL, "--eval-points", "0", "--seed", "3", "--out", str(out)]
    assert main(["train", "switches", *options]) == 0
    return out


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that succeeds prints."""
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_train_leaves_a_run_directory(run: Path) -> None:
    assert sorted(path.name for path in run.iterdir()) == [
        ARRAYS, "checkpoints", "config.json", "lock", MANIFEST, "metrics.jsonl",
    ]  # fmt: skip
    manifest = json.loads((run / MANIFEST).read_text())
    config = manifest["config"]
    assert (config["game"], config["steps"], config["seed"]) == ("switches", STEPS, 3)
    assert (config["settings"]["lanes"], config["settings"]["hidden"]) == (16, 8)
    assert manifest["about"]["steps_trained"] == STEPS
    assert manifest["about"]["command"].startswith(f"saplan train switches --steps {STEPS} --seed 3")
    assert " --hidden 8 " in manifest["about"]["command"], "what differs from the defaults is named"


def test_train_leaves_metrics(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [row["steps"] for row in rows]
    assert steps == sorted(set(steps))
    assert steps[-1] == STEPS
    assert {"steps_per_second", "success", "known", "overflow", "attempt_success"} <= set(rows[0])
    assert rows[-1]["known"] >= 1
    assert all(earlier["positives"] <= later["positives"] for earlier, later in itertools.pairwise(rows))


def test_a_finished_run_says_that_nothing_is_left(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    assert main(["train", "--resume", str(copy)]) == 0
    said = capsys.readouterr()
    assert f"all {STEPS} steps are done, nothing is left to train" in said.err
    assert "resuming" not in said.err
    assert str(copy) in said.out


def test_evaluate_as_json(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(said(capsys, "evaluate", str(run), "--tasks", "1", "--budget", "20", "--json"))
    assert {"game", "method", "success", "tasks", "budget", "steps_trained"} <= set(result)
    assert (result["game"], result["method"]) == ("switches", "structured")
    assert (result["tasks"], result["budget"], result["steps_trained"]) == (1, 20, STEPS)
    assert 0 <= result["interval"][0] <= result["success"] <= result["interval"][1] <= 1
    failures = sum(result["failures"].values())
    assert failures == 1 - result["success"]


@pytest.mark.parametrize("paper", [[], ["--paper"]])
def test_evaluate_for_people(run: Path, paper: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    printed = said(capsys, "evaluate", str(run), "--tasks", "1", "--budget", "20", *paper)
    for words in ("switches, structured", "1 tasks of seed 0, 20 steps each", "paper's figure: 89.3%", "by cause"):
        assert words in printed


def test_plan_as_json(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(
        said(capsys, "plan", str(run), "--goal", "red=1 blue>=0", "--budget", "20", "--json", "--anyway")
    )
    assert (result["game"], result["goal"]) == ("switches", "red=1 blue>=0")
    assert result["outcome"] in ("found", "unreachable", "spent")
    assert set(result["start"]) == {
        *(f"{on}{kind}" for on in ("", "map_") for kind in ("red", "green", "blue")),
        "switch",
    }
    assert isinstance(result["success"], bool)
    assert 0 <= result["steps"] <= 20
    assert sum(attempt["steps"] for attempt in result["attempts"]) <= 20
    if result["outcome"] == "found":
        assert result["path"][-1]["rho"]["red"] == 1.0
        assert all(0 < edge["probability"] <= 1 for edge in result["path"])


def test_plan_for_people(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = said(capsys, "plan", str(run), "--goal", "red=1", "--budget", "20", "--anyway")
    for words in ("goal  red=1", "Plan: ", "Carrying it out", "☻"):
        assert words in printed
    last = printed.rstrip().rpartition("\n\n")[2]
    assert last.startswith("goal "), "with the reason below it, if it was not reached"


def test_a_plan_to_where_one_is(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(said(capsys, "plan", str(run), "--goal", "red=0", "--budget", "20", "--json"))
    assert result["outcome"] == "found"
    assert result["path"] == result["attempts"] == []
    assert result["success"] is True
    assert result["steps"] == 0
    assert "goal reached in 0 steps" in said(capsys, "plan", str(run), "--goal", "red=0", "--budget", "20")


IMPOSSIBLE = {
    "switches": "red=9",
    "exchange": "red=50 blue=50",
    "mining": "m1=6 m2=1",
    "arm": "shoulder=120±5",
}


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """What a plan that leads nowhere prints, and the line that says why; the exit code is its own."""
    capsys.readouterr()
    assert main(["plan", *arguments]) == 4
    captured = capsys.readouterr()
    (line,) = (line for line in captured.err.splitlines() if not line.endswith(" s"))  # others: seconds so far
    assert line.startswith("saplan: no plan: ")
    assert "nothing was done" in line
    return captured.out, line


@pytest.mark.parametrize(
    ("game", "method"),
    [
        (game, method)
        for game in IMPOSSIBLE
        for method in (*shipped_methods(game), "oracle")
        if method != "unstructured"
    ],
)
def test_without_a_path_nothing_is_done(game: str, method: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It used to say that there is no path, and then make 150 random, irreversible steps."""
    arguments = [game, "--method", method, "--goal", IMPOSSIBLE[game]]
    printed, line = refused(capsys, *arguments)
    assert "out of reach" in line
    assert "Carrying it out" not in printed
    printed, _ = refused(capsys, *arguments, "--json")
    told = json.loads(printed)
    assert (told["outcome"], told["steps"], told["attempts"], told["success"]) == ("unreachable", 0, [], False)
    assert told["reason"] in line


def test_why_there_is_no_path_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "red can become at most" in refused(capsys, "switches", "--goal", "red=9")[1]
    assert "but not all at once" not in refused(capsys, "exchange", "--goal", "red=50 blue=50")[1]
    assert "lie outside S" in refused(capsys, "mining", "--goal", "m1=6 m2=1")[1]
    assert "touch the post" in refused(capsys, "arm", "--goal", "shoulder=120±5")[1]


def test_an_agent_that_knows_no_path_acts_only_when_told_to(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the rules there is a path; this agent has learnt nothing and knows none."""
    config = load_agent(run)[1]
    save_agent(tmp_path / "untrained", untrained_agent(config), config)
    arguments = [str(tmp_path / "untrained"), "--goal", "red=1", "--budget", "3"]
    printed, line = refused(capsys, *arguments)
    assert "Carrying it out" not in printed
    assert "no path leads there, as far as the agent knows" in line
    assert "goal not reached within 3 steps" in said(capsys, "plan", *arguments, "--anyway")


def test_what_is_printed_is_what_is_carried_out(capsys: pytest.CaptureFixture[str]) -> None:
    """The transitions that were tried are those of the plan, or of a new plan that was printed."""
    for seed in ("0", "1"):
        told = json.loads(said(capsys, "plan", "mining", "--goal", "m1=5 m2=6", "--seed", seed, "--json"))
        plans = {0: [edge["transition"] for edge in told["path"]]}
        plans |= {change["step"]: change["path"] for change in told["new_plans"]}
        plan, step = plans[0], 0
        for attempt in told["attempts"]:
            assert plan, "there was something to try"
            assert attempt["transition"] == plan[0]
            step += attempt["steps"]
            plan = plans.get(step, plan[1:] if attempt["success"] else plan)


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "doctor").splitlines()
    assert lines[0].startswith("Python ")
    assert any(line.startswith("devices: ") for line in lines)
    for game in GAMES:
        assert any(line.startswith(f"game {game}: plays") for line in lines)
        assert any(line.startswith(f"agent {game}: ") for line in lines)
    assert lines[-1] == "all is well"


def test_demo(run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def train(*arguments: object, **options: object) -> object:
        asked.append((arguments, set(options)))
        return load(run)

    monkeypatch.setattr("saplan.training.train.train", train)
    printed = said(capsys, "demo", "--steps", "2000000", "--seed", "1", "--tasks", "1")
    assert asked == [(("switches", 2_000_000, 1), {"eval_points", "progress"})]
    for words in ("2 M steps", "Evaluating on 1 tasks", "(paper: 89.3% after 50 M steps)", "Plan: ", "Carrying it out"):
        assert words in printed


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a command that is refused."""
    capsys.readouterr()
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("saplan: ")
    return line


TRAIN = ["train", "switches"]
MISTAKES = [
    (["train"], "name the game first"),
    (["train", "swiches"], "did you mean 'switches'"),
    ([*TRAIN, "--steps", "-1", *SMALL], "steps must be at least lanes × rollout = 64"),
    ([*TRAIN, "--steps", "63", *SMALL], "steps must be at least lanes × rollout = 64"),
    ([*TRAIN, "--steps", "many"], "'many' is not a whole number"),
    ([*TRAIN, "--lanes", "63", "--paper"], "lanes must be even"),
    ([*TRAIN, "--lanes", "0"], "lanes must be a whole number in 1..16777216, got 0"),
    ([*TRAIN, "--lanes", "10", "--rollout", "1", "--minibatches", "3"], "multiple of minibatches"),
    ([*TRAIN, "--discount", "1.5"], "discount must lie in (0, 1]"),
    ([*TRAIN, "--temperature", "0"], "temperature must be above 0, got 0.0"),
    ([*TRAIN, "--seed", "-1"], "--seed must lie in"),
    ([*TRAIN, "--eval-points", "-1"], "--eval-points must lie in"),
    ([*TRAIN, "--lanez", "8"], "did you mean --lanes"),
    ([*TRAIN, "--kinds", "0"], "1..6"),
    (["evaluate"], "name a run directory or a game first"),
    (["evaluate", "--tasks", "3"], "name a run directory or a game first"),
    (["evaluate", "nowhere"], "no run directory 'nowhere'"),
    (["evaluate", "nowhere", "--tasks", "0"], "--tasks must lie in 1..100000"),
    (["evaluate", "nowhere", "--budget", "0"], "--budget must lie in 1..100000"),
    (["evaluate", "nowhere", "--task-seed", "-1"], "--task-seed must lie in"),
    (["evaluate", "nowhere", "--taskz", "1"], "did you mean --tasks"),
    (["plan"], "name a run directory or a game first"),
    (["plan", "nowhere", "--goal", "red=1"], "no run directory 'nowhere'"),
    (["plan", "nowhere"], "--goal"),
    (["plan", "nowhere", "--goal", "red=1", "--seed", "-1"], "--seed must lie in"),
    (["plan", "nowhere", "--goal", "red=1", "--budget", "-1"], "--budget must lie in"),
    (["doctor", "--thorough"], "--thorough"),
    (["demo", "--seed", "-1"], "--seed must lie in"),
]


@pytest.mark.parametrize(("arguments", "words"), MISTAKES, ids=[" ".join(arguments) for arguments, _ in MISTAKES])
def test_mistakes(arguments: list[str], words: str, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in complaint(capsys, *arguments)
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("reed=1", "did you mean 'red'"),
        ("red=-1", "negative"),
        ("red", "write conditions as"),
        ("", "empty"),
        ("switch=7", "ℤ/3"),
        ("red=nan", "finite"),
    ],
)
def test_goals_that_are_none(run: Path, goal: str, words: str, capsys) -> None:
    for form in ([], ["--json"]):
        assert words in complaint(capsys, "plan", str(run), "--goal", goal, *form)


@pytest.mark.parametrize("command", [["evaluate"], ["plan", "--goal", "red=1"]], ids=["evaluate", "plan"])
def test_runs_that_are_damaged(run: Path, command: list[str], tmp_path: Path, capsys) -> None:
    name, *options = command
    assert "holds no trained agent" in complaint(capsys, name, str(tmp_path), *options)
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    (copy / ARRAYS).write_bytes(b"nothing")
    assert "damaged" in complaint(capsys, name, str(copy), *options)


def test_a_run_directory_that_cannot_be_made(tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "run")
    assert "cannot write" in complaint(capsys, *TRAIN, "--steps", "1024", *SMALL, "--out", out)
