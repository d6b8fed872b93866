"""Fitting attributes to labelled pairs, and how well that went."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from saplan.errors import InputError
from saplan.perception.formats import LARGEST_FITTED, LARGEST_OUTPUTS, FittedFile, Labels
from saplan.perception.geometry import STRUCTURED, with_geometry
from saplan.perception.regressor import Regressor, RegressorSettings, fit, right
from saplan.storage.arrays import outline_of

BATCH = 1024
BINS = 10


def check_fit(labels: Labels, settings: RegressorSettings, geometry: str) -> None:
    """`InputError` if f̂ could not be saved, or its outputs not be held, before any of it is made."""
    space = with_geometry(labels.space, geometry)
    shape, vocabulary = labels.seen.shape[1:], labels.vocabulary
    make = lambda: Regressor.init(jax.random.key(0), shape, vocabulary, space, settings.hidden)  # noqa: E731
    outline_of(make, LARGEST_FITTED, "what these labels ask for")
    rows = max(len(labels.rho), settings.batch)
    if rows * space.embed_width > LARGEST_OUTPUTS:
        raise InputError(f"{rows} pairs × {space.embed_width} outputs are too many: choose another --geometry")
    pixels = settings.batch * math.prod(shape[:-1]) * settings.hidden if len(shape) == 3 else 0
    if pixels > LARGEST_OUTPUTS:
        raise InputError(
            f"pictures of {shape[0]} × {shape[1]} take too much memory: choose a smaller --batch or --hidden"
        )


def fit_labels(
    labels: Labels,
    settings: RegressorSettings,
    seed: int = 0,
    geometry: str = STRUCTURED,
    show: Callable[[int, float], None] = lambda step, loss: None,
    tests: int = 0,
) -> FittedFile:
    """f̂ from pairs, of which the last `tests` are kept to measure its errors."""
    count = len(labels.rho) - tests
    seen, rho = jnp.asarray(labels.seen[:count]), jnp.asarray(labels.rho[:count])
    space = with_geometry(labels.space, geometry)
    regressor = fit(jax.random.key(seed), seen, rho, labels.vocabulary, space, settings, show)
    about: dict[str, Any] = {"pairs": count, "seed": seed}
    if tests:
        about["test"] = examine(regressor, labels.seen[count:], labels.rho[count:])
    empty = np.zeros((0, labels.space.size), np.float32)
    return FittedFile(
        regressor, labels.seen.shape[1:], replace(labels, seen=labels.seen[:0], rho=empty), geometry, about
    )


def examine(regressor: Regressor, seen: np.ndarray, rho: Float[np.ndarray, "n K"]) -> dict[str, Any]:
    """Errors per coordinate in pairs that were not fitted, and whether the confidence can be trusted."""
    read, sure = read_all(regressor, seen)
    good = np.asarray(right(regressor.space, jnp.asarray(read), jnp.asarray(rho)))
    return {
        "pairs": len(rho),
        "error": dict(zip(regressor.space.names, (1 - good.mean(axis=0)).tolist(), strict=True)),
        "mean_error": float(1 - good.mean()),
        "any_error": float(1 - good.all(axis=1).mean()),
        "absolute_error": dict(zip(regressor.space.names, np.abs(read - rho).mean(axis=0).tolist(), strict=True)),
        "calibration_error": calibration_error(sure, good),
    }


def read_all(regressor: Regressor, seen: np.ndarray) -> tuple[Float[np.ndarray, "n K"], Float[np.ndarray, "n K"]]:
    """ρ̂ and confidence of many sights, in batches of one size."""
    ask = eqx.filter_jit(regressor)
    parts = []
    for start in range(0, len(seen), BATCH):
        part = seen[start : start + BATCH]
        padded = np.concatenate([part, np.repeat(part[:1], BATCH - len(part), axis=0)])
        parts.append([np.asarray(x)[: len(part)] for x in ask(jnp.asarray(padded))])
    return np.concatenate([one for one, _ in parts]), np.concatenate([other for _, other in parts])


def calibration_error(sure: Float[np.ndarray, "n K"], good: Bool[np.ndarray, "n K"]) -> float:
    """The mean distance between confidence and success, over bins of confidence that hold equally many readings."""
    order = np.argsort(sure, axis=None, kind="stable")
    bins = zip(np.array_split(sure.ravel()[order], BINS), np.array_split(good.ravel()[order], BINS), strict=True)
    return float(np.mean([abs(p.mean() - g.mean()) for p, g in bins if len(p)]))
