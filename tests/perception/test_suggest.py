"""`saplan suggest`: attributes with known algebra, every trap alone, and games."""

import itertools
import json
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Integer, Natural, Real
from saplan.cli import main
from saplan.envs.jax_env import jax_world
from saplan.errors import InputError
from saplan.games import make_game
from saplan.goals import Goal
from saplan.perception.dictionary import Candidate, circular_orders
from saplan.perception.found_space import FoundAttribute, found_from_json, found_to_json, raw_space, with_space
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
        end = lambda a, luck=luck, value=value: np.array(rule(np.random.default_rng(luck), value, a), float)  # noqa: E731
        if step % 20 == 0:
            same = np.stack([end(a) == value for a in range(actions)])
            tried.append((~same.all(axis=0), same.any(axis=0)))
        rows.append((value, end(action), action))
        value = rows[-1][1]
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


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_the_unit_of_a_quantity_does_not_matter(scale: float) -> None:
    """Angles in degrees have changes far above 1, whose rounding in float32 must not make them differ."""
    found = suggest(transitions(moved((0.317 * scale, -0.317 * scale, 0), lambda x: x % (5 * scale)), [0.1 * scale]))
    assert found.verdicts[0].evidence.count("(") == 2  # two kinds of changes
    block = found.verdicts[0].block
    assert isinstance(block, Circle)
    assert block.period == pytest.approx(5 * scale, rel=1e-4)


def test_thirst_that_a_drink_delays_is_exogenous() -> None:
    """Trials do not show it: in each of them some action avoids the loss. Over all play it comes under every action."""

    def rule(rng: Any, x: Any, a: int) -> Any:
        thirsty = rng.random() < 0.1 and rng.integers(6) != a
        drunk = a == 5 and rng.random() < 0.3
        return np.array([max(0, x[0] - 1) if thirsty else min(9, x[0] + 1) if drunk else x[0]])

    played = transitions(rule, [9.0], steps=20_000, actions=6)
    found = suggest(replace(played, moves=played.moves | True, stays=played.stays | True)).verdicts[0]
    assert found.exogenous
    assert found.evidence.endswith("came as often under every action")


def test_an_attribute_that_most_actions_change_is_not_exogenous() -> None:
    found = verdict(lambda rng, x, a: (x + (1, 1, -1, -1, 0)[a]) % 5 if rng.random() < 0.3 else x, [0.0], actions=5)
    assert not found.exogenous
    assert found.block == Cyclic(5)


def test_drift_that_was_hardly_tried_is_undecided() -> None:
    """Three trials cannot show that no action causes it, but the changes follow no action either."""
    drift = transitions(lambda rng, x, a: (x + (rng.random() < 0.1)) % 7, [0.0], steps=400)
    few = replace(drift, moves=drift.moves[:1], stays=drift.stays[:1])
    assert not suggest(few).verdicts[0].decided
    dial = transitions(lambda rng, x, a: (x + (a == 0 and rng.random() < 0.3)) % 7, [0.0], steps=400)
    assert suggest(replace(dial, moves=dial.moves[:1], stays=dial.stays[:1])).verdicts[0].decided


def test_numbers_that_differ_by_rounding_are_not_labels() -> None:
    steps = np.float32(0.1) * np.float32(1 + 1e-7)
    found = verdict(lambda rng, x, a: np.float32((x + (steps, -0.1, 0)[a]) % 1), [0.5], steps=60)
    assert not isinstance(found.block, Categorical)


def test_an_order_that_fits_by_chance_is_not_a_dial() -> None:
    """In the order 0, 1, 3, 4, 2 these maps turn by 3 or 4, depending on the label."""
    found = verdict(table([4, 2, 4, 1, 3], [0, 0, 4, 1, 3], STAY5), [0.0])
    assert isinstance(found.block, Categorical)


class Hungry:
    """A count that an action raises, and hunger that grows every 25 steps in all games at the same time."""

    def reset_env(self, key: Any, params: Any) -> tuple[Any, Any]:
        return jnp.zeros(2), jnp.zeros(2)

    def step_env(self, key: Any, state: Any, action: Any, params: Any) -> tuple[Any, Any, float, bool, Any]:
        after = jnp.stack([(state[0] + (action == 1)) % 4, state[1] + 1])
        return after, after, 0.0, False, {}


