"""Fitting f̂ to labelled pairs (observation, ρ), and measuring its errors."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from saplan.algebra import Product
from saplan.errors import InputError, NotFiniteError
from saplan.perception.fitted import LARGEST_FITTED, FittedFile
from saplan.perception.geometry import STRUCTURED, with_geometry
from saplan.perception.labels import LARGEST_OUTPUTS, Labels
from saplan.perception.regressor import Observations, Regressor, RegressorSettings, correct
from saplan.rl.networks import Linear
from saplan.rl.optim import ADAM, descend
from saplan.storage.arrays import outline_of

CHUNK = 250
"""Gradient steps per compiled program."""
DOUBT_PAIRS, DOUBT_STEPS, DOUBT_RATE, DOUBT_DECAY = 20_000, 1000, 0.03, 1e-3
"""Pairs, steps, learning rate and weight decay for the confidence."""
BATCH = 1024
BINS = 10
FitProgress = Callable[[int, float], None]
"""Called with the steps done and the loss."""


def check_fit(labels: Labels, settings: RegressorSettings, geometry: str) -> None:
    """`InputError` if f̂ would be too large to save, or its outputs too large for memory; nothing is allocated."""
    space = with_geometry(labels.source.space, geometry)
    shape, vocabulary = labels.observations.shape[1:], labels.source.vocabulary
    make = lambda: Regressor.init(jax.random.key(0), shape, vocabulary, space, settings.hidden, settings.cell)  # noqa: E731
    outline_of(make, LARGEST_FITTED, "a regressor for these labels")
    rows = max(len(labels.rho), settings.batch)
    if rows * space.embed_width > LARGEST_OUTPUTS:
        raise InputError(f"{rows} pairs × {space.embed_width} outputs are too many: choose another --geometry")
    cells = math.prod(-(-side // settings.cell) for side in shape[:-1])
    pixels = settings.batch * cells * settings.hidden if len(shape) == 3 else 0
    if pixels > LARGEST_OUTPUTS:
        raise InputError(
            f"pictures of {shape[0]} × {shape[1]} take too much memory: choose a smaller --batch or --hidden"
        )


def fit_labels(
    labels: Labels,
    settings: RegressorSettings,
    seed: int = 0,
    geometry: str = STRUCTURED,
    progress: FitProgress = lambda step, loss: None,
    tests: int = 0,
) -> FittedFile:
    """f̂ from pairs, the last `tests` of which only measure its errors."""
    count = len(labels.rho) - tests
    space = with_geometry(labels.source.space, geometry)
    pairs = jnp.asarray(labels.observations[:count]), jnp.asarray(labels.rho[:count])
    regressor = fit(jax.random.key(seed), *pairs, labels.source.vocabulary, space, settings, progress)
    about: dict[str, Any] = {"pairs": count, "seed": seed}
    if tests:
        about["test"] = measure_errors(regressor, labels.observations[count:], labels.rho[count:])
    return FittedFile(regressor, labels.observations.shape[1:], labels.source, geometry, about)


def fit(
    key: PRNGKeyArray,
    observations: Observations,
    rho: Float[Array, "n K"],
    vocabulary: int,
    space: Product,
    settings: RegressorSettings,
    progress: FitProgress = lambda step, loss: None,
) -> Regressor:
    """f̂ from labelled pairs; the confidence is fitted on pairs that nothing else is fitted on."""
    init_key, part_key, fit_key = jax.random.split(key, 3)
    order = jax.random.permutation(part_key, len(rho))
    kept = max(1, round(len(rho) * settings.held_back))
    held_back, used = order[:kept], order[kept:] if kept < len(rho) else order
    regressor = Regressor.init(init_key, observations.shape[1:], vocabulary, space, settings.hidden, settings.cell)
    regressor = _with_scale(regressor, observations, rho, used)
    chunks = -(-settings.steps // CHUNK)
    rates = optax.cosine_decay_schedule(settings.rate, chunks * CHUNK)(jnp.arange(chunks * CHUNK))
    moments = ADAM.init(eqx.filter(regressor, eqx.is_inexact_array))
    for k, (chunk_key, chunk_rates) in enumerate(
        zip(jax.random.split(fit_key, chunks), rates.reshape(chunks, CHUNK), strict=True)
    ):
        # The linear part comes first, the hidden layer second: otherwise it would memorise a small set of labels.
        deep = jnp.float32(k >= chunks // 2)
        regressor, moments, loss = _descend_chunk(
            regressor, moments, chunk_rates, settings.batch, chunk_key, used, observations, rho, deep
        )
        if not np.isfinite(loss):
            raise NotFiniteError(f"the loss is not finite after {(k + 1) * CHUNK} steps: try a smaller --rate")
        progress(min((k + 1) * CHUNK, settings.steps), float(loss))
    fitted = _with_doubt(regressor, observations[held_back], rho[held_back])
    if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(eqx.filter(fitted, eqx.is_inexact_array))):
        raise NotFiniteError("a fitted number is not finite: try a smaller --rate")
    return fitted


def _with_scale(
    regressor: Regressor, observations: Observations, rho: Float[Array, "n K"], used: Int[Array, "m"]
) -> Regressor:
    """The regressor with the mean and the spread of its labels and observations."""
    target = regressor.space.embed(rho[used])
    spread = jnp.std(target, axis=0)
    return replace(
        regressor,
        encoder=regressor.encoder.fit_scale(observations, used),
        mean=jnp.mean(target, axis=0),
        scale=jnp.where(spread > 1e-6, spread, 1.0),
    )


@eqx.filter_jit
def _descend_chunk(
    regressor: Regressor,
    moments: optax.OptState,
    rates: Float[Array, "steps"],
    batch: int,
    key: PRNGKeyArray,
    used: Int[Array, "m"],
    observations: Observations,
    rho: Float[Array, "n K"],
    deep: Float[Array, ""],
) -> tuple[Regressor, optax.OptState, Float[Array, ""]]:
    """A gradient step on random pairs per learning rate, and the mean loss."""
    learnt, rest = eqx.partition(regressor, eqx.is_inexact_array)

    def loss(learnt: Regressor, rows: Int[Array, "batch"]) -> Float[Array, ""]:
        whole: Regressor = eqx.combine(learnt, rest)
        return whole.loss(observations[rows], rho[rows], deep)

    def step(carry: tuple[Any, Any], given: tuple[Array, Array]) -> tuple[tuple[Any, Any], Array]:
        rate, key = given
        rows = used[jax.random.randint(key, (batch,), 0, len(used))]
        learnt, moments, losses = descend(loss, *carry, rate, rows[None])
        return (learnt, moments), losses[0]

    (learnt, moments), losses = jax.lax.scan(step, (learnt, moments), (rates, jax.random.split(key, len(rates))))
    return eqx.combine(learnt, rest), moments, jnp.mean(losses)


@eqx.filter_jit
def _with_doubt(regressor: Regressor, observations: Observations, rho: Float[Array, "n K"]) -> Regressor:
    """The regressor with a fitted confidence: cross-entropy of "this coordinate is read wrongly"."""
    observations, rho = observations[:DOUBT_PAIRS], rho[:DOUBT_PAIRS]
    y, features, novelty = jax.lax.map(
        lambda one: jax.tree.map(lambda x: x[0], regressor.predict(one[None])), observations, batch_size=256
    )
    wrong = ~correct(regressor.space, regressor.space.decode(y), rho)

    def loss(doubt: Linear, _: Array) -> Float[Array, ""]:
        logits = eqx.tree_at(lambda r: r.doubt, regressor, doubt).error_logits(y, features, novelty)
        decay = DOUBT_DECAY * jnp.sum(doubt.weight[2:] ** 2)
        return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, wrong)) + decay

    # A coordinate without errors is only as certain as the number of its readings allows.
    base = jnp.log((jnp.sum(wrong, axis=0) + 0.5) / (len(wrong) + 0.5))
    start = eqx.tree_at(lambda d: d.bias, regressor.doubt, base)
    doubt, _, _ = descend(loss, start, ADAM.init(start), DOUBT_RATE, jnp.arange(DOUBT_STEPS))
    return replace(regressor, doubt=doubt)


def measure_errors(regressor: Regressor, observations: np.ndarray, rho: Float[np.ndarray, "n K"]) -> dict[str, Any]:
    """Errors per coordinate on pairs that f̂ was not fitted on, and the calibration of its confidence."""
    read, sure = read_all(regressor, observations)
    good = np.asarray(correct(regressor.space, jnp.asarray(read), jnp.asarray(rho)))
    return {
        "pairs": len(rho),
        "error": dict(zip(regressor.space.names, (1 - good.mean(axis=0)).tolist(), strict=True)),
        "mean_error": float(1 - good.mean()),
        "any_error": float(1 - good.all(axis=1).mean()),
        "absolute_error": dict(zip(regressor.space.names, np.abs(read - rho).mean(axis=0).tolist(), strict=True)),
        "calibration_error": calibration_error(sure, good),
    }


def read_all(
    regressor: Regressor, observations: np.ndarray
) -> tuple[Float[np.ndarray, "n K"], Float[np.ndarray, "n K"]]:
    """ρ̂ and confidence of many observations, in batches of one size."""
    ask = eqx.filter_jit(regressor)
    parts = []
    for start in range(0, len(observations), BATCH):
        part = observations[start : start + BATCH]
        padded = np.concatenate([part, np.repeat(part[:1], BATCH - len(part), axis=0)])
        parts.append([np.asarray(x)[: len(part)] for x in ask(jnp.asarray(padded))])
    return np.concatenate([one for one, _ in parts]), np.concatenate([other for _, other in parts])


def calibration_error(sure: Float[np.ndarray, "n K"], good: Bool[np.ndarray, "n K"]) -> float:
    """Mean distance between confidence and accuracy, over bins of confidence with equally many readings."""
    order = np.argsort(sure, axis=None, kind="stable")
    bins = zip(np.array_split(sure.ravel()[order], BINS), np.array_split(good.ravel()[order], BINS), strict=True)
    return float(np.mean([abs(p.mean() - g.mean()) for p, g in bins if len(p)]))
