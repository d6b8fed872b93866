"""Trials that are computed once despite interruptions; tables and figures from their results."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from saplan.cli import main
from saplan.errors import InputError
from saplan.experiments import sweep as sweep_module
from saplan.experiments.figures import draw_all
from saplan.experiments.reproduce import SweepPlan, write_report
from saplan.experiments.statistics import encode_successes
from saplan.experiments.sweep import EvalBudget, Sweep, Trial, run_trials
from saplan.experiments.tables import ablation_table, read_results, success_table
from saplan.experiments.variants import ABLATIONS, GROUPS, VARIANTS
from saplan.games import GAMES
from saplan.methods.ablations import Ablated
from saplan.storage.files import Lock, make_directory
from saplan.training.config import config_from_json
from tests.methods.probe import Corridor
from tests.reliability.tiny import SIZES, STEPS, TABLE

NUMBERS = tuple(SIZES.items())
TRIALS = [Trial("switches", "structured", seed, STEPS, numbers=NUMBERS) for seed in (0, 1)]
BUDGET = EvalBudget(tasks=5, eval_points=2, eval_tasks=5)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    sweep = Sweep(tmp_path_factory.mktemp("sweep"))
    assert not run_trials(sweep, [*TRIALS, Trial("switches", "oracle", 0, 0)], BUDGET)
    return sweep


def times(out: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in out.glob("*.json")}


def test_a_result_says_what_it_is(done: Sweep) -> None:
    result = json.loads(done.result_path(TRIALS[1]).read_text())
    assert (result["game"], result["method"], result["seed"], result["tasks"]) == ("switches", "structured", 1, 5)
    assert 0 <= result["success"] <= 1
    assert result["steps_trained"] == result["budgeted_steps"] == STEPS
    assert [point["steps"] for point in result["curve"]] == [STEPS // 2, STEPS]
    assert result["examples"][-1]["steps"] == STEPS
    assert result["versions"]["jax"]
    assert result["hardware"]
    config = config_from_json(result["config"], Path("here"))
    assert config.settings == TRIALS[1].config().settings
    assert not (done.run_path(TRIALS[1]) / "checkpoints").exists(), "they are many times the agent's size"


def test_what_is_there_is_not_computed_again(done: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    before = times(done.out)
    monkeypatch.setattr(sweep_module, "train_runs", lambda *_, **__: pytest.fail("trained again"))
    monkeypatch.setattr(sweep_module, "evaluation_data", lambda *_, **__: pytest.fail("evaluated again"))
    assert not run_trials(done, TRIALS, BUDGET)
    assert times(done.out) == before


def test_a_sweep_that_was_cut_off_goes_on(done: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second trial was trained but not evaluated when the process died."""
    sweep = Sweep(Path(shutil.copytree(done.out, tmp_path / "sweep")))
    sweep.result_path(TRIALS[1]).unlink()
    before = times(sweep.out)
    monkeypatch.setattr(sweep_module, "train_runs", lambda *_, **__: pytest.fail("trained again"))
    assert not run_trials(sweep, TRIALS, BUDGET)
    after = times(sweep.out)
    assert {name: after[name] for name in before} == before
    first, again = (json.loads(r.result_path(TRIALS[1]).read_text()) for r in (done, sweep))
    assert {k: v for k, v in first.items() if "second" not in k} == {
        k: v for k, v in again.items() if "second" not in k
    }


def test_what_another_process_is_at_is_left_to_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = Sweep(tmp_path)
    make_directory(tmp_path / "claims" / TRIALS[0].name)
    with Lock(tmp_path / "claims" / TRIALS[0].name):
        assert run_trials(sweep, TRIALS[:1], BUDGET) == TRIALS[:1]
    assert "already running in another process" in capsys.readouterr().err


def test_seeds_in_one_program_are_one_job(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)
    assert [len(job) for job in sweep.jobs(TRIALS, together=True)] == [2]
    assert [len(job) for job in sweep.jobs(TRIALS, together=False)] == [1, 1]


@pytest.mark.slow
def test_seeds_train_in_one_program(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)
    assert not run_trials(sweep, TRIALS, EvalBudget(tasks=5, eval_points=2, eval_tasks=5, together=True))
    assert all(sweep.finished(trial) for trial in TRIALS)


