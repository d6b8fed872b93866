"""f̂: attributes learnt from labelled pairs (s, ρ), with the loss of each block's own geometry (paper, appendix).

What is seen may be a bag of words, a vector, or a picture. Every coordinate comes with a confidence, which is fitted on
pairs that the rest was not fitted on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from saplan.algebra import Product, Real
from saplan.errors import InputError, NotFiniteError
from saplan.rl.networks import Linear, bag, convolve, normalise

SURE = 0.99
"""Below this confidence a reading is not believed if there is an older one."""
STRANGE = 8.0
"""How much a sight never seen makes a reading doubtful at first, in logits; labels may teach otherwise."""
NEAR = 2
"""Grains that a reading of a real may be off and still count as right."""
LARGEST_HIDDEN = 2**12
"""Units per layer; more are a slip of the keyboard."""
Observation = Array
"""What is seen, in a batch: words [n, slots], vectors [n, width], or pictures [n, height, width, channels]."""


@dataclass(frozen=True)
class RegressorSettings:
    """How f̂ is fitted."""

    hidden: int = 64
    """Units per layer, and channels of a picture."""
    steps: int = 6000
    """Gradient steps."""
    batch: int = 512
    """Pairs per step."""
    rate: float = 0.01
    """Learning rate, falling to zero."""
    held_back: float = 0.1
    """Share of the pairs that the confidence is fitted on."""

    def __post_init__(self) -> None:
        for name, most in (("hidden", LARGEST_HIDDEN), ("steps", 10**7), ("batch", 2**16)):
            if not 1 <= getattr(self, name) <= most:
                raise InputError(f"{name} must lie in 1..{most}, got {getattr(self, name)}")
        if not 0 < self.rate <= 1:
            raise InputError(f"rate must lie in 0..1, got {self.rate}")
        if not 0 < self.held_back < 1:
            raise InputError(f"held_back must lie between 0 and 1, got {self.held_back}")


class FirstEdges(eqx.Module):
    """Features of what is seen, and what goes straight to the output."""

    features: Float[Array, "n hidden"]
    straight: Float[Array, "n outputs"]
    strange: Float[Array, "n"]
    """How much of it was never seen among the labels."""


class WordsBody(eqx.Module):
    """A bag of words: a sum of rows, some of which go straight to the output, since counts add up."""

    table: Float[Array, "vocabulary hidden"]
    straight: Float[Array, "vocabulary outputs"]
    met: Bool[Array, "vocabulary"]

    @classmethod
    def init(cls, key: PRNGKeyArray, vocabulary: int, hidden: int, outputs: int) -> "WordsBody":
        """No word met yet."""
        table = jax.random.normal(key, (vocabulary, hidden)) * 0.1
        return cls(table, jnp.zeros((vocabulary, outputs)), jnp.zeros(vocabulary, bool))

    def __call__(self, seen: Int[Array, "n slots"]) -> FirstEdges:
        """One pass over the words for everything."""
        hidden, outputs = self.table.shape[1], self.straight.shape[1]
        strange = 1.0 - self.met.at[0].set(True)[:, None]
        rows = jnp.concatenate([self.table, self.straight, strange], axis=1)
        total = bag(rows, seen)
        return FirstEdges(
            normalise(total[:, :hidden]), total[:, hidden : hidden + outputs], jax.lax.stop_gradient(total[:, -1])
        )

    def after(self, seen: Int[Array, "n slots"]) -> "WordsBody":
        """With the words of the labels known as met."""
        return eqx.tree_at(lambda body: body.met, self, self.met.at[seen.reshape(-1).astype(jnp.int32)].set(True))


class DenseBody(eqx.Module):
    """A vector of numbers, brought to a common scale."""

    mean: Float[Array, "width"]
    scale: Float[Array, "width"]
    inputs: Linear
    straight: Linear

    @classmethod
    def init(cls, key: PRNGKeyArray, width: int, hidden: int, outputs: int) -> "DenseBody":
        """No numbers met yet."""
        straight = Linear(jnp.zeros((width, outputs)), jnp.zeros(outputs))
        return cls(jnp.zeros(width), jnp.ones(width), Linear.init(key, width, hidden), straight)

    def __call__(self, seen: Shaped[Array, "n width"]) -> FirstEdges:
        mean, scale = jax.lax.stop_gradient((self.mean, self.scale))
        scaled = (seen.astype(jnp.float32) - mean) / scale
        strange = jnp.sum(jax.nn.relu(jnp.abs(scaled) - 5), axis=1)
        return FirstEdges(normalise(self.inputs(scaled)), self.straight(scaled), strange)

    def after(self, seen: Shaped[Array, "n width"]) -> "DenseBody":
        """With the scale of the labels."""
        seen = seen.astype(jnp.float32)
        mean, scale = jnp.mean(seen, axis=0), jnp.std(seen, axis=0)
        return eqx.tree_at(lambda body: (body.mean, body.scale), self, (mean, jnp.where(scale > 1e-6, scale, 1.0)))


class PictureBody(eqx.Module):
    """Two convolutions and a sum over places: what there is more of adds more, wherever it is."""

    first: Float[Array, "3 3 channels hidden"]
    second: Float[Array, "3 3 hidden hidden"]
    bias: Float[Array, "2 hidden"]
    straight: Float[Array, "hidden outputs"]

    @classmethod
    def init(cls, key: PRNGKeyArray, channels: int, hidden: int, outputs: int) -> "PictureBody":
        """Nothing learnt yet."""
        one, two = jax.random.split(key)
        first = jax.random.normal(one, (3, 3, channels, hidden)) * (2 / (9 * channels)) ** 0.5
        second = jax.random.normal(two, (3, 3, hidden, hidden)) * (2 / (9 * hidden)) ** 0.5
        return cls(first, second, jnp.zeros((2, hidden)), jnp.zeros((hidden, outputs)))

    def __call__(self, seen: Shaped[Array, "n height width channels"]) -> FirstEdges:
        pixels = seen.astype(jnp.float32) / 128 - 1 if jnp.issubdtype(seen.dtype, jnp.integer) else seen
        places = jax.nn.relu(convolve(pixels, self.first) + self.bias[0])
        places = jax.nn.relu(convolve(places, self.second) + self.bias[1])
        total = jnp.sum(places, axis=(1, 2))
        area = seen.shape[1] * seen.shape[2]
        return FirstEdges(normalise(total), (total / area**0.5) @ self.straight, jnp.zeros(len(seen)))

    def after(self, seen: Array) -> "PictureBody":
        """Pictures have a scale of their own."""
        return self


class Regressor(eqx.Module):
    """f̂, and how sure it is."""

    body: WordsBody | DenseBody | PictureBody
    hidden: Linear
    outputs: Linear
    middle: Float[Array, "outputs"]
    reach: Float[Array, "outputs"]
    """The mean and the spread of the labels, which outputs begin from."""
    doubt: Linear
    """From features to the logit of every coordinate being wrong."""
    space: Product = eqx.field(static=True)
    """𝓡, with the geometry that outputs are fitted in."""

    @classmethod
    def init(
        cls, key: PRNGKeyArray, shape: tuple[int, ...], vocabulary: int, space: Product, hidden: int
    ) -> "Regressor":
        """For sights of this shape: words if there is a `vocabulary`, else vectors or pictures."""
        keys, outputs = jax.random.split(key, 3), space.embed_width
        return cls(
            body=_body(keys[0], shape, vocabulary, hidden, outputs),
            hidden=Linear.init(keys[1], hidden, hidden, scale=2**0.5),
            outputs=Linear.init(keys[2], hidden, outputs, scale=0.1),
            middle=jnp.zeros(outputs),
            reach=jnp.ones(outputs),
            doubt=Linear(jnp.zeros((2 + hidden, space.size)).at[1].set(STRANGE), jnp.zeros(space.size)),
            space=space,
        )

    def look(
        self, seen: Observation, deep: Float[Array, ""] | float = 1.0
    ) -> tuple[Float[Array, "n outputs"], Float[Array, "n hidden"], Float[Array, "n"]]:
        """The output y, the features behind it, and how strange the sight is.

        `deep` is the share that the hidden layer has in y.
        """
        look = self.body(seen)
        features = jax.nn.relu(normalise(self.hidden(jax.nn.relu(look.features))))
        middle, reach = jax.lax.stop_gradient((self.middle, self.reach))
        return middle + reach * (look.straight + deep * self.outputs(features)), features, look.strange

    def loss(
        self, seen: Observation, rho: Float[Array, "n K"], deep: Float[Array, ""] | float = 1.0
    ) -> Float[Array, ""]:
        """The blocks' losses, summed over coordinates."""
        return jnp.mean(self.space.regression_loss(self.look(seen, deep)[0], rho))

    def __call__(self, seen: Observation) -> tuple[Float[Array, "n K"], Float[Array, "n K"]]:
        """ρ̂, the nearest element, and the confidence in every coordinate."""
        y, features, strange = self.look(seen)
        return self.space.decode(y), jax.nn.sigmoid(-self.logits(y, features, strange))

    def logits(
        self, y: Float[Array, "n outputs"], features: Float[Array, "n hidden"], strange: Float[Array, "n"]
    ) -> Float[Array, "n K"]:
        """Of being wrong. An output halfway between two elements is a doubt, and so is what was never seen."""
        between = self.space.regression_losses(y, self.space.decode(y))
        own = jnp.log(between + 1e-4) * self.doubt.weight[0]
        new = strange[:, None] * jax.nn.softplus(self.doubt.weight[1])
        return own + new + features @ self.doubt.weight[2:] + self.doubt.bias


