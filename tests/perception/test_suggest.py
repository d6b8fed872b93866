"""`saplan suggest`: attributes with known algebra, every trap alone, and games."""

import itertools
import json
from typing import Any

import jax
import numpy as np
import pytest

from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Integer, Natural, Real
from saplan.cli import main
from saplan.errors import InputError
from saplan.games import make_game
from saplan.goals import Goal
from saplan.perception.dictionary import Candidate, circular_orders
from saplan.perception.found import found_from_json, found_to_json, raw_space, with_space
from saplan.perception.suggest import Suggestion, Verdict, suggest
from saplan.perception.transitions import Transitions, play_freely

Rule = Any
"""(random numbers, values, action) → values after the step."""


def transitions(rule: Rule, start: list[float], steps: int = 6000, actions: int = 3, seed: int = 0) -> Transitions:
    """Random play of one attribute, or of several, with trials in which every action has the same luck."""
    rng = np.random.default_rng(seed)
    value = np.array(start, float)
    rows, tried = [], []
    for step in range(steps):
        action, luck = int(rng.integers(actions)), int(rng.integers(2**31))
        each = [np.array(rule(np.random.default_rng(luck), value, a), float) for a in range(actions)]
        if step % 20 == 0:
            same = np.stack([after == value for after in each])
            tried.append((~same.all(axis=0), same.any(axis=0)))
        rows.append((value, each[action], action))
        value = each[action]
    before, after = (np.array([row[k] for row in rows], np.float32) for k in (0, 1))
    moves, stays = (np.array([pair[k] for pair in tried]) for k in (0, 1))
    names = tuple("xyz"[: len(start)])
    return Transitions(names, before, after, np.array([row[2] for row in rows]), actions, moves, stays)


def verdict(rule: Rule, start: list[float], **more: Any) -> Verdict:
    return suggest(transitions(rule, start, **more)).verdicts[0]


def moved(amounts: tuple[float, ...], inside: Any = lambda x: x) -> Rule:
    return lambda rng, x, a: inside(x + amounts[a]) if rng.random() < 0.5 else x


def table(*maps: list[int]) -> Rule:
    return lambda rng, x, a: np.array([maps[a][int(x[0])]]) if rng.random() < 0.5 else x


