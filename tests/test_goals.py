"""Goals as people write them, and what they mean."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from saplan.algebra import Categorical, Circle, Cyclic, Dihedral, Integer, Natural, Product, Real
from saplan.errors import InputError
from saplan.goals import Goal, exactly, format_goal, parse_goal

SPACE = Product.of(
    red=Natural(),
    blue=Natural(),
    switch=Cyclic(3),
    m1=Real(resolution=1.0, low=0.0, high=13.0),
    height=Real(resolution=0.1),
    debt=Integer(),
    door=Categorical(("open", "shut")),
)
INF = math.inf


def bounds(text: str) -> dict[str, tuple[float, float]]:
    """The interval of every attribute that a goal does not leave free."""
    goal = parse_goal(SPACE, text)
    rows = zip(SPACE.names, np.asarray(goal.low).tolist(), np.asarray(goal.high).tolist(), strict=True)
    return {name: (low, high) for name, low, high in rows if (low, high) != (-INF, INF)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("red=2 blue=1 switch=*", {"red": (2, 2), "blue": (1, 1)}),
        ("red=2, blue=1,switch=2", {"red": (2, 2), "blue": (1, 1), "switch": (2, 2)}),
        ("  red = 2   blue =1 ,switch= 0 ", {"red": (2, 2), "blue": (1, 1), "switch": (0, 0)}),
        ("m1=5.2±0.5", {"m1": (4.7, 5.7)}),
        ("m1=5.2+-0.5", {"m1": (4.7, 5.7)}),
        ("m1 = 5.2 ± 0.25", {"m1": (4.95, 5.45)}),
        ("m1 = 5.2 +- 0.25", {"m1": (4.95, 5.45)}),
        ("m1=5.2", {"m1": (4.7, 5.7)}),
        ("height=-1.5", {"height": (-1.55, -1.45)}),
        ("m1=5.2±0", {"m1": (5.2, 5.2)}),
        ("red>=3", {"red": (3, INF)}),
        ("red≥3", {"red": (3, INF)}),
        ("red<=3", {"red": (-INF, 3)}),
        ("red ≤ 3", {"red": (-INF, 3)}),
        ("red >= 3 red <= 6", {"red": (3, 6)}),
        ("red<=6,red>=3", {"red": (3, 6)}),
        ("red>=3 red<=3", {"red": (3, 3)}),
        ("red=5±2", {"red": (3, 7)}),
        ("debt=-7", {"debt": (-7, -7)}),
        ("debt>=-7 door=shut", {"debt": (-7, INF), "door": (1, 1)}),
        ("red=16777216", {"red": (2**24, 2**24)}),
        ("red=*", {}),
    ],
)
def test_goals_mean_what_they_say(text: str, expected: dict[str, tuple[float, float]]) -> None:
    actual = bounds(text)
    assert actual.keys() == expected.keys()
    for name, interval in expected.items():
        assert actual[name] == pytest.approx(interval, abs=1e-4)


@pytest.mark.parametrize(
    "text",
    [
        "red=2 blue=1",
        "red=2 switch=1 door=shut",
        "red>=3",
        "red<=3 blue>=1",
        "red>=3 red<=6",
        "red=5±2",
        "red=0±1",
        "red=5000±1234",
        "debt=-7±3",
        "m1=5.20",
        "m1=5.20±0.25",
        "m1>=1.50 m1<=3.25",
        "m1=0.20±0.4",
        "height=-1.50",
        "height=2.00±1.5",
    ],
)
def test_a_goal_is_printed_as_it_is_read(text: str) -> None:
    goal = parse_goal(SPACE, text)
    again = parse_goal(SPACE, format_goal(SPACE, goal))
    np.testing.assert_allclose(again.low, goal.low, rtol=1e-6, atol=0.006)
    np.testing.assert_allclose(again.high, goal.high, rtol=1e-6, atol=0.006)
    assert format_goal(SPACE, again) == format_goal(SPACE, goal)


def test_the_usual_goals_are_printed_word_for_word() -> None:
    for text in ("red=2 blue=1", "switch=1", "m1=5.20", "m1=5.20±0.25", "red>=3 red<=6", "debt<=-3", "door=open"):
        assert format_goal(SPACE, parse_goal(SPACE, text)) == text
    assert format_goal(SPACE, parse_goal(SPACE, "red=*")) == "anything"


conditions = st.one_of(
    st.integers(0, 5000).map("red={}".format),
    st.tuples(st.integers(0, 5000), st.integers(0, 300)).map(lambda pair: "red={}±{}".format(*pair)),
    st.tuples(st.integers(0, 5000), st.integers(0, 300)).map(lambda pair: f"red>={pair[0]} red<={sum(pair)}"),
    st.integers(0, 1300).map(lambda cents: f"m1={cents / 100:.2f}"),
    st.tuples(st.integers(0, 1300), st.integers(1, 300)).map(lambda pair: f"m1={pair[0] / 100}±{pair[1] / 100}"),
    st.sampled_from(["switch=0", "switch=2", "door=open", "debt>=-3", "debt<=12"]),
)


@settings(deadline=None, max_examples=300)
@given(conditions)
def test_random_goals_are_printed_as_they_are_read(text: str) -> None:
    test_a_goal_is_printed_as_it_is_read(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rde=2", "did you mean 'red'?"),
        ("red=2 swich=1", "did you mean 'switch'?"),
        ("red=nan", "not a finite number"),
        ("m1=NaN", "not a finite number"),
        ("m1=inf", "not a finite number"),
        ("height=-inf", "not a finite number"),
        ("height=1e39", "not a finite number"),
        ("red=-1", "negative"),
        ("red>=-1", "negative"),
        ("red=1.5", "not a whole number"),
        ("red=16777217", "2^24"),
        ("m1=13.5", "outside [0, 13]"),
        ("m1>=-0.1", "outside [0, 13]"),
        ("switch=3", "outside ℤ/3"),
        ("door=shot", "did you mean 'shut'?"),
        ("m1=5±-0.5", "not a number from 0 up"),
        ("m1=5±nan", "not a finite number"),
        ("m1=5±inf", "not a finite number"),
        ("m1=5±much", "not a number"),
        ("m1=5±", "write conditions as"),
        ("m1>=5±1", "a bound takes no tolerance"),
        ("switch>=1", "has no order"),
        ("switch<=1", "has no order"),
        ("switch=1±1", "has no order"),
        ("door>=open", "has no order"),
        ("red>=*", "'*' means anything"),
        ("red=*±1", "'*' means anything"),
        ("", "the goal is empty"),
        (" , ", "the goal is empty"),
        ("red", "write conditions as"),
        ("red=", "write conditions as"),
        ("=3", "write conditions as"),
        ("red>3", "write conditions as"),
        ("red 3", "write conditions as"),
        ("red==3", "not a number"),
        ("red=1 red=1", "asked for twice"),
        ("red=1 red>=1", "asked for twice"),
        ("red>=1 red=1", "asked for twice"),
        ("red>=1 red≥2", "asked for twice"),
        ("red>=1 red<=3 red=2", "asked for twice"),
        ("red=* red=2", "asked for twice"),
        ("red>=5 red<=3", "nothing lies between"),
        ("m1>=5.01 m1<=5", "nothing lies between"),
    ],
)
def test_bad_goals_are_explained_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_goal(SPACE, text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


pieces = st.lists(
    st.one_of(
        st.sampled_from(
            [*SPACE.names, "=", ">=", "<=", "≥", "≤", "±", "+-", ",", " ", "*", "nan", "1e999", "-", "open"]
        ),
        st.floats().map(str),
        st.integers().map(str),
        st.text(max_size=3),
    ),
    max_size=10,
).map("".join)


@settings(deadline=None, max_examples=1000)
@given(st.one_of(st.text(), pieces))
@example("red=1\n\x00blue=2")
def test_any_text_is_a_goal_or_an_input_error(text: str) -> None:
    complaint = ""
    try:
        goal = parse_goal(SPACE, text)
    except InputError as error:
        complaint = str(error)
    if complaint:
        assert len(complaint.splitlines()) == 1
    else:
        assert np.all(np.asarray(goal.low) <= np.asarray(goal.high))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_reached_agrees_with_plain_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = np.where(rng.random((200, 4)) < 0.3, -np.inf, rng.integers(-3, 3, (200, 4))).astype(np.float32)
    high = np.where(rng.random((200, 4)) < 0.3, np.inf, low + rng.integers(0, 5, (200, 4))).astype(np.float32)
    rho = rng.integers(-4, 6, (200, 4)).astype(np.float32)
    expected = [
        all(left <= x <= right for left, x, right in zip(*row, strict=True))
        for row in zip(low.tolist(), rho.tolist(), high.tolist(), strict=True)
    ]
    assert Goal(low, high).reached(jnp.asarray(rho)).tolist() == expected


def test_a_rim_within_rounding_counts_as_reached() -> None:
    asked = jnp.array([True, False])
    goal = exactly(jnp.array([5.2, 0.0]), 0.5, asked)
    for x, reached in ((5.7, True), (4.7, True), (5.71, False), (4.69, False)):
        assert bool(goal.reached(jnp.array([x, 99.0]))) is reached
    counts = exactly(jnp.array([2.0, 7.0]), 0.0, asked)
    assert bool(counts.reached(jnp.array([2.0, 0.0])))
    assert not bool(counts.reached(jnp.array([3.0, 7.0])))


@pytest.mark.filterwarnings("error")
def test_the_centre_of_a_goal() -> None:
    goal = Goal(np.array([1, -INF, 2, -INF], np.float32), np.array([3, 5, INF, INF], np.float32))
    assert goal.centre(Product(tuple("abcd"), (Natural(),) * 4)).tolist() == [2, 5, 2, 0]


def test_a_goal_on_a_circle_goes_round_through_zero() -> None:
    space = Product.of(angle=Circle(360.0, 30.0), turn=Dihedral(4))
    goal = parse_goal(space, "angle=5 turn=m1")
    met = [bool(goal.reached(jnp.array([x, 5.0]))) for x in (0.0, 20.0, 21.0, 349.0, 350.0, 359.99)]
    assert met == [True, True, False, False, True, True]
    assert not bool(goal.reached(jnp.array([5.0, 1.0])))
    assert goal.centre(space).tolist() == pytest.approx([5, 5])
    assert format_goal(space, goal) == "angle=5.00 turn=m1"
    wide = parse_goal(space, "angle=-10±40")
    assert format_goal(space, wide) == "angle=350.00±40"
    assert bool(wide.reached(jnp.array([29.0, 0.0])))
    assert not bool(wide.reached(jnp.array([31.0, 0.0])))
    assert not np.isfinite(np.asarray(parse_goal(space, "angle=7±180").low)).any()
    for text, why in (("angle>=5", "has no order"), ("turn=1±1", "has no order"), ("turn=m4", "outside D_4")):
        with pytest.raises(InputError, match=why):
            parse_goal(space, text)