@pytest.fixture(scope="module")
def said(done: Sweep) -> str:
    """What the command prints that draws all figures."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["reproduce", "--draw", "--out", str(done.out)]) == 0
    return out.getvalue()


def test_the_command_writes_a_report(done: Sweep, said: str) -> None:
    assert "| switches | structured | 89.3% |" in said
    assert "| switches | oracle |" in said
    for name in ("curves", "examples", "support", "schemas"):
        assert (done.out / "pictures" / f"{name}.png").stat().st_size > 5000
        assert (done.out / "pictures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    assert (done.out / "report.md").exists()


def test_pictures_are_the_same_bytes_again(done: Sweep, said: str) -> None:
    first = {path: path.read_bytes() for path in (done.out / "pictures").iterdir()}
    again = write_report(done.out)
    assert len(first) > 4
    assert {path: path.read_bytes() for path in again if path.parent.name == "pictures"} == first


def result(game: str, method: str, seed: int, success: float, **more: Any) -> dict[str, Any]:
    curve = [{"steps": 1e6, "success": success / 2}, {"steps": 2e6, "success": success}]
    return {
        "game": game, "method": method, "seed": seed, "success": success, "tasks": 1000, "variant": "default",
        "budgeted_steps": 2_000_000, "steps_trained": 2_000_000, "curve": curve, "hardware": "2 CPU cores",
        "successes": encode_successes(np.arange(1000) < 1000 * success), "trained_by": {"commit": "abc"},
        "task_seed": 0, **more,
    }  # fmt: skip


def test_the_table_of_success() -> None:
    rows = [result("switches", "structured", seed, x) for seed, x in enumerate((0.9, 0.92, 0.94, 0.96, 1.0))]
    rows += [result("mining", "structured", seed, 0.8) for seed in range(5)]
    lines = success_table(rows).splitlines()
    assert lines[2].startswith("| switches | structured | 89.3% | **94.4%** | 94.0% | ")
    assert lines[2].endswith(" | 5 | 2.0 M | 1.9 M |")
    assert lines[3].endswith(" | 5 | 2.0 M | not reached |")
    assert " | **80.0%** | 80.0% | 77." in lines[3], "seeds that agree still leave the doubt of the tasks"
    assert lines[4].startswith("| all | structured |  | **87.2%** | ")
    assert lines[-1] == "Code abc, 2 CPU cores, 1000 tasks of seed 0."


def test_a_report_of_mixed_results_says_so() -> None:
    """A reproduction may be resumed after an update of the package; its report must not hide that."""
    older = {"trained_by": {"commit": "x"}}
    rows = [result("switches", "structured", 0, 0.9), result("switches", "structured", 1, 0.2, **older)]
    assert success_table(rows, strict=False).endswith("These rows are not comparable: they differ in code: abc, x.")
    with pytest.raises(InputError, match="differ in code: abc, x"):
        success_table(rows)
    beside = [rows[0], result("switches", "curriculum", 0, 0.2, **older)]
    assert success_table(beside).endswith("Code abc (curriculum: x), 2 CPU cores, 1000 tasks of seed 0.")
    with pytest.raises(InputError, match="differ in tasks: 1000, 300"):
        success_table([rows[0], {**beside[1], "tasks": 300}])


def test_the_table_of_ablations() -> None:
    rows = [result("switches", "structured", 0, 0.9), result("switches", "structured", 0, 0.7, variant="raw")]
    rows += [result("switches", "structured", 0, 0.5, variant="integers"), result("mining", "structured", 0, 0.8)]
    lines = ablation_table(rows).splitlines()
    assert lines[0] == "| variant | switches, 2.0 M |"
    assert lines[2] == "| the default | 90.0% (1 seeds) |"
    assert lines[3].startswith("| raw numbers in place of the algebra's features | 70.0% (-20.0: -22.")
    assert lines[4].startswith("| ℤ/q treated as ℤ, S¹ as ℝ | 50.0% (-40.0: -4")


def test_other_files_are_no_results(tmp_path: Path) -> None:
    (tmp_path / "benchmark-x.json").write_text('{"steps": 3}')
    (tmp_path / "list.json").write_text("[]")
    assert read_results(tmp_path) == []
    with pytest.raises(InputError, match="holds no results yet"):
        write_report(tmp_path)


@pytest.mark.parametrize("variant", ABLATIONS)
def test_every_variant_departs_from_the_default(variant: str) -> None:
    game = (VARIANTS[variant].games or ("switches",))[0]
    trials = [Trial(game, "structured", 0, 10**6, name) for name in ("default", variant)]
    plain, other = (trial.config() for trial in trials)
    assert (plain, trials[0].planner()) != (other, trials[1].planner())
    assert config_from_json(json.loads(json.dumps(other.to_json())), Path("here")) == other


def test_a_poorer_algebra() -> None:
    raw, straight = (Trial("switches", "structured", 0, 10**6, v).config().game for v in ("raw", "integers"))
    assert isinstance(raw, Ablated)
    rho, turned = jnp.array([[1, 0, 2, 0, 3, 0, 2.0]]), jnp.array([[1, 0, 2, 0, 3, 0, 0.0]])
    assert np.array_equal(raw.space.encode(rho), rho), "numbers as they are"
    full = GAMES["switches"]().space
    assert float(full.difference(turned, rho)[0, -1]) == 1
    assert float(raw.space.difference(turned, rho)[0, -1]) == 1
    assert float(straight.space.difference(turned, rho)[0, -1]) == -2, "back, not on"


def test_what_is_wanted() -> None:
    full = SweepPlan().trials()
    assert len(full) == 3 + 5 * 9
    assert {trial.steps for trial in full if trial.game == "exchange" and trial.method != "oracle"} == {40_000_000}
    quick = SweepPlan(quick=True).trials()
    assert len(quick) == 3 + 2 * 9
    ablations = SweepPlan(variants=tuple(ABLATIONS), methods=("structured",), seeds=1).trials()
    assert {trial.game for trial in ablations if trial.variant == "integers"} == {"switches"}
    assert not [c for c in SweepPlan(variants=("raw",), seeds=1).trials() if c.method in ("unstructured", "curriculum")]


@pytest.fixture
def corridor(monkeypatch: pytest.MonkeyPatch) -> str:
    """A game that the paper does not have, registered beside those it has."""
    monkeypatch.setitem(GAMES, "corridor", Corridor)
    return "corridor"


def test_a_game_that_the_paper_does_not_have(
    corridor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = EvalBudget(tasks=2, eval_points=1, eval_tasks=1)  # the search of an agent that knows nothing takes long
    monkeypatch.setattr(SweepPlan, "eval_budget", lambda self: budget)
    rival = Trial(corridor, "unstructured", 0, STEPS, numbers=(*NUMBERS, *TABLE.items()))
    assert not run_trials(Sweep(tmp_path), [rival], budget)
    numbers = [f"{name}={value}" for name, value in NUMBERS]
    command = ["reproduce", "--games", corridor, "--methods", "structured", "--steps", str(STEPS), "--seeds", "1"]
    assert main([*command, "--out", str(tmp_path), "--set", *numbers]) == 0
    said = capsys.readouterr().out
    assert "| corridor | structured | **" in said, "no column for the paper's figure"
    assert "| corridor | unstructured | **" in said
    for name in ("curves", "examples", "schemas"):
        assert (tmp_path / "pictures" / f"{name}.png").stat().st_size > 5000


def test_a_game_beside_the_papers(corridor: str) -> None:
    assert corridor not in {trial.game for trial in SweepPlan(seeds=1).trials()}
    trials = SweepPlan((corridor, "mining"), seeds=1).trials()
    assert {trial.method for trial in trials if trial.game == corridor} == {"structured", "unstructured"}
    assert {trial.steps for trial in trials if trial.game == corridor} == {50_000_000}
    assert {trial.steps for trial in SweepPlan((corridor,), quick=True).trials()} == {500_000}
    assert corridor in {trial.game for trial in SweepPlan((corridor,), variants=("raw",), seeds=1).trials()}


def test_the_ladder_leads_from_the_paper_to_the_default() -> None:
    """Every rung changes some settings towards the default, and none away from it."""
    trials = [Trial("exchange", "structured", 0, 10**6, name) for name in GROUPS["ladder"]]
    ends = vars(trials[-1].config().settings)
    far = [{name for name, value in vars(trial.config().settings).items() if value != ends[name]} for trial in trials]
    assert all(later <= earlier for earlier, later in pairwise(far))
    assert far[0] == far[1], "the first rung changes the planner alone"
    assert all(later < earlier for earlier, later in pairwise(far[1:]))
    assert far[-2] == {"calibrated", "explored_positives", "doubt"}


def test_training_and_evaluation_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One machine trains, another evaluates; nothing is trained twice, and the curve is there."""
    sweep = Sweep(tmp_path)
    training = EvalBudget(tasks=5, eval_points=2, eval_tasks=5, together=True, train_only=True)
    assert run_trials(sweep, TRIALS, training) == TRIALS
    assert not list(tmp_path.glob("*.json"))
    monkeypatch.setattr(sweep_module, "train_runs", lambda *_, **__: pytest.fail("trained again"))
    assert not run_trials(sweep, TRIALS, BUDGET)
    result = json.loads(sweep.result_path(TRIALS[0]).read_text())
    assert [point["steps"] for point in result["curve"]] == [STEPS // 2, STEPS]


def test_figures_and_tables_of_the_papers_variant_alone(tmp_path: Path) -> None:
    """Results of the paper's variant need no others beside them."""
    rows = [result("switches", "structured", 0, 0.9, variant="paper")]
    rows[0]["examples"] = [{"steps": k, "positives": k, "negatives": k // 2} for k in (1000, 2000)]
    assert "**90.0%**" in success_table(rows, variant="paper")
    assert success_table(rows).count("\n") == 1
    names = {path.name for path in draw_all(rows, tmp_path, None)}
    assert {"curves-paper.png", "examples-paper.png"} < names
    assert "curves.png" not in names


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("curriculum", "the curriculum does not fit corridor"),
        ("oracle", "the oracle does not know the rules of corridor"),
    ],
)
def test_a_method_that_does_not_fit_and_was_asked_for(
    corridor: str, method: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "--games", corridor, "--methods", "structured", method, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


MISTAKES = [
    (["--games", "chess"], "unknown game 'chess'"),
    (["--methods", "magic"], "unknown method 'magic'"),
    (["--variants", "odd"], "unknown variant 'odd'"),
    (["--seeds", "0"], "--seeds must lie in"),
    (["--steps", "0"], "--steps must be"),
    (["--steps", "100"], "steps must be at least lanes × rollout"),
    (["--set", "lanez=3"], "did you mean 'lanes'"),
    (["--set", "lanes=three"], "lanes=NUMBER"),
    (["--on", "moon"], "unknown place 'moon'"),
    (["--eval-points", "0"], "--eval-points must lie in"),
    (["--eval-tasks", "-5"], "--eval-tasks must lie in"),
    (["--devices", "-1"], "--devices must be"),
    (["--draw"], "holds no results yet"),
]


@pytest.mark.parametrize(("arguments", "words"), MISTAKES, ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_mistakes(arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", *arguments, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir()), "nothing is begun"


SHARED_OUT = """
import numpy as np
from saplan.training.loop import Loop
from saplan.storage.arrays import to_arrays
from tests.reliability.tiny import tiny_config
import sys
many = int(sys.argv[1])
for seeds in ([0], [0, 1])[:int(sys.argv[2])]:
    each = []
    for devices in (1, many):
        loop = Loop([tiny_config(seed=seed) for seed in seeds], chunk=2, devices=devices)
        loop.chunk()
        assert len(loop.learner.lanes.rho.sharding.device_set) == devices
        each.append(to_arrays(loop.checkpoints()[-1].learner))
    for name, array in each[0].items():
        np.testing.assert_allclose(array, each[1][name], rtol=1e-4, atol=1e-5, err_msg=name)
print("the same")
"""


@pytest.mark.parametrize(("devices", "seeds"), [(2, 1), pytest.param(8, 2, marks=pytest.mark.slow)])
def test_lanes_on_several_devices_learn_the_same(devices: int, seeds: int) -> None:
    root = Path(__file__).parent.parent.parent
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", SHARED_OUT, str(devices), str(seeds)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root)
    assert done.stdout.endswith("the same\n"), done.stderr[-2000:]


def test_devices_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "switches", "--devices", "4096", "--out", str(tmp_path / "run")]) == 2
    assert "devices must lie in 1.." in capsys.readouterr().err