def _body(
    key: PRNGKeyArray, shape: tuple[int, ...], vocabulary: int, hidden: int, outputs: int
) -> WordsBody | DenseBody | PictureBody:
    if vocabulary:
        return WordsBody.init(key, vocabulary, hidden, outputs)
    if len(shape) == 1:
        return DenseBody.init(key, shape[0], hidden, outputs)
    return PictureBody.init(key, shape[-1], hidden, outputs)


def right(space: Product, read: Float[Array, "n K"], rho: Float[Array, "n K"]) -> Bool[Array, "n K"]:
    """Which coordinates are read as they are: exactly, or for a real within two grains."""
    real = jnp.array([isinstance(block, Real) for block in space.blocks])
    return jnp.where(real, jnp.abs(read - rho) <= NEAR * jnp.array(space.grain), read == rho)


CHUNK = 250
"""Steps per program."""


def fit(
    key: PRNGKeyArray,
    seen: Observation,
    rho: Float[Array, "n K"],
    vocabulary: int,
    space: Product,
    settings: RegressorSettings,
    show: Callable[[int, float], None] = lambda step, loss: None,
) -> Regressor:
    """f̂ from labelled pairs; `show` is told the steps done and the loss."""
    init_key, part_key, fit_key = jax.random.split(key, 3)
    order = jax.random.permutation(part_key, len(rho))
    kept = max(1, round(len(rho) * settings.held_back))
    held_back, used = order[:kept], order[kept:] if kept < len(rho) else order
    regressor = Regressor.init(init_key, seen.shape[1:], vocabulary, space, settings.hidden)
    target = space.embed(rho[used])
    spread = jnp.std(target, axis=0)
    regressor = eqx.tree_at(
        lambda r: (r.body, r.middle, r.reach),
        regressor,
        (regressor.body.after(seen[used]), jnp.mean(target, axis=0), jnp.where(spread > 1e-6, spread, 1.0)),
    )
    chunks = -(-settings.steps // CHUNK)
    optimiser = optax.adam(optax.cosine_decay_schedule(settings.rate, chunks * CHUNK))
    moments = optimiser.init(eqx.filter(regressor, eqx.is_inexact_array))
    for k, one in enumerate(jax.random.split(fit_key, chunks)):
        # First what adds up, then what is left: a hidden layer would else learn few labels by heart.
        deep = jnp.float32(k >= chunks // 2)
        regressor, moments, loss = _descend(optimiser, settings.batch, one, regressor, moments, seen, rho, used, deep)
        if not np.isfinite(loss):
            raise NotFiniteError(f"the loss is not finite after {(k + 1) * CHUNK} steps: try a smaller --rate")
        show(min((k + 1) * CHUNK, settings.steps), float(loss))
    fitted = _with_doubt(regressor, seen[held_back], rho[held_back])
    if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(eqx.filter(fitted, eqx.is_inexact_array))):
        raise NotFiniteError("a number that was fitted is not finite: try a smaller --rate")
    return fitted


@eqx.filter_jit
def _descend(
    optimiser: optax.GradientTransformation,
    batch: int,
    key: PRNGKeyArray,
    regressor: Regressor,
    moments: optax.OptState,
    seen: Observation,
    rho: Float[Array, "n K"],
    used: Int[Array, "m"],
    deep: Float[Array, ""],
) -> tuple[Regressor, optax.OptState, Float[Array, ""]]:
    """Some gradient steps on random pairs, and their mean loss."""

    def one(carry: tuple[Any, Any], key: PRNGKeyArray) -> tuple[tuple[Any, Any], Float[Array, ""]]:
        learnt, moments = carry
        rows = used[jax.random.randint(key, (batch,), 0, len(used))]
        loss, gradients = jax.value_and_grad(lambda x: eqx.combine(x, rest).loss(seen[rows], rho[rows], deep))(learnt)
        updates, moments = optimiser.update(gradients, moments)
        return (optax.apply_updates(learnt, updates), moments), loss

    learnt, rest = eqx.partition(regressor, eqx.is_inexact_array)
    (learnt, moments), losses = jax.lax.scan(one, (learnt, moments), jax.random.split(key, CHUNK))
    return eqx.combine(learnt, rest), moments, jnp.mean(losses)


DOUBT_PAIRS, DOUBT_STEPS, DOUBT_RATE, DOUBT_DECAY = 20_000, 1000, 0.03, 1e-3


@eqx.filter_jit
def _with_doubt(regressor: Regressor, seen: Observation, rho: Float[Array, "n K"]) -> Regressor:
    """Fits the confidence: cross-entropy of "this coordinate is read wrongly" on pairs that nothing was fitted on."""
    seen, rho = seen[:DOUBT_PAIRS], rho[:DOUBT_PAIRS]
    y, features, strange = jax.lax.map(
        lambda one: jax.tree.map(lambda x: x[0], regressor.look(one[None])), seen, batch_size=256
    )
    wrong = ~right(regressor.space, regressor.space.decode(y), rho)
    optimiser = optax.adam(DOUBT_RATE)

    def loss(doubt: Linear) -> Float[Array, ""]:
        logits = eqx.tree_at(lambda r: r.doubt, regressor, doubt).logits(y, features, strange)
        return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, wrong)) + DOUBT_DECAY * jnp.sum(
            doubt.weight[2:] ** 2
        )

    def one(carry: tuple[Linear, Any], _: None) -> tuple[tuple[Linear, Any], None]:
        doubt, moments = carry
        updates, moments = optimiser.update(jax.grad(loss)(doubt), moments)
        return (optax.apply_updates(doubt, updates), moments), None

    # A coordinate that was never wrong has been right so often, and no oftener.
    base = jnp.log((jnp.sum(wrong, axis=0) + 0.5) / (len(wrong) + 0.5))
    start = eqx.tree_at(lambda d: d.bias, regressor.doubt, base)
    doubt = jax.lax.scan(one, (start, optimiser.init(start)), None, length=DOUBT_STEPS)[0][0]
    return eqx.tree_at(lambda r: r.doubt, regressor, doubt)
