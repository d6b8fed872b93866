"""Random blocks, elements and changes, drawn without the help of the code under test."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Integer, Natural, Product, Real

ELEMENTS = 125
"""Elements per drawn array."""
EXAMPLES = 100
"""Arrays per property."""
CASES = 10_000
"""Least number of cases per property of a block, and per random product."""

WHOLE = 2**22
"""Three numbers of this size add up to less than 2^24."""


def labels(n: int) -> tuple[str, ...]:
    return tuple(f"label{i}" for i in range(n))


moduli = st.one_of(st.integers(1, 70), st.integers(1, 2**24), st.sampled_from([2**24, 2**24 - 1, 2**23 + 1]))
resolutions = st.floats(0.01, 100.0)


@st.composite
def reals(draw: st.DrawFn) -> Real:
    resolution = draw(resolutions)
    low = draw(st.one_of(st.just(-math.inf), st.floats(-1000, 1000)))
    start = low if math.isfinite(low) else draw(st.floats(-1000, 1000))
    high = draw(st.one_of(st.just(math.inf), st.floats(0.1, 1000).map(lambda extent: start + extent)))
    return Real(resolution, low, high)


@st.composite
def circles(draw: st.DrawFn) -> Circle:
    period = draw(st.one_of(st.sampled_from([1.0, 2 * math.pi, 360.0]), st.floats(0.1, 1000)))
    return Circle(period, period / draw(st.floats(2, 100)))


BLOCKS: dict[str, st.SearchStrategy[Block]] = {
    "natural": st.builds(Natural, bins=st.integers(1, 100)),
    "integer": st.builds(Integer, bins=st.integers(1, 100)),
    "cyclic": st.builds(Cyclic, moduli),
    "real": reals(),
    "circle": circles(),
    # Few sizes: each has its own shapes, for which every program is compiled.
    "dihedral": st.builds(Dihedral, st.sampled_from((1, 2, 3, 4, 6, 13, 64))),
    # 1/41 is one of the reciprocals that round badly.
    "categorical": st.sampled_from([Categorical(labels(n)) for n in (1, 2, 5, 41)]),
}

any_block = st.one_of(*BLOCKS.values())


@st.composite
def factors(draw: st.DrawFn) -> list[Block]:
    """The blocks of a product, from a handful: equal neighbours, which a product computes together, are likely."""
    palette = draw(st.lists(any_block, min_size=1, max_size=4))
    return draw(st.lists(st.sampled_from(palette), min_size=1, max_size=8))


def product_of(blocks: list[Block]) -> Product:
    return Product(tuple(f"x{k}" for k in range(len(blocks))), tuple(blocks))


def as_array(values: np.ndarray) -> jnp.ndarray:
    return jnp.asarray(values.astype(np.float32))


def _whole(rng: np.random.Generator, n: int) -> np.ndarray:
    """Whole numbers of all sizes, so that small and large ones meet."""
    scale = 2.0 ** rng.integers(0, int(math.log2(WHOLE)) + 1, n)
    return np.floor(rng.random(n) * (scale + 1))


def elements(block: Block, rng: np.random.Generator, n: int) -> jnp.ndarray:
    """Elements of the block's space."""
    match block:
        case Natural():
            values = _whole(rng, n)
        case Integer():
            values = _whole(rng, n) * rng.choice([-1, 1], n)
        case Cyclic(q=q):
            values = np.where(rng.random(n) < 0.2, rng.choice([0, q // 2, q - 1], n), rng.integers(0, q, n))
        case Real(low=low, high=high):
            left = low if math.isfinite(low) else min(high, 1000.0) - 2000.0
            right = high if math.isfinite(high) else left + 2000.0
            values = np.clip(rng.uniform(left, right, n).astype(np.float32), np.float32(low), np.float32(high))
        case Circle(period=period):
            last = np.nextafter(np.float32(period), np.float32(0))
            values = np.where(rng.random(n) < 0.1, rng.choice([0, period / 2, last], n), rng.uniform(0, period, n))
            values = np.minimum(values.astype(np.float32), last)
        case Dihedral(n=corners):
            values = rng.integers(0, 2 * corners, n)
        case Categorical(labels=names):
            values = rng.integers(0, len(names), n)
        case _:
            raise AssertionError(f"no samples for {block}")
    return as_array(np.asarray(values))


def deltas(block: Block, rng: np.random.Generator, n: int) -> jnp.ndarray:
    """Changes of the block, whether or not they keep to the space."""
    match block:
        case Natural() | Integer():
            return as_array(_whole(rng, n) * rng.choice([-1, 0, 1], n))
        case Cyclic() | Dihedral():
            return elements(block, rng, n)
        case Circle(period=period):
            below = np.nextafter(np.float32(period / 2), np.float32(0))
            return as_array(np.minimum((rng.uniform(-0.5, 0.5, n) * period).astype(np.float32), below))
        case Real():
            return as_array(rng.normal(0, rng.choice([0.1, 1, 100]), n) * block.resolution)
        case Categorical(labels=names):
            return as_array(rng.integers(-1, len(names) ** 2 + 1, n))
        case _:
            raise AssertionError(f"no samples for {block}")


def stacked(space: Product, sample, rng: np.random.Generator, n: int) -> jnp.ndarray:
    return jnp.stack([sample(block, rng, n) for block in space.blocks], axis=-1)


def assert_equal(block: Block, actual: jax.Array, expected: jax.Array) -> None:
    """Exactly, but up to rounding on ℝ, where numbers here are below 10^5, and on S¹, where it may go across zero."""
    assert actual.dtype == expected.dtype == jnp.float32
    if isinstance(block, Circle):
        apart = np.abs(np.asarray(actual, float) - np.asarray(expected, float))
        np.testing.assert_array_less(np.minimum(apart, np.abs(block.period - apart)), 1e-5 * block.period)
    elif isinstance(block, Real):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-2 * min(1.0, block.resolution) + 1e-3)
    else:
        np.testing.assert_array_equal(actual, expected)
