"""Encoders of observations: a bag of words, a vector or a picture to features."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from saplan.rl.networks import Linear, bag, convolve, normalise


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

    def fit_scale(self, observations: Int[Array, "n slots"]) -> "BagEncoder":
        """The encoder with the words of the labels marked as known."""
        known = self.known.at[observations.reshape(-1).astype(jnp.int32)].set(True)
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

    def fit_scale(self, observations: Shaped[Array, "n width"]) -> "VectorEncoder":
        """The encoder with the mean and the scale of the labels."""
        numbers = observations.astype(jnp.float32)
        mean, scale = jnp.mean(numbers, axis=0), jnp.std(numbers, axis=0)
        scale = jnp.where(scale > 1e-6, scale, 1.0)
        return replace(self, mean=mean, scale=scale)


class PictureEncoder(eqx.Module):
    """Two convolutions and a sum over places, which counts things wherever they are."""

    first: Float[Array, "3 3 channels hidden"]
    second: Float[Array, "3 3 hidden hidden"]
    bias: Float[Array, "2 hidden"]
    linear: Float[Array, "hidden outputs"]

    @classmethod
    def init(cls, key: PRNGKeyArray, channels: int, hidden: int, outputs: int) -> "PictureEncoder":
        """Random filters."""
        one, two = jax.random.split(key)
        first = jax.random.normal(one, (3, 3, channels, hidden)) * (2 / (9 * channels)) ** 0.5
        second = jax.random.normal(two, (3, 3, hidden, hidden)) * (2 / (9 * hidden)) ** 0.5
        return cls(first, second, jnp.zeros((2, hidden)), jnp.zeros((hidden, outputs)))

    def __call__(self, observations: Shaped[Array, "n height width channels"]) -> Encoded:
        whole = jnp.issubdtype(observations.dtype, jnp.integer)
        pixels = observations.astype(jnp.float32) / 128 - 1 if whole else observations
        places = jax.nn.relu(convolve(pixels, self.first) + self.bias[0])
        places = jax.nn.relu(convolve(places, self.second) + self.bias[1])
        total = jnp.sum(places, axis=(1, 2))
        area = observations.shape[1] * observations.shape[2]
        return Encoded(normalise(total), (total / area**0.5) @ self.linear, jnp.zeros(len(observations)))

    def fit_scale(self, observations: Array) -> "PictureEncoder":
        """The encoder itself: pictures have a fixed scale."""
        return self


ObservationEncoder = BagEncoder | VectorEncoder | PictureEncoder


def make_encoder(
    key: PRNGKeyArray, shape: tuple[int, ...], vocabulary: int, hidden: int, outputs: int
) -> ObservationEncoder:
    """The encoder for observations of this shape: words if there is a `vocabulary`, else vectors or pictures."""
    if vocabulary:
        return BagEncoder.init(key, vocabulary, hidden, outputs)
    if len(shape) == 1:
        return VectorEncoder.init(key, shape[0], hidden, outputs)
    return PictureEncoder.init(key, shape[-1], hidden, outputs)