STAY5 = [0, 1, 2, 3, 4]
SHUFFLE = [3, 0, 4, 1, 2]
FOUND: dict[str, tuple[Rule, list[float], Block | type[Block]]] = {
    "a count with a cap": (moved((1, -1, 0), lambda x: np.clip(x, 0, 5)), [0.0], Natural),
    "a walk": (moved((1, -2, 0)), [0.0], Integer),
    "a dial": (moved((1, 0, 0), lambda x: x % 5), [0.0], Cyclic(5)),
    "a dial of many positions": (moved((1, -1, 0), lambda x: x % 24), [0.0], Cyclic(24)),
    "a refill from anywhere": (table([0, 0, 1, 2, 3, 4, 5], [6] * 7, list(range(7))), [3.0], Natural),
    "a refill that looks like a wrap": (table([0, 0, 1, 2, 3], [4, 1, 2, 3, 4], STAY5), [2.0], Natural),
    "labels": (table([3, 0, 0, 1, 1, 2], [1, 4, 5, 5, 2, 0], list(range(6))), [0.0], Categorical),
    "assignments": (table([0] * 4, [1] * 4, [3, 2, 2, 2]), [0.0], Categorical),
    "a quantity": (lambda r, x, a: x + (a - 1) * r.uniform(0.8, 1.2), [0.0], Real),
    "an angle": (moved((0.3, -0.3, 0), lambda x: x % (2 * np.pi)), [1.0], Circle),
    "a polygon": (table([1, 2, 3, 0, 5, 6, 7, 4], [4, 7, 6, 5, 0, 3, 2, 1], list(range(8))), [0.0], Dihedral(4)),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_the_block_is_found(name: str) -> None:
    rule, start, block = FOUND[name]
    one = verdict(rule, start)
    assert one.decided, one
    assert one.candidate.block == block if isinstance(block, Block) else isinstance(one.candidate.block, block), one
    assert not one.exogenous


def test_labels_out_of_order_become_a_dial() -> None:
    following = [0] * 5
    for here, there in itertools.pairwise([*SHUFFLE, SHUFFLE[0]]):
        following[here] = there
    one = verdict(table(following, STAY5, STAY5), [0.0])
    assert one.decided
    assert one.block == Cyclic(5)
    elements = one.candidate.elements(np.array(SHUFFLE, float))
    assert len(np.unique(np.diff(elements) % 5)) == 1, "each step of the dial is the same turn"


def test_numbers_and_periods() -> None:
    angle = verdict(*FOUND["an angle"][:2]).candidate.block
    assert isinstance(angle, Circle)
    assert angle.period == pytest.approx(2 * np.pi)
    quantity = verdict(*FOUND["a quantity"][:2]).candidate.block
    assert isinstance(quantity, Real)
    assert 0.5 < quantity.resolution < 2
    degrees = verdict(moved((90, -90, 0), lambda x: x % 360), [0.0])
    assert degrees.block == Cyclic(4)
    assert degrees.candidate.order == (0, 90, 180, 270)


def test_a_wrap_that_was_not_seen_yet_is_undecided() -> None:
    rule = moved((1, 0, 0), lambda x: x % 12)
    few = Transitions(*_parts(transitions(rule, [0.0], steps=30)))
    assert not suggest(few).verdicts[0].decided
    assert verdict(rule, [0.0]).block == Cyclic(12), "asked again after more play"


def _parts(played: Transitions) -> tuple[Any, ...]:
    """The play until the first wrap."""
    wraps = np.flatnonzero(played.after[:, 0] < played.before[:, 0])
    end = int(wraps[0]) if len(wraps) else len(played.before)
    cut = played.before[:end], played.after[:end], played.action[:end]
    return played.names, *cut, played.actions, played.moves, played.stays


def test_two_values_are_the_same_in_every_block() -> None:
    toggled = verdict(table([1, 0], [0, 1], [0, 1]), [0.0])
    assert toggled.decided
    assert toggled.block == Cyclic(2)
    assert "ℤ/2, a count and two labels" in toggled.evidence
    assert isinstance(verdict(table([1, 1], [0, 0], [0, 1]), [0.0]).block, Natural)


def test_drift_is_exogenous() -> None:
    one = verdict(lambda r, x, a: (x + (r.random() < 0.3)) % 6, [0.0])
    assert one.exogenous
    assert one.decided
    assert "under every action" in one.evidence


def test_an_attribute_that_never_changes_is_undecided() -> None:
    one = verdict(lambda r, x, a: x, [2.0])
    assert not one.decided
    assert one.evidence == "never changed"


def test_an_exchange_is_two_counts() -> None:
    def trade(rng: Any, x: Any, a: int) -> Any:
        if a == 0:
            return x + np.array([1, 0]) if x[0] < 6 else x
        if a == 1:
            return x + np.array([-3, 1]) if x[0] >= 3 else x
        return np.array([x[0], 0.0]) if x[1] >= 4 else x

    found = suggest(transitions(trade, [0.0, 0.0]))
    assert isinstance(found.verdicts[0].block, Natural)
    assert found.verdicts[0].decided
    assert not isinstance(found.verdicts[1].block, Cyclic) or not found.verdicts[1].decided


def test_a_dial_and_a_flag_that_are_one_element() -> None:
    def rule(rng: Any, x: Any, a: int) -> Any:
        k, f = x
        return np.array([(k + (1 - 2 * f)) % 4, f] if a == 0 else [k, 1 - f] if a == 1 else x)

    (one,) = suggest(transitions(rule, [0.0, 0.0])).verdicts
    assert one.names == ("x", "y")
    assert one.block == Dihedral(4)
    apart = suggest(transitions(lambda r, x, a: np.array([(x[0] + (a == 0)) % 4, x[1] != (a == 1)]), [0.0, 0.0]))
    assert [str(v.block.symbol) for v in apart.verdicts] == ["ℤ/4", "ℤ/2"]


@pytest.mark.parametrize(("n", "orders"), [(4, 3), (5, 6), (6, 60), (7, 120)])
def test_circular_orders(n: int, orders: int) -> None:
    found = circular_orders(n)
    assert len(found) == orders
    assert tuple(range(n)) in found


def test_games(capsys: pytest.CaptureFixture[str]) -> None:
    game = make_game("switches")
    found = suggest(play_freely(game, 100_000))
    assert found.undecided == ()
    assert [block.symbol for block in found.space.blocks] == [block.symbol for block in game.space.blocks]
    again = with_space(game, found_from_json(json.loads(json.dumps(found_to_json(with_space(game, found).found)))))
    assert again.space == found.space
    assert main(["suggest", "switches", "--steps", "20000", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["attributes"][-1]["name"] == "switch"
    assert len(found_from_json(printed["attributes"])) == 7


def test_goals_are_carried_over() -> None:
    game = make_game("switches")
    order = (2.0, 0.0, 1.0)
    verdicts = [Verdict((name,), Candidate(block, 0.0), False, 9.0, "", "") for name, block in
                zip(game.space.names, game.space.blocks, strict=True)]  # fmt: skip
    verdicts[-1] = Verdict(("switch",), Candidate(Cyclic(3), 0.0, order), False, 9.0, "", "")
    seen = with_space(game, Suggestion(0, tuple(verdicts)))
    state, goal = seen.tasks(jax.random.key(0))
    raw, plain = game.tasks(jax.random.key(0))
    assert order[int(seen.attributes(state)[-1])] == float(game.attributes(raw)[-1])
    np.testing.assert_array_equal(goal.low[:-1], plain.low[:-1])
    asked = seen.goal(Goal(np.full(7, 2.0, np.float32), np.full(7, 2.0, np.float32)))
    assert float(asked.low[-1]) == order.index(2.0)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("no", "a list of attributes"),
        ([{"name": "x", "block": "Natural", "bins": 4, "raw": ["x", "y", "z"]}], "one or two names"),
        ([{"name": "x", "block": "Natural", "bins": 4, "order": ["a"]}], "list of numbers"),
        ([{"name": "x", "block": "Torus"}], "Torus"),
    ],
)
def test_bad_files(rows: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        found_from_json(rows)


def test_a_space_of_another_game() -> None:
    space = raw_space("left", "right")
    assert space.names == ("left", "right")
    rows = [{"name": "left", "block": "Natural", "bins": 4}]
    with pytest.raises(InputError, match="does not have"):
        with_space(make_game("switches"), found_from_json(rows))
