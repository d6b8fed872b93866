"""Products: every law coordinate by coordinate, on random products of random blocks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saplan.algebra import Block, Categorical, Circle, Cyclic, Integer, Natural, Product, Real
from saplan.algebra.serialize import space_from_json, space_to_json
from saplan.errors import InputError

from .samples import CASES, assert_equal, deltas, elements, factors, product_of, stacked

PRODUCTS = 8
"""Random products per property; each is tried on `CASES` elements."""

on_products = settings(max_examples=PRODUCTS, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32 - 1)


def assert_same(space: Product, actual: jax.Array, expected: jax.Array) -> None:
    assert actual.shape == expected.shape == (CASES, space.size)
    assert actual.dtype == jnp.float32
    for k, block in enumerate(space.blocks):
        assert_equal(block, actual[:, k], expected[:, k])


@on_products
@given(blocks=factors(), seed=seeds)
def test_every_law_holds(blocks: list[Block], seed: int) -> None:
    space = product_of(blocks)
    rng = np.random.default_rng(seed)
    a, b = stacked(space, elements, rng, CASES), stacked(space, elements, rng, CASES)
    d, e = stacked(space, deltas, rng, CASES), stacked(space, deltas, rng, CASES)
    assert_same(space, space.compose(a, jnp.broadcast_to(space.identity, a.shape)), a)
    assert_same(space, space.compose(space.compose(a, d), e), space.compose(a, space.then(d, e)))
    assert_same(space, space.compose(a, space.difference(b, a)), b)
    assert_same(space, space.compose(b, space.inverse(space.difference(b, a))), a)
    assert_same(space, space.snap(space.snap(d)), space.snap(d))
    assert jnp.all(space.contains(a))
    assert jnp.all(space.close(space.compose(a, space.difference(b, a)), b))
    assert jnp.all(space.same_change(d, d))


@on_products
@given(blocks=factors(), seed=seeds)
def test_a_product_is_its_blocks_side_by_side(blocks: list[Block], seed: int) -> None:
    space = product_of(blocks)
    rng = np.random.default_rng(seed)
    a, d = stacked(space, elements, rng, CASES), stacked(space, deltas, rng, CASES)
    columns = list(enumerate(space.blocks))

    def beside(parts: list[jax.Array]) -> jax.Array:
        return jnp.concatenate([part.reshape(CASES, -1) for part in parts], axis=1)

    after = space.compose(a, d)
    assert jnp.array_equal(after, beside([block.compose(a[:, k], d[:, k]) for k, block in columns]))
    inside = jnp.stack([block.contains(after[:, k]) for k, block in columns])
    assert jnp.array_equal(space.contains(after), jnp.all(inside, axis=0))
    cells = space.bin(a)
    assert jnp.array_equal(cells, beside([block.bin(a[:, k]) for k, block in columns]))
    assert jnp.all((cells >= 0) & (cells < jnp.array(space.bins)))
    for whole, parts, width in (
        (space.encode(a), [block.encode(a[:, k]) for k, block in columns], space.width),
        (space.encode_delta(d), [block.encode_delta(d[:, k]) for k, block in columns], space.delta_width),
        (space.embed(a), [block.embed(a[:, k]) for k, block in columns], space.embed_width),
    ):
        assert whole.shape == (CASES, width)
        assert jnp.all(jnp.isfinite(whole))
        np.testing.assert_allclose(whole, beside(parts), atol=1e-5)
    decoded = space.decode(space.embed(a))
    for k, block in columns:
        if not (isinstance(block, Cyclic) and block.q > 2**22):
            assert_equal(block, decoded[:, k], a[:, k])
    y = as_float32(rng.normal(size=(CASES, space.embed_width)))
    start, losses = 0, jnp.zeros(CASES)
    for k, block in columns:
        losses += block.regression_loss(y[:, start : start + block.embed_width], a[:, k])
        start += block.embed_width
    np.testing.assert_allclose(space.regression_loss(y, a), losses, rtol=1e-4, atol=1e-4)


@on_products
@given(blocks=factors(), seed=seeds)
def test_text_comes_back(blocks: list[Block], seed: int) -> None:
    space = product_of(blocks)
    rng = np.random.default_rng(seed)
    rhos = np.array(stacked(space, elements, rng, 100))
    for k, block in enumerate(space.blocks):
        if isinstance(block, Real):
            rhos[:, k] = np.clip(rhos[:, k], np.ceil(block.low * 100) / 100, np.floor(block.high * 100) / 100)
    for rho in rhos:
        off = np.abs(np.array(space.parse(space.format(jnp.asarray(rho)))) - rho)
        off = np.minimum(off, [block.period - apart for block, apart in zip(space.blocks, off, strict=True)])
        assert np.all(off <= 0.00502 + 1e-6 * np.abs(rho))


def as_float32(values: np.ndarray) -> jax.Array:
    return jnp.asarray(values.astype(np.float32))


SPACE = Product.of(
    red=Natural(), green=Natural(), debt=Integer(), switch=Cyclic(3), m1=Real(), door=Categorical(("open", "shut"))
)


def test_one_element_and_a_batch_are_treated_alike() -> None:
    rng = np.random.default_rng(0)
    compose = jax.jit(SPACE.compose)
    a, d = stacked(SPACE, elements, rng, 24), stacked(SPACE, deltas, rng, 24)
    batch = compose(a, d)
    assert jnp.array_equal(compose(a.reshape(2, 3, 4, -1), d.reshape(2, 3, 4, -1)).reshape(24, -1), batch)
    assert jnp.array_equal(jax.jit(jax.vmap(SPACE.compose))(a, d), batch)
    assert jnp.array_equal(compose(a[0], d[0]), batch[0])
    assert jax.eval_shape(SPACE.encode, a[0]).shape == (SPACE.width,)


def test_changes_within_one_resolution_are_the_same() -> None:
    space = Product.of(m=Real(resolution=0.5), n=Natural())
    change = jnp.array([0.5, -1.0])
    assert space.same_change(change, jnp.array([0.3, -1.0]))
    assert space.same_change(change, jnp.array([0.7, -1.0]))
    assert not space.same_change(change, jnp.array([0.8, -1.0]))
    assert not space.same_change(change, jnp.array([0.5, -2.0]))


def test_changes_are_written_for_people() -> None:
    assert SPACE.format_delta(SPACE.identity) == "nothing"
    assert SPACE.format_delta(jnp.array([-1.0, 0, 2, 1, 0, 2])) == "red -1, debt +2, switch +1 mod 3, door open→shut"
    assert str(SPACE).startswith("red∈ℕ × green∈ℕ × debt∈ℤ × switch∈ℤ/3 × m1∈ℝ × door∈{open, shut}")


def test_a_space_is_a_static_value() -> None:
    twin = Product(SPACE.names, SPACE.blocks)
    assert twin == SPACE
    assert hash(twin) == hash(SPACE)
    assert len({twin, SPACE}) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("red=1", "missing attributes: green, debt, switch, m1, door"),
        ("rde=1", "did you mean 'red'?"),
        ("red", "write attributes as name=value"),
        ("red=1 red=2", "given twice"),
        ("red=-1", "negative"),
        ("red=1.5", "not a whole number"),
        ("red=16777217", "2^24"),
        ("debt=-16777218", "2^24"),
        ("red=many", "not a number"),
        ("m1=nan", "not a finite number"),
        ("m1=1e39", "not a finite number"),
        ("switch=3", "outside ℤ/3"),
        ("switch=-1", "outside ℤ/3"),
        ("door=shot", "did you mean 'shut'?"),
    ],
)
def test_bad_text_is_explained_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        SPACE.parse(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_attribute_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'switch'"):
        SPACE.index("swich")
    with pytest.raises(InputError, match="known: red, green"):
        SPACE.index("zzzzzz")


GRID = Product.of(x=Integer(), y=Integer(), light=Natural(), heading=Cyclic(4)).with_pose("x", "y", "heading")
PLANE = Product.of(x=Real(), heading=Circle(360.0, 30.0), y=Real()).with_pose("x", "y", "heading")


@pytest.mark.parametrize("space", [GRID, PLANE], ids=["grid", "plane"])
def test_poses_are_a_group(space: Product) -> None:
    rng = np.random.default_rng(0)
    a, b, d, e, f = (stacked(space, elements, rng, CASES) for _ in range(5))
    if space is GRID:
        a, b, d, e, f = (jnp.clip(x, -1000.0, 1000.0) for x in (a, b, d, e, f))
    else:
        d, e, f = (space.difference(x, a) for x in (d, e, f))
    nothing = jnp.broadcast_to(space.identity, a.shape)
    assert_same(space, space.compose(a, nothing), a)
    assert_same(space, space.compose(space.compose(a, d), e), space.compose(a, space.then(d, e)))
    assert_same(space, space.then(space.then(d, e), f), space.then(d, space.then(e, f)))
    assert_same(space, space.compose(a, space.difference(b, a)), b)
    assert_same(space, space.then(d, space.inverse(d)), nothing)
    assert_same(space, space.compose(b, space.inverse(space.difference(b, a))), a)
    assert not np.allclose(space.then(d, e), space.then(e, d), atol=1.0)


def test_one_step_forward_is_the_same_change_everywhere() -> None:
    places = jnp.array([[5.0, 5, 0, h] for h in range(4)])
    ahead = jnp.array([[6.0, 5, 0, 0], [5, 6, 0, 1], [4, 5, 0, 2], [5, 4, 0, 3]])
    changes = GRID.difference(ahead, places)
    assert changes.tolist() == [[1, 0, 0, 0]] * 4
    assert not np.any(np.signbit(np.asarray(changes)))  # keys of changes are compared
    assert GRID.format_delta(jnp.array([1.0, 0, 0, 0])) == "forward +1"
    assert GRID.format_delta(jnp.array([0.0, -2, 0, 3])) == "sideways -2, heading +3 mod 4"
    angle = np.deg2rad(77.0)
    moved = PLANE.difference(jnp.array([3 + np.cos(angle), 77.0, 4 + np.sin(angle)]), jnp.array([3.0, 77.0, 4.0]))
    np.testing.assert_allclose(moved, [1, 0, 0], atol=1e-5)
    assert str(GRID).endswith("x and y in the frame of heading")


def test_poses_come_back_from_json() -> None:
    for space in (GRID, PLANE):
        assert space_from_json(space_to_json(space)) == space
    rows = space_to_json(GRID)
    for turns in (["x"], "x", ["x", 3], ["x", "z"], ["x", "heading"]):
        with pytest.raises(InputError):
            space_from_json([*rows[:3], {**rows[3], "turns": turns}])


@pytest.mark.parametrize("names", [("x", "y", "light"), ("x", "x", "heading"), ("x", "light", "other")])
def test_only_poses_have_frames(names: tuple[str, str, str]) -> None:
    space = Product.of(x=Integer(), y=Integer(), light=Real(), heading=Cyclic(4), other=Cyclic(3))
    with pytest.raises(InputError):
        space.with_pose(*names)
