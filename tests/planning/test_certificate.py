"""What arithmetic rules out, against what can be counted by hand and by exhaustive search."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from saplan.games import Exchange, Game, Mining, Switches
from saplan.goals import parse_goal
from saplan.planning.certificate import Arithmetic, why_not

THREE_RED = np.array([3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0])
"""Switches: 3 red, 1 green and 2 blue on the map, nothing held."""


def reason(game: Game[Any], rho: ArrayLike, goal: str) -> str | None:
    return why_not(game, np.asarray(rho, float), parse_goal(game.space, goal))


@pytest.mark.parametrize("goal", ["red=3", "red>=2 blue=2 switch=0", "map_red=0", "green<=1", "map_red=1 red=2"])
def test_what_can_be_is_not_ruled_out(goal: str) -> None:
    assert reason(Switches(), THREE_RED, goal) is None


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("red=4", "red can become at most 3 from here"),
        ("map_red=4", "map_red can become at most 3"),
        ("red=1 green=2", "green can become at most 1"),
        ("map_red=3 red=1", "each part of map_red=3 red=1 is possible by itself, but not all at once"),
    ],
)
def test_what_cannot_be_says_why(goal: str, words: str) -> None:
    assert words in (reason(Switches(), THREE_RED, goal) or "")


def test_what_is_gone_stays_gone() -> None:
    held = np.array([1.0, 1.0, 1.0, 2.0, 0.0, 0.0, 0.0])
    assert "red can become no less than 2" in (reason(Switches(), held, "red=1") or "")


def test_nothing_that_trades_can_reach_is_ruled_out() -> None:
    """Every state that an exhaustive search of exchange comes to is allowed, and lies within the spans."""
    game = Exchange()
    start: tuple[int, ...] = (2, 1, 1, 0, 0, 0)
    changes = [tuple(map(int, delta)) for _, delta in game.admissible()]
    met, waiting = {start}, [start]
    while waiting:
        state = waiting.pop()
        ends = (tuple(a + d for a, d in zip(state, delta, strict=True)) for delta in changes)
        fresh = {end for end in ends if min(end) >= 0} - met
        met |= fresh
        waiting += fresh
    arithmetic = Arithmetic(game, np.array(start, float))
    for k, (least, most) in enumerate(map(arithmetic.span, range(6))):
        assert least <= min(state[k] for state in met)
        assert most >= max(state[k] for state in met)
    for held in {state[3:] for state in met}:
        goal = " ".join(f"{name}={n}" for name, n in zip(("red", "green", "blue"), held, strict=True))
        assert reason(game, start, goal) is None
    everything = set(itertools.product(range(5), repeat=3))
    refused = [held for held in everything if reason(game, start, "red={} green={} blue={}".format(*held))]
    assert len(refused) > len(everything) / 2, "most of what cannot be is seen at once"


@pytest.mark.parametrize(
    ("goal", "possible"), [("m1=6 m2=1", False), ("m1=6 m2=5", True), ("m1=13 m2=8", False), ("m1=3", True)]
)
def test_amounts_must_lie_in_s(goal: str, possible: bool) -> None:
    found = reason(Mining(), [0.5, 0.5, 0.0], goal)
    assert (found is None) == possible
    assert possible or (found is not None and "S" in found)
