"""The law of `saplan.algebra.base`, for every block, on thousands of random cases."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Integer, Natural, Real
from saplan.algebra.base import EXACT
from saplan.algebra.real import Continuous
from saplan.algebra.rows import NOWHERE

from .samples import BLOCKS, CASES, ELEMENTS, EXAMPLES, assert_equal, deltas, elements, labels

Law = Callable[[Block, np.random.Generator, int], None]


def identity_changes_nothing(block: Block, rng: np.random.Generator, n: int) -> None:
    a, d = elements(block, rng, n), deltas(block, rng, n)
    nothing = jnp.full(n, block.identity, jnp.float32)
    assert jnp.array_equal(block.compose(a, nothing), a)
    assert jnp.array_equal(block.then(d, nothing), d)
    assert jnp.array_equal(block.then(nothing, d), d)
    assert jnp.array_equal(block.difference(a, a), nothing)


def composition_is_associative(block: Block, rng: np.random.Generator, n: int) -> None:
    a, d, e, f = elements(block, rng, n), deltas(block, rng, n), deltas(block, rng, n), deltas(block, rng, n)
    if isinstance(block, Categorical):
        # Random pairs seldom meet: let half of them start where the last one ends.
        b, c = elements(block, rng, n), elements(block, rng, n)
        meets = rng.random(n) < 0.5
        d, e = jnp.where(meets, block.difference(b, a), d), jnp.where(meets, block.difference(c, b), e)
    assert_equal(block, block.compose(block.compose(a, d), e), block.compose(a, block.then(d, e)))
    assert_equal(block, block.then(block.then(d, e), f), block.then(d, block.then(e, f)))


def difference_leads_there(block: Block, rng: np.random.Generator, n: int) -> None:
    a, b = elements(block, rng, n), elements(block, rng, n)
    assert_equal(block, block.compose(a, block.difference(b, a)), b)
    assert jnp.all(block.close(block.compose(a, block.difference(b, a)), b))


def inverse_undoes(block: Block, rng: np.random.Generator, n: int) -> None:
    a, b = elements(block, rng, n), elements(block, rng, n)
    there, back = block.difference(b, a), block.inverse(block.difference(b, a))
    assert_equal(block, block.compose(block.compose(a, there), back), a)
    d = deltas(block, rng, n)
    assert_equal(block, block.inverse(block.inverse(d)), d)
    if not isinstance(block, Categorical):
        assert_equal(block, block.then(d, block.inverse(d)), jnp.full(n, block.identity, jnp.float32))


def contains_judges_compositions(block: Block, rng: np.random.Generator, n: int) -> None:
    a, d = elements(block, rng, n), deltas(block, rng, n)
    assert jnp.all(block.contains(a))
    after = np.asarray(block.compose(a, d), np.float64)
    expected = {
        Natural: (after >= 0) & (after <= 2**24),
        Integer: np.abs(after) <= 2**24,
        Cyclic: np.ones(n, bool),
        Circle: np.ones(n, bool),
        Dihedral: np.ones(n, bool),
        Categorical: after != NOWHERE,
        Real: (after >= np.float32(getattr(block, "low", 0))) & (after <= np.float32(getattr(block, "high", 0))),
    }[type(block)]
    assert np.array_equal(block.contains(block.compose(a, d)), expected)
    strange = jnp.array([np.nan, np.inf, -np.inf], jnp.float32)
    assert not jnp.any(block.contains(strange))
    if not isinstance(block, Continuous):
        assert not jnp.any(block.contains(jnp.minimum(a, 2.0**20) + 0.5))


def features_have_their_width(block: Block, rng: np.random.Generator, n: int) -> None:
    a, d = elements(block, rng, n), deltas(block, rng, n)
    for part, width in (
        (block.encode(a), block.width),
        (block.encode_delta(d), block.delta_width),
        (block.embed(a), block.embed_width),
    ):
        assert part.shape == (n, width)
        assert part.dtype == jnp.float32
        assert jnp.all(jnp.isfinite(part))
    assert jnp.max(jnp.abs(block.encode(a))) < 10
    assert jnp.max(jnp.abs(block.encode_delta(d))) < 10


def decode_inverts_embed(block: Block, rng: np.random.Generator, n: int) -> None:
    a = elements(block, rng, n)
    decoded = block.decode(block.embed(a))
    if isinstance(block, Cyclic) and block.q > 2**22:
        # float32 points on the circle lie closer than that; the nearest few positions are all one can ask.
        apart = np.abs(np.asarray(decoded, np.float64) - np.asarray(a, np.float64))
        assert np.all(np.minimum(apart, block.q - apart) <= 3)
        assert jnp.all(block.contains(decoded))
    elif isinstance(block, Circle):
        assert_equal(block, decoded, a)
        assert jnp.all(block.contains(decoded))
    else:
        np.testing.assert_array_equal(decoded, a)


def bins_are_in_range(block: Block, rng: np.random.Generator, n: int) -> None:
    a = jnp.sort(elements(block, rng, n))
    cells = block.bin(a)
    assert jnp.issubdtype(cells.dtype, jnp.integer)
    assert jnp.all((cells >= 0) & (cells < block.bins))
    assert jnp.all(jnp.diff(cells) >= 0)
    if block.ordered:
        beyond = block.bin(jnp.array([-(2.0**24), -1e30, 2.0**24, 1e30], jnp.float32))
        assert jnp.array_equal(beyond, jnp.array([0, 0, block.bins - 1, block.bins - 1]))


def snap_is_idempotent(block: Block, rng: np.random.Generator, n: int) -> None:
    d = deltas(block, rng, n)
    snapped = block.snap(d)
    assert snapped.dtype == jnp.float32
    assert jnp.array_equal(block.snap(snapped), snapped)
    assert block.snap(jnp.float32(block.identity)) == block.identity
    if isinstance(block, Continuous):
        assert jnp.all(jnp.abs(snapped - d) <= 0.5001 * block.resolution)
    else:
        assert jnp.array_equal(snapped, d)


def close_is_equality_up_to_tolerance(block: Block, rng: np.random.Generator, n: int) -> None:
    a, b = elements(block, rng, n), elements(block, rng, n)
    assert jnp.all(block.close(a, a))
    assert jnp.array_equal(block.close(a, b), block.close(b, a))
    if isinstance(block, Continuous):
        shift = as_float32(rng.uniform(-0.99, 0.99, n) * block.resolution)
        gap = np.abs(np.asarray(a + shift, np.float64) - np.asarray(a, np.float64))
        clear = np.abs(gap - block.resolution / 2) > 1e-3 * (1 + block.resolution)
        near = block.close(a, block.compose(a, shift))
        assert np.array_equal(np.asarray(near)[clear], (gap < block.resolution / 2)[clear])
    else:
        assert block.tolerance == 0
        assert jnp.array_equal(block.close(a, b), a == b)


def text_comes_back(block: Block, rng: np.random.Generator, n: int) -> None:
    for x in elements(block, rng, n).tolist():
        if isinstance(block, Real):
            # Two decimals can fall just outside a bound.
            x = min(max(x, np.ceil(block.low * 100) / 100), np.floor(block.high * 100) / 100)
            assert block.parse(block.format(x)) == pytest.approx(x, abs=0.00501)
        elif isinstance(block, Circle):
            off = abs(block.parse(block.format(x)) - x)
            assert min(off, block.period - off) <= 0.00501
        else:
            assert block.parse(block.format(x)) == x
    assert all(isinstance(block.format_delta(d), str) for d in deltas(block, rng, n).tolist())


def the_true_element_has_the_least_loss(block: Block, rng: np.random.Generator, n: int) -> None:
    if isinstance(block, Cyclic):
        block = Cyclic(min(block.q, 1000))  # so that neighbours differ in float32
    a, b = elements(block, rng, n), elements(block, rng, n)
    scale = 30.0 if isinstance(block, Categorical | Dihedral) else 1.0
    right, wrong = block.regression_loss(scale * block.embed(a), a), block.regression_loss(scale * block.embed(b), a)
    assert right.shape == (n,)
    assert jnp.all(jnp.abs(right) < 1e-5)
    near = jnp.abs(a - b) < 1e-2 * min(1.0, block.period)
    assert jnp.all((wrong > 1e-6) | block.close(a, b) | near)
    slope = jax.grad(lambda y: jnp.sum(block.regression_loss(y, a)))(jnp.zeros((n, block.embed_width)))
    assert jnp.all(jnp.isfinite(slope))


def as_float32(values: np.ndarray) -> jax.Array:
    return jnp.asarray(values.astype(np.float32))


LAWS: list[Law] = [
    identity_changes_nothing,
    composition_is_associative,
    difference_leads_there,
    inverse_undoes,
    contains_judges_compositions,
    features_have_their_width,
    decode_inverts_embed,
    bins_are_in_range,
    snap_is_idempotent,
    close_is_equality_up_to_tolerance,
    text_comes_back,
    the_true_element_has_the_least_loss,
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", BLOCKS)
def test_law(name: str, law: Law) -> None:
    cases = 0

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(block=BLOCKS[name], seed=st.integers(0, 2**32 - 1))
    def check(block: Block, seed: int) -> None:
        nonlocal cases
        law(block, np.random.default_rng(seed), ELEMENTS)
        cases += ELEMENTS

    check()
    assert cases >= CASES


COMPILED = [
    Natural(),
    Integer(),
    *(Cyclic(q) for q in (1, 3, 41, 2**24)),
    Real(0.3, -2.0, 7.0),
    Circle(2 * np.pi, 0.3),
    Dihedral(41),
    *(Categorical(labels(n)) for n in (3, 41, 47, 4096)),
]


@pytest.mark.parametrize("block", COMPILED, ids=lambda block: f"{type(block).__name__}-{block.symbol[:12]}")
def test_compiled_blocks_say_the_same(block: Block) -> None:
    """XLA rewrites arithmetic (a division by a constant becomes a product): results must not depend on it."""
    rng = np.random.default_rng(0)
    a, b = elements(block, rng, CASES), elements(block, rng, CASES)
    d, e = deltas(block, rng, CASES), deltas(block, rng, CASES)
    for eager, operands in (
        (block.compose, (a, d)),
        (block.difference, (b, a)),
        (block.then, (d, e)),
        (block.inverse, (d,)),
        (block.contains, (a,)),
        (block.bin, (a,)),
    ):
        plain, compiled = eager(*operands), jax.jit(eager)(*operands)
        np.testing.assert_allclose(
            compiled, plain, atol=1e-5 if isinstance(block, Continuous) else 0, err_msg=str(eager)
        )
    there = jax.jit(lambda b, a: block.compose(a, block.difference(b, a)))(b, a)
    assert_equal(block, there, b)


@pytest.mark.parametrize("block", [Natural(), Integer()], ids=["natural", "integer"])
def test_decoding_rounds_to_the_nearest(block: Block) -> None:
    rng = np.random.default_rng(1)
    a = jnp.clip(elements(block, rng, CASES), -(2.0**18), 2.0**18)
    noise = as_float32(rng.uniform(-0.49, 0.49, (CASES, 1)))
    np.testing.assert_array_equal(block.decode(block.embed(a) + noise), a)


def test_decoding_a_count_never_goes_below_zero() -> None:
    assert Natural().decode(jnp.array([[-3.7]]))[0] == 0


@pytest.mark.parametrize("q", [1, 2, 3, 12, 1000])
def test_decoding_a_dial_takes_the_nearest_position(q: int) -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(0, q, CASES)
    angle = 2 * np.pi * (a + rng.uniform(-0.49, 0.49, CASES)) / q
    length = rng.uniform(0.1, 10, CASES)
    point = np.stack([np.cos(angle), np.sin(angle)], axis=-1) * length[:, None]
    np.testing.assert_array_equal(Cyclic(q).decode(as_float32(point)), a)


@pytest.mark.parametrize("q", [1, 2, 3, 41, 2**23 + 1, 2**24 - 1, 2**24])
def test_dial_agrees_with_whole_numbers_modulo_q(q: int) -> None:
    rng, block = np.random.default_rng(3), Cyclic(q)
    a, d = elements(block, rng, CASES), deltas(block, rng, CASES)
    x, y = np.asarray(a, np.int64), np.asarray(d, np.int64)
    assert np.array_equal(block.compose(a, d), (x + y) % q)
    assert np.array_equal(block.difference(a, d), (x - y) % q)
    assert np.array_equal(block.inverse(d), -y % q)


@pytest.mark.parametrize("n", [1, 2, 3, 41, 4096])
def test_categories_agree_with_plain_pairs(n: int) -> None:
    rng, block = np.random.default_rng(4), Categorical(labels(n))
    start, end = rng.integers(0, n, CASES), rng.integers(0, n, CASES)
    where = np.where(rng.random(CASES) < 0.5, start, rng.integers(0, n, CASES))
    d = block.pair(as_float32(start), as_float32(end))
    assert jnp.all((d >= 1) & (d <= n * n))
    assert np.array_equal(block.compose(as_float32(where), d), np.where(where == start, end, NOWHERE))


@pytest.mark.parametrize("block", [Natural(), Integer()], ids=["natural", "integer"])
def test_counts_are_exact_up_to_the_limit(block: Block) -> None:
    top = jnp.float32(EXACT)
    one, two = jnp.float32(1), jnp.float32(2)
    assert block.compose(top - one, one) == 2**24
    assert block.compose(top, -one) == 2**24 - 1
    assert block.difference(top, one) == 2**24 - 1
    assert block.contains(top)
    assert not block.contains(block.compose(top, two))
    assert block.parse(str(2**24)) == 2**24
    assert block.format(2.0**24) == str(2**24)


def test_a_count_below_zero_is_outside() -> None:
    below = Natural().compose(jnp.float32(2), jnp.float32(-3))
    assert below == -1
    assert not Natural().contains(below)
    assert Integer().contains(below)
    assert not Integer().contains(jnp.float32(-(2**24) - 2))


def test_the_circle_takes_the_shortest_way_round() -> None:
    block = Circle(360.0, 30.0)
    a, b = jnp.array([350.0, 10.0, 0.0, 90.0]), jnp.array([10.0, 350.0, 180.0, 300.0])
    np.testing.assert_allclose(block.difference(b, a), [20, -20, -180, -150])
    assert block.close(jnp.float32(352), jnp.float32(6))
    assert not block.close(jnp.float32(352), jnp.float32(8))
    assert block.parse("-30") == block.parse("330") == block.parse("690") == 330
    assert [block.format(x) for x in (0.0, 359.99, 359.998)] == ["0.00", "359.99", "0.00"]


def test_the_circle_is_regressed_as_cosine_and_sine_in_this_order() -> None:
    """The appendix swaps the two between output and target; its loss would be least at a mirrored angle."""
    block, angle = Circle(360.0, 30.0), jnp.arange(0.0, 360.0, 7.0)
    output = jnp.stack([jnp.cos(jnp.deg2rad(angle)), jnp.sin(jnp.deg2rad(angle))], axis=-1)
    np.testing.assert_allclose(block.decode(3 * output), angle, atol=1e-3)
    losses = jax.vmap(lambda a: block.regression_loss(output, jnp.full(len(angle), a)))(angle)
    assert jnp.array_equal(jnp.argmin(losses, axis=0), jnp.arange(len(angle)))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 41])
def test_the_dihedral_group_agrees_with_matrices(n: int) -> None:
    """A change acts on the picture as one sees it: its matrix multiplies from the left."""
    turn, mirror = 2 * np.pi / n, np.diag([-1.0, 1.0])
    rotations = [
        np.array([[np.cos(k * turn), -np.sin(k * turn)], [np.sin(k * turn), np.cos(k * turn)]]) for k in range(n)
    ]
    matrices = np.array([*rotations, *(rotation @ mirror for rotation in rotations)])
    block = Dihedral(n)
    a, d = (jnp.asarray(codes.ravel().astype(np.float32)) for codes in np.indices((2 * n, 2 * n)))
    after = matrices[np.asarray(block.compose(a, d), int)]
    np.testing.assert_allclose(after, matrices[np.asarray(d, int)] @ matrices[np.asarray(a, int)], atol=1e-9)


def test_the_order_of_changes_matters_in_the_dihedral_group() -> None:
    block, turn, mirror = Dihedral(4), jnp.float32(1), jnp.float32(4)
    assert block.then(turn, mirror) != block.then(mirror, turn)
    # From the wrong side, b·a⁻¹ instead of a⁻¹·b, the difference leads elsewhere.
    a, b = turn, mirror
    assert block.compose(a, block.difference(b, a)) == b
    assert block.compose(a, block.then(b, block.inverse(a))) != b
    assert [block.format(x) for x in (0.0, 3.0, 4.0, 6.0)] == ["0", "3", "m0", "m2"]
    assert block.format_delta(5.0) == "mirrored and turned by 1"
