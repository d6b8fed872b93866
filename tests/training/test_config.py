"""Configurations as JSON: there and back, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from saplan.errors import InputError
from saplan.games import Exchange, Game, Mining, Switches
from saplan.games.grid import MapRules
from saplan.methods.registry import settings_for
from saplan.methods.structured.settings import StructuredSettings
from saplan.storage.json_data import read_json, write_json
from saplan.training.config import RunConfig, config_from_json, run_config
from saplan.training.metrics import MetricsFile

ODD: list[Game[Any]] = [
    Switches(kinds=2, fewest=2, most=3, maps=MapRules(smallest=8, largest=9, blocked=0.05)),
    Exchange(kinds=2, fewest=2, most=5, gives=((0, 4), (3, 0)), takes=((0, 1), (2, 0)), farthest=7),
    Mining(deposits=2, yield_low=0.7, dumps=0.9, centre=(5.5, 1.5), inner=2.0, foot=1.25),
]
"""None of their rules is the default one."""


def names(game: Game[Any]) -> str:
    return game.name


def config_of(game: Game[Any]) -> RunConfig:
    settings = replace(settings_for(game), lanes=14, rollout=3, minibatches=7, learning_rate=1.25e-3, relabel=False)
    return RunConfig(game, settings, steps=12345, seed=67, method="structured")


@pytest.mark.parametrize("game", ODD, ids=names)
def test_there_and_back(game: Game[Any], tmp_path: Path) -> None:
    config = config_of(game)
    write_json(tmp_path / "config.json", config.to_json())
    back = config_from_json(read_json(tmp_path / "config.json"), Path("config.json"))
    assert back == config
    assert hash(back.game) == hash(game), "static under jax.jit, so it must hash"
    assert back.to_json() == config.to_json()


def test_every_setting_is_written() -> None:
    assert set(config_of(ODD[0]).to_json()["settings"]) == set(vars(StructuredSettings()))


MISTAKES: dict[str, Any] = {
    "unknown game": {"game": "chess"},
    "game is a list": {"game": ["switches"]},
    "no rules": {"rules": None},
    "unknown rule": {"rules": {"colour": 3}},
    "impossible rule": {"rules": {"kinds": 0}},
    "rule of the wrong type": {"rules": {"kinds": "three"}},
    "maps that are none": {"rules": {"maps": [1, 2]}},
    "unknown setting": {"settings": {"momentum": 0.9}},
    "impossible setting": {"settings": {"lanes": 0}},
    "setting of the wrong type": {"settings": {"lanes": "many"}},
    "no settings": {"settings": None},
    "steps are no number": {"steps": "many"},
    "steps without end": {"steps": float("inf")},
    "seed is a list": {"seed": []},
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_what_is_no_configuration_is_one_line(mistake: dict[str, Any]) -> None:
    data = config_of(Switches()).to_json() | mistake
    with pytest.raises(InputError, match=r"here\.json") as caught:
        config_from_json(data, Path("here.json"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", ["game", "rules", "settings", "steps", "seed", "method"])
def test_nothing_may_be_missing(missing: str) -> None:
    data = config_of(Switches()).to_json()
    del data[missing]
    with pytest.raises(InputError, match=missing):
        config_from_json(data, Path("here.json"))


IN_USE: list[dict[str, Any]] = [
    {"lanes": 16_384, "rollout": 32}, {"hidden": 512, "edge_steps": 64, "capacity": 64, "minibatches": 64},
    {"attempt_steps": 150, "lanes": 16_384}, {"lanes": 1, "rollout": 32},
]  # fmt: skip
SLIPS: list[dict[str, Any]] = [
    {"lanes": 2**18, "rollout": 32}, {"hidden": 2**15}, {"epochs": 2000}, {"epochs": 1024, "minibatches": 2**11},
    {"edge_steps": 2**15}, {"edge_steps": 2**14, "edge_batch": 2**14}, {"capacity": 2**15}, {"positives": 2**21},
    {"outcomes": 2**21}, {"edge_batch": 2**21}, {"attempt_steps": 2**17}, {"attempt_steps": 2**15, "lanes": 2**14},
    {"edge_hidden": 2**15}, {"learning_rate": 1e30}, {"temperature": 1e-30}, {"rollout": 2**15},
]  # fmt: skip


@pytest.mark.parametrize("numbers", IN_USE, ids=str)
def test_settings_that_are_in_use_are_taken(numbers: dict[str, Any]) -> None:
    StructuredSettings(**numbers)


@pytest.mark.parametrize("numbers", SLIPS, ids=str)
def test_settings_beyond_all_sense_are_a_slip(numbers: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be"):
        StructuredSettings(**numbers)


@pytest.mark.parametrize("rules", [{"kinds": True}, {"kinds": 2.0}, {"maps": {"blocked": "0.1"}}, {"most": 10**30}])
def test_rules_of_another_kind(rules: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be a"):
        config_from_json(config_of(Switches()).to_json() | {"rules": rules}, Path("here.json"))


@pytest.mark.parametrize("number", [{"seed": 2**31}, {"eval_points": 65}, {"eval_tasks": 10**6}, {"seed": True}])
def test_numbers_of_a_run_beyond_all_sense(number: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be a whole number in"):
        config_from_json(config_of(Switches()).to_json() | number, Path("here.json"))


@pytest.mark.parametrize(
    ("steps", "points", "tasks"),
    [(5_000_000, 5, 200), (600_000, 5, 80), (60_000, 5, 8), (600_000, 1, 200), (8192, 5, 8), (600_000, 0, 200)],
)
def test_a_short_training_is_evaluated_on_few_tasks(steps: int, points: int, tasks: int) -> None:
    assert run_config("switches", steps, 0, None, "structured", points).eval_tasks == tasks
    assert run_config("switches", steps, 0, None, "structured", points, 50).eval_tasks == 50, "unless told otherwise"


@pytest.mark.parametrize("data", [None, [], "text", 5])
def test_other_data_are_no_configuration(data: Any) -> None:
    with pytest.raises(InputError, match="not a run's configuration"):
        config_from_json(data, Path("here.json"))


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"", b"[" * 100_000, '{"a": 1}'.encode("utf-16")])
def test_what_is_not_json_is_said_to_be_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match="is not JSON"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"a": 1, "a": 2}', "'a' is given twice"), ('{"b": {"a": 1, "a": 1}}', "given twice"),
        ('{"a": NaN}', "NaN is not a number"), ("[" * 20 + "]" * 20, "more than 16 deep"), (r'"\ud800"', "not Unicode"),
        (r'{"\ud800": 1}', "not Unicode"),
    ],
)  # fmt: skip
def test_json_that_nobody_would_write(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(InputError, match=words):
        read_json(tmp_path / "a.json")


def test_a_file_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_json(tmp_path / "missing.json")
    with pytest.raises(InputError, match="cannot write"):
        write_json(tmp_path / "no" / "folder.json", {})


def test_metrics_are_on_disk_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "new" / "metrics.jsonl"
    metrics = MetricsFile(path)
    metrics.write({"steps": 1, "success": None})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"steps": 1, "success": None}]
    metrics.write({"steps": 2, "success": 0.5})
    metrics.close()
    assert len(path.read_text().splitlines()) == 2
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        MetricsFile(tmp_path / "file" / "metrics.jsonl")
