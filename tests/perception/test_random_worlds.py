"""Worlds with known algebra, drawn by a generator that `saplan suggest` was not tuned on."""

from typing import Any

import numpy as np
import pytest

from saplan.perception.suggest import suggest
from saplan.perception.transitions import play_freely
from tests.loading import load


def judged_worlds(seeds: range, steps: int) -> list[tuple[str, str]]:
    """(attribute, word) for every attribute of these worlds."""
    made: Any = load("benchmarks/random_worlds.py")
    words = []
    for seed in seeds:
        env = made.draw_world(seed)
        found = suggest(play_freely(made.as_world(env), steps)).verdicts
        for part in env.parts:
            about = [one for one in found if set(one.names) & set(part.names)]
            words.append((f"{seed} {part.kind}", made.judged(part, about)))
    return words


def wrong(words: list[tuple[str, str]]) -> list[str]:
    return [name for name, word in words if word == "wrong"]


def test_two_random_worlds() -> None:
    words = judged_worlds(range(20_000, 20_002), 50_000)
    assert not wrong(words)
    assert np.mean([word in ("right", "equivalent") for _, word in words]) >= 0.8


@pytest.mark.slow
def test_twenty_random_worlds() -> None:
    words = judged_worlds(range(20_000, 20_020), 200_000)
    assert not wrong(words)
    assert np.mean([word in ("right", "equivalent") for _, word in words]) >= 0.95