def test_hunger_that_comes_at_the_same_time_in_all_games() -> None:
    world = jax_world(Hungry(), raw_space("count", "hunger"), lambda seen, state: state // jnp.array([1, 25]), [], 3)
    count, hunger = suggest(play_freely(world, 100_000)).verdicts
    assert hunger.exogenous
    assert not count.exogenous


def test_a_value_that_was_never_left() -> None:
    """The game ended there, or the play did."""
    played = transitions(moved((1, 0, 0), lambda x: x % 6), [0.0], steps=400)
    last = np.argmax(played.after[:, 0] == 5)
    assert suggest(played.first(int(last) + 1)).verdicts[0].names == ("x",)


def test_a_dial_and_a_flag_that_are_one_element() -> None:
    def rule(rng: Any, x: Any, a: int) -> Any:
        k, f = x
        return np.array([(k + (1 - 2 * f)) % 4, f] if a == 0 else [k, 1 - f] if a == 1 else x)

    (one,) = suggest(transitions(rule, [0.0, 0.0])).verdicts
    assert one.names == ("x", "y")
    assert one.block == Dihedral(4)
    apart = suggest(transitions(lambda r, x, a: np.array([(x[0] + (a == 0)) % 4, x[1] != (a == 1)]), [0.0, 0.0]))
    assert [str(v.block.symbol) for v in apart.verdicts] == ["ℤ/4", "ℤ/2"]


WAYS = ((1, 0), (0, 1), (-1, 0), (0, -1))


def walker(clockwise: int, turned_moves: bool = True) -> Rule:
    """A body in a room of six by six that steps forward, or a token beside a dial, and turns."""

    def rule(rng: Any, x: Any, a: int) -> Any:
        heading = (x[2] + clockwise) % 4 if a == 0 else (x[2] - clockwise) % 4 if a == 1 else x[2]
        way = WAYS[int(x[2]) if turned_moves else int(rng.integers(4))]
        place = np.clip(x[:2] + np.array(way), 0, 5) if a == 2 else x[:2]
        return np.array([*place, heading])

    return rule


def test_a_place_and_a_heading_are_a_pose() -> None:
    found = suggest(transitions(walker(1), [2.0, 3.0, 0.0]))
    assert len(found.space.frames) == 1
    assert [one.turns for one in found.verdicts] == [(), (), ("x", "y")]
    assert "3 changes and not 6" in found.verdicts[2].evidence
    assert str(found.space).endswith("x and y in the frame of z")
    (again,) = [one for one in found_from_json(found.to_json()["attributes"]) if one.turns]
    assert again.turns == ("x", "y")


def test_a_heading_that_turns_the_other_way_is_a_pose_with_swapped_coordinates() -> None:
    def rule(rng: Any, x: Any, a: int) -> Any:
        way = WAYS[-int(x[2]) % 4]
        place = np.clip(x[:2] + np.array(way), 0, 5) if a == 2 else x[:2]
        return np.array([*place, (x[2] + (1, -1, 0)[a]) % 4])

    found = suggest(transitions(rule, [2.0, 3.0, 0.0]))
    assert found.verdicts[2].turns == ("y", "x")


def test_a_token_beside_a_dial_is_not_a_pose() -> None:
    found = suggest(transitions(walker(1, turned_moves=False), [2.0, 3.0, 0.0]))
    assert not found.space.frames
    assert isinstance(found.verdicts[2].block, Cyclic)


def test_an_angle_in_whole_degrees_is_a_dial() -> None:
    found = verdict(lambda rng, x, a: (x + (25, -25, 0)[a]) % 360, [10.0])
    assert found.decided
    assert found.block == Cyclic(360)


def driver(turned_moves: bool = True) -> Rule:
    """A body in the plane that drives 1.5 forward, or in a random direction, and turns by a twentieth."""

    def rule(rng: Any, x: Any, a: int) -> Any:
        angle = x[2] if turned_moves else rng.uniform(0, 2 * np.pi)
        place = x[:2] + 1.5 * np.array([np.cos(angle), np.sin(angle)]) * (a == 2)
        outside = np.abs(place).max() > 9
        return np.array([*(x[:2] if outside else place), (x[2] + (0.1, -0.1, 0.0)[a] * np.pi) % (2 * np.pi)])

    return rule


def test_a_place_in_the_plane_and_an_angle_are_a_pose() -> None:
    found = suggest(transitions(driver(), [0.5, 0.25, 0.1]))
    x, y, heading = found.verdicts
    assert heading.turns == ("x", "y")
    assert isinstance(heading.block, Circle)
    assert x.block == y.block == Real(1.5)
    assert "3 changes and not" in heading.evidence
    (frame,) = found.space.frames
    step = frame.difference(heading.block, jnp.array([0.5, 1.75, np.pi / 2]), jnp.array([0.5, 0.25, np.pi / 2]))
    np.testing.assert_allclose(step, [1.5, 0, 0], atol=1e-5)


def test_steps_in_random_directions_are_not_a_pose() -> None:
    found = suggest(transitions(driver(turned_moves=False), [0.5, 0.25, 0.1]))
    assert not found.space.frames


@pytest.mark.parametrize(("n", "orders"), [(4, 3), (5, 6), (6, 60), (7, 120)])
def test_circular_orders(n: int, orders: int) -> None:
    found = circular_orders(n)
    assert len(found) == orders
    assert tuple(range(n)) in found


def test_games(capsys: pytest.CaptureFixture[str]) -> None:
    game = make_game("switches")
    found = suggest(play_freely(game, 100_000))
    assert found.undecided == ()
    assert found.space == game.space
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


def test_no_goal_becomes_easier() -> None:
    """Angles on a line have one side of zero, labels one value, and a bound on a circle ends at zero."""
    game = make_game("arm")
    inf = np.inf
    line = with_space(game, (FoundAttribute("shoulder", ("shoulder",), Real(30.0)),))
    for low, high, bounds in (
        (10, 40, (10, 40)),
        (340, 5, (340, inf)),
        (350, 20, (-inf, 20)),
        (-inf, inf, (-inf, inf)),
    ):
        asked = line.goal(Goal(np.array([low, 0], np.float32), np.array([high, 9], np.float32)))
        assert (float(asked.low[0]), float(asked.high[0])) == bounds
    circle = with_space(game, (FoundAttribute("shoulder", ("shoulder",), Circle(360.0, 30.0)),))
    for low, high, bounds in (
        (340, 5, (340, 5)),
        (-inf, inf, (-inf, inf)),
        (300, inf, (300, np.nextafter(np.float32(360), 0))),
    ):
        asked = circle.goal(Goal(np.array([low, 0], np.float32), np.array([high, 9], np.float32)))
        np.testing.assert_allclose([asked.low[0], asked.high[0]], bounds)
    labels = with_space(make_game("switches"), (FoundAttribute("switch", ("switch",), Cyclic(3), (2.0, 0.0, 1.0)),))
    for low, high, bounds in ((1, 2, (0, 0)), (1, 1, (2, 2)), (0, 2, (-inf, inf)), (5, 6, (3, 3))):
        asked = labels.goal(Goal(np.full(7, low, np.float32), np.full(7, high, np.float32)))
        assert (float(asked.low[0]), float(asked.high[0])) == bounds


def test_facts_of_the_rules_are_used_for_the_same_changes_only() -> None:
    game = make_game("arm")
    same = tuple(FoundAttribute(name, (name,), Circle(360.0, 22.0)) for name in game.space.names)
    assert with_space(game, same).admissible() == game.admissible()
    line = tuple(FoundAttribute(name, (name,), Real(30.0)) for name in game.space.names)
    other = with_space(game, line)
    assert other.admissible() == ()
    assert other.rules_out(Goal(np.array([119, -np.inf]), np.array([121, np.inf]))) is None
    assert with_space(game, same).rules_out(Goal(np.array([119, -np.inf]), np.array([121, np.inf]))) is not None


@pytest.mark.parametrize("name", ["arm", "tiles"])
def test_tasks_with_the_declared_blocks_are_the_same_tasks(name: str) -> None:
    game = make_game(name)
    pairs = zip(game.space.names, game.space.blocks, strict=True)
    seen = with_space(game, tuple(FoundAttribute(one, (one,), block) for one, block in pairs))
    for key in jax.random.split(jax.random.key(0), 20):
        (_, plain), (_, goal) = game.tasks(key), seen.tasks(key)
        np.testing.assert_allclose(goal.low, plain.low)
        np.testing.assert_allclose(goal.high, plain.high)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("no", "a list of attributes"),
        ([{"name": "x", "block": "Natural", "bins": 4, "order": [1, 2]}], "every element of ℕ once"),
        ([{"name": "x", "block": "Cyclic", "q": 3, "order": [1, 2]}], "every element of ℤ/3 once"),
        ([{"name": "x", "block": "Cyclic", "q": 2, "order": [1, float("nan")]}], "finite"),
        ([{"name": "x", "block": "Cyclic", "q": 2, "raw": ["x", "y"]}], "make an element of D_n"),
        ([{"name": "x", "block": "Cyclic", "q": 4, "turns": ["y", "z"]}], "y"),
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
