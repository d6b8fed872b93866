"""Training with a found space: from play, from a file, and resumed."""

import json
from pathlib import Path
from typing import Any

import pytest

import saplan
from saplan.algebra import Circle, Cyclic, Dihedral
from saplan.cli import main
from saplan.errors import InputError
from saplan.games import make_game
from saplan.perception.found_space import FoundAttribute, FoundGame, with_space
from saplan.training import space
from saplan.training.config import run_config
from saplan.training.store import load_agent
from saplan.training.train import RunOptions, resume, train_runs
from tests.reliability.tiny import GAME, tiny_config

SIZES = {"lanes": 16, "rollout": 4, "hidden": 16, "minibatches": 2, "cells": 1024, "edge_hidden": 8}
STEPS = 512
OPTIONS = [word for name, value in SIZES.items() for word in (f"--{name.replace('_', '-')}", str(value))]
TURNED = (3.0, 0.0, 1.0, 2.0, 4.0, 7.0, 6.0, 5.0)
"""The orientations of a piece, counted from another one."""


@pytest.fixture
def short_play(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "PLAY", 40_000)


def found_tiles() -> FoundGame[Any]:
    game = make_game("tiles")
    pieces = [FoundAttribute(name, (name,), Dihedral(4), TURNED) for name in game.space.names[:3]]
    return with_space(game, (*pieces, FoundAttribute("chosen", ("chosen",), Cyclic(3))))


def test_auto(tmp_path: Path, short_play: None, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "arm", "--space", "auto", "--steps", str(STEPS), "--out", str(tmp_path / "run"), *OPTIONS]
    assert main([*arguments, "--eval-points", "0"]) == 0
    printed = capsys.readouterr().out
    assert "closes" in printed
    assert "asked again after 64 steps of training" in printed
    agent, config = load_agent(tmp_path / "run")
    assert isinstance(config.game, FoundGame)
    assert all(isinstance(block, Circle) for block in agent.game.space.blocks)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["space"][0]["raw"] == ["shoulder"]


def test_a_found_space_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    game = found_tiles()
    config = run_config(game, STEPS, 0, saplan.StructuredSettings(**SIZES), "structured", 0)  # type: ignore[arg-type]
    train_runs([config], [tmp_path / "whole"], RunOptions(chunk=1))

    def stop(progress: saplan.Progress) -> None:
        if progress.steps >= STEPS // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_runs([config], [tmp_path / "parts"], RunOptions(stop, save_every=0.0, chunk=1))
    assert main(["train", "--resume", str(tmp_path / "parts")]) == 0
    whole, parts = ((tmp_path / name / "agent.safetensors").read_bytes() for name in ("whole", "parts"))
    assert whole == parts
    agent = resume(tmp_path / "parts")
    assert agent.game == game


def test_the_declared_space_found_again_trains_the_same_agent(tmp_path: Path) -> None:
    pairs = zip(GAME.space.names, GAME.space.blocks, strict=True)
    found = with_space(GAME, tuple(FoundAttribute(name, (name,), block) for name, block in pairs))
    assert found.space == GAME.space
    for name, world in (("declared", GAME), ("found", found)):
        train_runs([tiny_config(game=world)], [tmp_path / name], RunOptions(chunk=2))
    declared, again = ((tmp_path / name / "agent.safetensors").read_bytes() for name in ("declared", "found"))
    assert declared == again


def test_a_space_from_a_file(tmp_path: Path) -> None:
    place = tmp_path / "space.json"
    place.write_text(json.dumps([{"name": "shoulder", "block": "Circle", "period": 360, "resolution": 30}]))
    found = space.read_space(place, make_game("arm"))
    assert found.space.names == ("shoulder",)
    with pytest.raises(InputError, match="does not have"):
        space.read_space(place, make_game("tiles"))
    place.write_text("{}")
    with pytest.raises(InputError, match="list of attributes"):
        space.read_space(place, make_game("arm"))


def test_words_for_what_changed() -> None:
    first = saplan.suggest_space(make_game("tiles"), 2_000)
    later = saplan.suggest_space(make_game("tiles"), 60_000)
    assert all(block.symbol == "D_4" for block in later.space.blocks[:3])
    assert any("now decided" in text or "not in" in text for text in space.changed_verdicts(first, later))
    assert not list(space.changed_verdicts(later, later))
