"""Files of labels and of fitted attributes: there and back, and what is wrong with bad ones."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from saplan.algebra import Categorical, Cyclic, Integer, Natural, Product, Real
from saplan.algebra.serialize import space_from_json, space_to_json
from saplan.cli import main
from saplan.errors import InputError
from saplan.games import make_game
from saplan.perception import fit
from saplan.perception.fit import fit_labels
from saplan.perception.fitted import FittedFile, FittedGame, read_fitted, write_fitted
from saplan.perception.labels import Labels, draw_labels, game_labels, read_labels, write_labels
from saplan.perception.observation import Observer
from saplan.perception.regressor import RegressorSettings
from saplan.storage.arrays import to_bytes
from saplan.training.store import load
from tests.reliability.tiny import GAME, SIZES

QUICK = RegressorSettings(hidden=8, steps=10, batch=16)


@pytest.fixture(scope="module")
def labels() -> Labels:
    return game_labels(GAME, "words", *draw_labels(GAME, Observer(GAME), 200, 0))


@pytest.fixture(scope="module")
def fitted(labels: Labels) -> FittedFile:
    return fit_labels(labels, QUICK, tests=50)


def test_spaces_there_and_back() -> None:
    space = Product.of(
        a=Natural(bins=9), b=Integer(), c=Cyclic(7), d=Real(0.5, -1.0, 2.0), e=Real(), f=Categorical(("x", "y"))
    )
    assert space_from_json(json.loads(json.dumps(space_to_json(space)))) == space


@pytest.mark.parametrize(
    "rows",
    [
        None,
        [],
        [1],
        [{"name": "a"}],
        [{"name": "a", "block": "Ring"}],
        [{"name": "a", "block": "Cyclic", "q": 0}],
        [{"name": "a", "block": "Natural", "colour": 1}],
        [{"name": "a b", "block": "Natural"}],
        [{"name": "a\x1b", "block": "Natural"}],
        [{"name": 5, "block": "Natural"}],
        [{"name": "a" * 65, "block": "Natural"}],
        [{"name": "a", "block": []}],
        [{"name": "a", "block": "Natural", "bins": True}],
        [{"name": "a", "block": "Natural", "bins": 2**17}],
        [{"name": "a", "block": "Cyclic", "q": 2.0}],
        [{"name": "a", "block": "Cyclic", "q": "3"}],
        [{"name": "a", "block": "Real", "low": "0"}],
        [{"name": "a", "block": "Real", "high": 10**400}],
        [{"name": "a", "block": "Real", "high": 1e300, "low": -1e300}],
        [{"name": "a", "block": "Categorical", "labels": "ab"}],
        [{"name": "a", "block": "Categorical", "labels": [1]}],
        [{"name": "a", "block": "Categorical", "labels": ["\x1b[2J"]}],
        [{"name": "a", "block": "Natural", "exogenous": 1}],
        [{"name": f"a{k}", "block": "Natural"} for k in range(257)],
    ],
)
def test_no_space(rows: Any) -> None:
    with pytest.raises(InputError):
        space_from_json(rows)


def test_labels_there_and_back(labels: Labels, tmp_path: Path) -> None:
    write_labels(tmp_path / "labels", labels)
    back = read_labels(tmp_path / "labels")
    assert np.array_equal(back.observations, labels.observations)
    assert np.array_equal(back.rho, labels.rho)
    assert back.source == labels.source


@pytest.mark.parametrize(("read", "format_"), [(read_labels, "saplan labels 1"), (read_fitted, "saplan attributes 1")])
def test_files_of_version_0_1_are_refused_in_one_sentence(read: Any, format_: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(to_bytes({"rho": np.zeros(3)}, {"format": format_, "sight": "words"}))
    with pytest.raises(InputError, match=r"file was saved by saplan 0\.1; (write it|fit them) again with `saplan"):
        read(tmp_path / "file")


def test_fitted_there_and_back(fitted: FittedFile, tmp_path: Path) -> None:
    write_fitted(tmp_path / "fitted", fitted)
    back = read_fitted(tmp_path / "fitted")
    assert back.data == fitted.data
    assert back.view(GAME) == fitted.view(GAME)
    state = GAME.reset(jax.random.key(0))
    assert np.array_equal(back.view(GAME).read(state).rho, fitted.view(GAME).read(state).rho)


def spoilt(labels: Labels) -> dict[str, tuple[Labels, str]]:
    rho, seen = labels.rho, labels.observations

    def put(value):
        return replace(labels, rho=np.concatenate([rho[:17], np.where(np.arange(5) == 2, value, rho[17:18]), rho[18:]]))

    return {
        "wrong width": (replace(labels, rho=rho[:, :-1]), "4 numbers wide, but there are 5 attributes"),
        "outside": (put(-1), "red is -1 in pair 17, which is outside ℕ"),
        "between": (put(0.5), "red is 0.5 in pair 17"),
        "not a number": (put(np.nan), "not finite"),
        "infinite": (put(np.inf), "not finite"),
        "empty": (replace(labels, rho=rho[:0], observations=seen[:0]), "holds no pairs"),
        "fewer observations": (replace(labels, observations=seen[:-1]), "200 labels need as many observations"),
        "unknown words": (
            replace(labels, source=replace(labels.source, vocabulary=50)),
            "words must be integers in 0..49",
        ),
    }


@pytest.mark.parametrize("what", ["wrong width", "outside", "between", "not a number", "infinite", "empty",
                                  "fewer observations", "unknown words"])  # fmt: skip
def test_bad_labels_are_one_line(what: str, labels: Labels, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    bad, said = spoilt(labels)[what]
    monkeypatch.setattr(Labels, "check", lambda self, where: None)
    write_labels(tmp_path / "bad", bad)
    monkeypatch.undo()
    assert main(["fit-attributes", str(tmp_path / "bad")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "bad-fitted.safetensors").exists()


@pytest.mark.parametrize("spoilt", ["loss", "fit"])
def test_a_fit_that_is_not_finite_writes_nothing(
    spoilt: str, labels: Labels, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    write_labels(tmp_path / "labels", labels)
    if spoilt == "loss":
        monkeypatch.setattr(fit, "_descend_chunk", lambda *given: (given[0], given[1], np.float32(np.nan)))
    else:
        ruin = lambda one, *_: eqx.tree_at(lambda r: r.doubt.bias, one, one.doubt.bias * np.nan)  # noqa: E731
        monkeypatch.setattr(fit, "_with_doubt", ruin)
    assert main(["fit-attributes", str(tmp_path / "labels"), "--steps", "1", "--hidden", "8"]) == 3
    error = capsys.readouterr().err
    assert "not finite" in error.strip().splitlines()[-1], "after the lines of progress"
    assert [path.name for path in tmp_path.iterdir()] == ["labels"]


def test_labels_that_no_file_takes_are_refused_before_they_are_drawn(tmp_path: Path, capsys: Any) -> None:
    command = [
        "label",
        "switches",
        "--observation",
        "picture",
        "--pairs",
        "10000000",
        "--out",
        str(tmp_path / "labels"),
    ]
    assert main(command) == 2
    assert "MiB" in capsys.readouterr().err


def test_other_files_are_one_line(fitted: FittedFile, labels: Labels, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "arrays").write_bytes(to_bytes({"x": np.zeros(3)}))
    write_fitted(tmp_path / "fitted", fitted)
    write_labels(tmp_path / "labels", labels)
    for arguments, said in (
        (["fit-attributes", str(tmp_path / "none")], "cannot read"),
        (["fit-attributes", str(tmp_path / "text")], "not a safetensors file"),
        (["fit-attributes", str(tmp_path / "arrays")], "not a file of labels"),
        (["fit-attributes", str(tmp_path / "fitted")], "not a file of labels"),
        (["fit-attributes"], "name a file of labels first"),
        (["fit-attributes", str(tmp_path / "labels"), "--geometry", "flat"], "unknown geometry"),
        (["train", "switches", "--attributes", str(tmp_path / "fitted")], "must be fitted:FILE"),
        (["train", "switches", "--attributes", f"fitted:{tmp_path / 'labels'}"], "holds no fitted attributes"),
        (["train", "mining", "--attributes", f"fitted:{tmp_path / 'fitted'}"], "fitted on switches, not on mining"),
        (["train", "switches", "--attributes", f"fitted:{tmp_path / 'fitted'}"], "with other rules"),
        (["label", "switches", "--pairs", "0"], "--pairs must lie in"),
        (["label", "switches", "--observation", "smell"], "unknown observation"),
    ):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert said in error
        assert len(error.strip().splitlines()) == 1, error


def test_from_labels_to_an_agent(tmp_path: Path, capsys: Any) -> None:
    file, rules = tmp_path / "labels.safetensors", ["--kinds", "2", "--smallest", "5", "--largest", "6"]
    assert main(["label", "switches", "--pairs", "300", "--out", str(file), *rules]) == 0
    assert main(["fit-attributes", str(file), "--steps", "50", "--hidden", "8"]) == 0
    told = capsys.readouterr().out
    assert "map_red" in told
    assert "any of them" in told
    run, sizes = tmp_path / "run", [f"--{name.replace('_', '-')}={value}" for name, value in SIZES.items()]
    named = f"fitted:{tmp_path / 'labels-fitted.safetensors'}"
    command = ["train", "switches", "--attributes", named, "--steps", "640", "--out", str(run), "--eval-points", "0"]
    assert main([*command, *rules, *sizes]) == 0, capsys.readouterr().err
    agent = load(run)
    assert agent.game.misread
    assert isinstance(agent.game, FittedGame)
    assert agent.game.game == make_game("switches", kinds=2, maps=GAME.maps)
    assert main(["evaluate", str(run), "--tasks", "3", "--budget", "5"]) == 0
    assert main(["plan", str(run), "--goal", "red=1", "--budget", "3", "--anyway"]) == 0
    assert "made on attributes that are not sure" in capsys.readouterr().out
    (run / "attributes.safetensors").write_bytes((tmp_path / "labels-fitted.safetensors").read_bytes()[:-1])
    assert main(["evaluate", str(run), "--tasks", "3"]) == 2
