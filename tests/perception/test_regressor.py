"""f̂ on problems with known answers, in every geometry and on every kind of observation."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.algebra import Categorical, Cyclic, Integer, Natural, Product, Real
from saplan.errors import InputError
from saplan.perception.fit import fit
from saplan.perception.geometry import GEOMETRIES, STRUCTURED, with_geometry
from saplan.perception.regressor import NEAR, RegressorSettings, correct

SPACE = Product.of(
    count=Natural(), whole=Integer(), dial=Cyclic(5), amount=Real(low=0.0, high=8.0), place=Categorical(("a", "b", "c"))
)
QUICK = RegressorSettings(hidden=16, steps=1500, batch=64)


def elements(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    columns = (
        rng.integers(0, 6, n),
        rng.integers(-4, 5, n),
        rng.integers(0, 5, n),
        8 * rng.random(n),
        rng.integers(0, 3, n),
    )
    return np.stack(columns, axis=1).astype(np.float32)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_every_geometry_decodes_what_it_embeds(geometry: str) -> None:
    space, rho = with_geometry(SPACE, geometry), jnp.asarray(elements(200))
    back = space.decode(space.embed(rho))
    assert bool(jnp.all(correct(SPACE, back, rho)))
    if geometry != "one-hot":
        assert np.allclose(back, rho, atol=1e-5)
        assert float(jnp.max(space.regression_loss(space.embed(rho), rho))) < (1.1 if geometry == STRUCTURED else 1e-9)
    assert space.names == SPACE.names


def test_an_unknown_geometry_is_refused() -> None:
    with pytest.raises(InputError, match="unknown geometry"):
        with_geometry(SPACE, "round")


def vectors(rho: np.ndarray) -> np.ndarray:
    """Numbers that determine ρ, none of them its own."""
    angle = 2 * np.pi * rho[:, 2] / 5
    label = np.eye(3)[rho[:, 4].astype(int)]
    parts = [3 - 2 * rho[:, 0], rho[:, 1] / 7, np.cos(angle + 1), np.sin(angle + 1), rho[:, 3] * 100]
    mixed = label @ np.array([[1.0, 2], [0, -1], [3, 0]])
    numbers: np.ndarray = np.c_[np.stack(parts, axis=1), mixed].astype(np.float32)
    return numbers


def test_vectors() -> None:
    rho, others = elements(2000), elements(500, seed=1)
    regressor = fit(jax.random.key(0), jnp.asarray(vectors(rho)), jnp.asarray(rho), 0, SPACE, QUICK)
    read, sure = regressor(jnp.asarray(vectors(others)))
    errors = 1 - np.asarray(correct(SPACE, read, jnp.asarray(others))).mean(axis=0)
    assert errors.max() < 0.03, errors
    assert sure.shape == others.shape
    assert float(jnp.min(sure)) >= 0
    assert float(jnp.max(sure)) <= 1


def bags(counts: np.ndarray, rng: np.random.Generator, words: int = 10) -> np.ndarray:
    """Every thing is one of several words of its kind; kinds have words of their own."""
    rows = np.zeros((len(counts), 16), np.int16)
    for row, of in zip(rows, counts.astype(int), strict=True):
        found = [1 + kind * words + rng.integers(words) for kind, n in enumerate(of) for _ in range(n)]
        row[: len(found)] = found
    return rows


def test_words_are_counted_and_strange_ones_doubted() -> None:
    space, rng = Product.of(red=Natural(), blue=Natural()), np.random.default_rng(0)
    rho = rng.integers(0, 6, (1500, 2)).astype(np.float32)
    seen = bags(rho, rng)
    seen[seen == 20] = 19  # a word that labels never show
    regressor = fit(jax.random.key(0), jnp.asarray(seen), jnp.asarray(rho), 21, space, QUICK)
    others = rng.integers(0, 6, (500, 2)).astype(np.float32)
    shown = bags(others, rng)
    strange = (shown == 20).any(axis=1)
    read, sure = (np.asarray(x) for x in regressor(jnp.asarray(shown)))
    good = read == others
    assert good[~strange].mean() > 0.999
    assert strange.sum() > 50
    assert good[strange, 1].mean() < 0.5, "a word that was never seen cannot be counted"
    assert sure[~strange].mean() > 0.98
    assert sure[strange, 1].max() < 0.9


@pytest.mark.usefixtures("optimised")
def test_pictures_are_counted() -> None:
    space, rng = Product.of(red=Natural(), level=Real(low=0.0, high=4.0)), np.random.default_rng(0)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        rho = np.c_[rng.integers(0, 5, n), 4 * rng.random(n)].astype(np.float32)
        pictures = np.zeros((n, 8, 8, 3), np.uint8)
        for picture, (red, level) in zip(pictures, rho, strict=True):
            for place in rng.choice(48, int(red), replace=False):
                picture[2 + place // 8, place % 8] = 250, 30, 30
            picture[0, :4] = (np.clip(level - np.arange(4), 0, 1) * 255)[:, None]
        return pictures, rho

    seen, rho = draw(2000)
    regressor = fit(jax.random.key(0), jnp.asarray(seen), jnp.asarray(rho), 0, space, replace(QUICK, steps=500, cell=1))
    shown, others = draw(400)
    read, _ = regressor(jnp.asarray(shown))
    assert float(jnp.mean(read[:, 0] == others[:, 0])) > 0.95
    assert float(jnp.mean(jnp.abs(read[:, 1] - others[:, 1]))) < NEAR * space.grain[1]


@pytest.mark.usefixtures("optimised")
def test_the_same_thing_elsewhere_is_another_attribute() -> None:
    """Sums over places alone could not tell the map from the shelf."""
    space, rng = Product.of(above=Natural(), below=Natural()), np.random.default_rng(0)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        pictures = np.where(rng.random((n, 6, 6, 1)) < 0.2, np.uint8(250), np.uint8(20))
        things = pictures[..., 0] > 100
        rho = np.stack([things[:, :4].sum(axis=(1, 2)), things[:, 4:].sum(axis=(1, 2))], axis=1).astype(np.float32)
        return np.repeat(np.repeat(pictures, 2, axis=1), 2, axis=2), rho

    seen, rho = draw(2000)
    settings = replace(QUICK, steps=1000, cell=2)
    regressor = fit(jax.random.key(0), jnp.asarray(seen), jnp.asarray(rho), 0, space, settings)
    shown, others = draw(400)
    assert float(jnp.mean(regressor(jnp.asarray(shown))[0] == others)) > 0.95


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden", 0),
        ("steps", 0),
        ("batch", -1),
        ("rate", 0.0),
        ("rate", float("nan")),
        ("held_back", 1.0),
        ("cell", 0),
    ],
)
def test_bad_settings_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        RegressorSettings(**{name: value})
