"""`saplan export`: what it writes for every game and for a foreign world, where, and what it says of bad input."""

import json
import os
from pathlib import Path

import jax
import numpy as np
import pytest

import saplan
from saplan.cli import main
from saplan.methods.structured.learnt_model import learnt_model, plan_data
from saplan.planning.pddl import read_actions
from tests.loading import load
from tests.methods.probe import Corridor
from tests.reliability.tiny import STEPS

enhsp = load("benchmarks/enhsp.py")
needs_enhsp = pytest.mark.skipif(enhsp.missing() is not None, reason=str(enhsp.missing()))

GOALS = {"switches": "red=1 green=1", "exchange": "red=3 blue=1", "mining": "m1=2 m2=1"}


def model_of(game: str, seed: int = 1):
    """The model of a shipped agent with the goal of its game."""
    agent = saplan.load(game)
    start = np.asarray(agent.game.attributes(jax.jit(agent.game.reset)(jax.random.key(seed))))
    return learnt_model(agent, start, saplan.parse_goal(agent.game.space, GOALS[game]))


@pytest.mark.parametrize("game", GOALS)
def test_every_shipped_agent_is_written(
    game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", game, "--pddl", "--dot", "--json", "--goal", GOALS[game], "--out", "there/in"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["there"], "nothing is written elsewhere"
    names = sorted(path.name for path in (tmp_path / "there/in").iterdir())
    assert names == ["changes.dot", "domain.pddl", "plan.json", "problem.pddl"]
    domain = (tmp_path / "there/in/domain.pddl").read_text("utf-8")
    said = capsys.readouterr().out
    share = next(line for line in said.splitlines() if "agree with it at" in line)
    assert share in domain, "the share of states that agree is printed and written"
    plan = json.loads((tmp_path / "there/in/plan.json").read_text("utf-8"))
    assert plan["outcome"] in ("optimal", "feasible")
    assert plan["agreement"] >= 0.95
    assert all(0 < step["probability"] <= 1 for step in plan["steps"])


def test_the_needs_of_switches_are_those_of_the_rules() -> None:
    model = model_of("switches")
    written = {tuple(delta): needs for delta, needs in zip(
        model.problem.changes[:, :6].tolist(), (model.problem.needs.describe(model.problem.space, j) for j in range(4)),
        strict=True)}  # fmt: skip
    for kind, name in enumerate(("red", "green", "blue")):
        delta = np.zeros(6)
        delta[[kind, 3 + kind]] = -1, 1
        assert f"map_{name}>=1" in written[tuple(delta)]
        assert f"switch in {{{kind}}}" in written[tuple(delta)]
    assert "switch" not in written[(0.0,) * 6]


@needs_enhsp
@pytest.mark.parametrize("game", ["switches", "exchange"])
def test_enhsp_plans_on_the_learnt_model(game: str) -> None:
    model = model_of(game)
    solved = enhsp.solve_with_enhsp(model.problem)
    assert solved.transitions is not None
    path = enhsp.follow(model.problem, solved.transitions)
    feasible = model.feasible(path[:-1])[np.arange(len(path) - 1), solved.transitions]
    assert feasible.all(), "the edge detector agrees with every change of a plan that another planner made"
    assert solved.cost >= plan_data(model)["model_lower_bound"] - 1e-4


def test_an_unreachable_goal_has_a_reason() -> None:
    agent = saplan.load("exchange")
    goal = saplan.parse_goal(agent.game.space, "red=30")
    data = plan_data(learnt_model(agent, np.array([1, 1, 1, 0, 0, 0], float), goal))
    assert data["outcome"] == "infeasible"
    assert data["words"].startswith("red can become at most")
    assert data["cost"] is None
    assert data["steps"] == []


def test_one_format_goes_to_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", "switches", "--json", "--goal", "red=2", "--start", "map_red=3 red=0 switch=1"]) == 0
    captured = capsys.readouterr()
    plan = json.loads(captured.out)
    assert plan["start"]["switch"] == "1"
    assert [step["change"] for step in plan["steps"]] == ["switch +1 mod 3"] * 2 + ["map_red -1, red +1"] * 2
    assert "agree with it" in captured.err
    assert not list(tmp_path.iterdir())


def test_a_foreign_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    settings = saplan.StructuredSettings(lanes=16, hidden=8, edge_hidden=8)
    saplan.train(Corridor(), STEPS, 0, settings, Path("run"), eval_points=0)
    Path("my_world.py").write_text("from tests.methods.probe import Corridor\nworld = Corridor()\n")
    assert main(["export", "run", "--pddl", "--world", "my_world.py", "--goal", "count=1"]) == 0
    written = capsys.readouterr().out
    assert "(define (domain corridor)" in written
    assert "(:functions (count) (lamp) (total-cost))" in written
    assert "(:goal (and (= (count) 1)))" in written


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["switches"], "say what to write: --pddl, --dot or --json"),
        (["switches", "--json"], "a plan needs a goal"),
        (["switches", "--pddl", "--dot"], "several formats need a directory: --out DIR"),
        (["nowhere", "--pddl"], "no run directory 'nowhere'"),
        (["switches", "--pddl", "--goal", "rad=1"], "rad"),
        (["switches", "--pddl", "--start", "red=-1"], "red: "),
        (["switches", "--pddl", "--start", "pink=1"], "pink"),
        (["switches", "--pddl", "--seed", "-1"], "--seed must lie in"),
        (["--pddl"], "name a run directory or a game first"),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", *words]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1


def test_other_methods_have_no_such_model(capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(saplan.__file__).parent / "agents" / "switches-curriculum"
    assert main(["export", str(run), "--pddl"]) == 2
    assert "only structured agents have learnt a set of changes" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="everything may be written")
def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert main(["export", "switches", "--dot", "--out", str(tmp_path / "x")]) == 2


def test_a_file_in_place_of_the_directory_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    assert main(["export", "switches", "--dot", "--out", str(tmp_path / "file")]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "x"


def test_names_of_the_shipped_models_are_read_back() -> None:
    from saplan.planning.pddl import Names

    for game in GOALS:
        problem = model_of(game).problem
        np.testing.assert_array_equal(read_actions(Names(problem).actions), np.arange(len(problem.costs)))
