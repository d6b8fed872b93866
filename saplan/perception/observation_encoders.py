"""Encoders of observations: a bag of words, a vector or a picture to features."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from saplan.rl.networks import Linear, bag, brightness, normalise, patches

SCALED = 256
"""Pictures that the scale of features is measured on."""


class Encoded(eqx.Module):
    """The encoding of a batch of observations."""

    features: Float[Array, "n hidden"]
    linear: Float[Array, "n outputs"]
    """A part of the output that is linear in the observation, since counts add up."""
    novelty: Float[Array, "n"]
    """How much of an observation never occurred among the labels."""


class BagEncoder(eqx.Module):
    """A bag of words: a sum of rows of two tables."""

    table: Float[Array, "vocabulary hidden"]
    linear: Float[Array, "vocabulary outputs"]
    known: Bool[Array, "vocabulary"]
    """Words that occur among the labels."""

    @classmethod
    def init(cls, key: PRNGKeyArray, vocabulary: int, hidden: int, outputs: int) -> "BagEncoder":
        """Random rows, no word known."""
        table = jax.random.normal(key, (vocabulary, hidden)) * 0.1
        return cls(table, jnp.zeros((vocabulary, outputs)), jnp.zeros(vocabulary, bool))

    def __call__(self, observations: Int[Array, "n slots"]) -> Encoded:
        """Everything in one pass over the words."""
        hidden, outputs = self.table.shape[1], self.linear.shape[1]
        novel = 1.0 - self.known.at[0].set(True)[:, None]
        total = bag(jnp.concatenate([self.table, self.linear, novel], axis=1), observations)
        return Encoded(
            normalise(total[:, :hidden]), total[:, hidden : hidden + outputs], jax.lax.stop_gradient(total[:, -1])
        )

    def fit_scale(self, observations: Int[Array, "n slots"], rows: Int[Array, "m"]) -> "BagEncoder":
        """The encoder with the words in these rows of the labels marked as known."""
        known = self.known.at[observations[rows].reshape(-1).astype(jnp.int32)].set(True)
        return replace(self, known=known)


class VectorEncoder(eqx.Module):
    """A vector of numbers, normalised by mean and standard deviation."""

    mean: Float[Array, "width"]
    scale: Float[Array, "width"]
    inputs: Linear
    linear: Linear

    @classmethod
    def init(cls, key: PRNGKeyArray, width: int, hidden: int, outputs: int) -> "VectorEncoder":
        """Random weights, mean 0 and scale 1."""
        linear = Linear(jnp.zeros((width, outputs)), jnp.zeros(outputs))
        return cls(jnp.zeros(width), jnp.ones(width), Linear.init(key, width, hidden), linear)

    def __call__(self, observations: Shaped[Array, "n width"]) -> Encoded:
        mean, scale = jax.lax.stop_gradient((self.mean, self.scale))
        scaled = (observations.astype(jnp.float32) - mean) / scale
        novelty = jnp.sum(jax.nn.relu(jnp.abs(scaled) - 5), axis=1)
        return Encoded(normalise(self.inputs(scaled)), self.linear(scaled), novelty)

    def fit_scale(self, observations: Shaped[Array, "n width"], rows: Int[Array, "m"]) -> "VectorEncoder":
        """The encoder with the mean and the scale of these rows of the labels."""
        numbers = observations[rows].astype(jnp.float32)
        mean, scale = jnp.mean(numbers, axis=0), jnp.std(numbers, axis=0)
        scale = jnp.where(scale > 1e-6, scale, 1.0)
        return replace(self, mean=mean, scale=scale)


class PictureEncoder(eqx.Module):
    """Two layers for every cell, which see its pixels and its place, and sums over all cells, which count things."""

    first: Linear
    second: Linear
    features: Linear
    linear: Linear
    """Both from the sums of the two layers."""
    mean: Float[Array, "sums"]
    scale: Float[Array, "sums"]
    """Of the sums, over the labels."""
    cell: int = eqx.field(static=True)

    @classmethod
    def init(cls, key: PRNGKeyArray, shape: tuple[int, ...], cell: int, hidden: int, outputs: int) -> "PictureEncoder":
        """Random filters."""
        one, two, three = jax.random.split(key, 3)
        second = Linear.init(two, hidden, hidden, scale=2**0.5)
        features = Linear.init(three, 2 * hidden, hidden)
        first = Linear.init(one, cell * cell * shape[-1] + 2, hidden, scale=2**0.5)
        linear = Linear(jnp.zeros((2 * hidden, outputs)), jnp.zeros(outputs))
        mean, scale = jnp.zeros(2 * hidden), jnp.ones(2 * hidden)
        return cls(first, second, features, linear, mean, scale, cell)

    def sums(self, observations: Shaped[Array, "n height width channels"]) -> Float[Array, "n sums"]:
        """How much of everything that the two layers see is in the pictures."""
        cells = patches(brightness(observations), self.cell)
        rows, columns = cells.shape[1:3]
        place = jnp.stack(jnp.meshgrid(jnp.linspace(-1, 1, rows), jnp.linspace(-1, 1, columns), indexing="ij"), axis=-1)
        cells = jnp.concatenate([cells, jnp.broadcast_to(place, (*cells.shape[:3], 2))], axis=-1)
        near = jax.nn.relu(self.first(cells))
        sums = [jnp.sum(x, axis=(1, 2)) for x in (near, jax.nn.relu(self.second(near)))]
        return jnp.concatenate(sums, axis=-1)

    def __call__(self, observations: Shaped[Array, "n height width channels"]) -> Encoded:
        mean, scale = jax.lax.stop_gradient((self.mean, self.scale))
        scaled = (self.sums(observations) - mean) / scale
        return Encoded(normalise(self.features(scaled)), self.linear(scaled), jnp.zeros(len(observations)))

    def fit_scale(self, observations: Array, rows: Int[Array, "m"]) -> "PictureEncoder":
        """The encoder with the mean and the scale of the sums over some of the labels."""
        sums = self.sums(observations[rows[:SCALED]])
        return replace(self, mean=jnp.mean(sums, axis=0), scale=jnp.std(sums, axis=0) + 1e-3)


ObservationEncoder = BagEncoder | VectorEncoder | PictureEncoder


def make_encoder(
    key: PRNGKeyArray, shape: tuple[int, ...], vocabulary: int, hidden: int, outputs: int, cell: int
) -> ObservationEncoder:
    """The encoder for observations of this shape: words if there is a `vocabulary`, else vectors or pictures."""
    if vocabulary:
        return BagEncoder.init(key, vocabulary, hidden, outputs)
    if len(shape) == 1:
        return VectorEncoder.init(key, shape[0], hidden, outputs)
    return PictureEncoder.init(key, shape, cell, hidden, outputs)
