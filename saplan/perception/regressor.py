"""f̂: a network from observations to attributes, with the loss of each block's own geometry (paper, appendix).

An observation may be a bag of words, a vector, or a picture. Every coordinate comes with a confidence.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from saplan.algebra import Product, Real
from saplan.errors import InputError
from saplan.perception.observation_encoders import ObservationEncoder, PictureEncoder, make_encoder
from saplan.rl.networks import Linear, normalise

SURE = 0.99
"""A reading with less confidence than this does not replace an older one."""
DOUBT_OF_NOVELTY = 8.0
"""Initial weight of an observation's novelty in the doubt of a reading, in logits."""
NEAR = 2
"""Grains by which a reading of a real may be off and still count as correct."""
LARGEST_HIDDEN = 2**12
"""Units per layer; more are surely a typing error."""
LARGEST_CELL = 64
Observations = Array
"""A batch of observations: words [n, slots], vectors [n, width], or pictures [n, height, width, channels]."""


@dataclass(frozen=True)
class RegressorSettings:
    """Size and training of f̂."""

    hidden: int = 64
    """Units per layer, and channels of a picture."""
    steps: int = 6000
    """Gradient steps."""
    batch: int = 512
    """Pairs per step."""
    rate: float = 0.01
    """Learning rate, which falls to zero."""
    held_back: float = 0.1
    """Share of the pairs that only the confidence is fitted on."""
    cell: int = 3
    """Side of a cell of a picture, in pixels. Other observations have none."""

    def __post_init__(self) -> None:
        for name, most in (("hidden", LARGEST_HIDDEN), ("steps", 10**7), ("batch", 2**16), ("cell", LARGEST_CELL)):
            if not 1 <= getattr(self, name) <= most:
                raise InputError(f"{name} must lie in 1..{most}, got {getattr(self, name)}")
        if not 0 < self.rate <= 1:
            raise InputError(f"rate must be greater than 0 and at most 1, got {self.rate}")
        if not 0 < self.held_back < 1:
            raise InputError(f"held_back must lie between 0 and 1, got {self.held_back}")


class Regressor(eqx.Module):
    """f̂ with its confidence."""

    encoder: ObservationEncoder
    hidden: Linear
    outputs: Linear
    mean: Float[Array, "outputs"]
    scale: Float[Array, "outputs"]
    """Mean and standard deviation of the embedded labels."""
    doubt: Linear
    """From features to the logit of an error in every coordinate."""
    space: Product = eqx.field(static=True)
    """𝓡, with the geometry that outputs are fitted in."""

    @classmethod
    def init(
        cls, key: PRNGKeyArray, shape: tuple[int, ...], vocabulary: int, space: Product, hidden: int, cell: int = 3
    ) -> "Regressor":
        """An untrained regressor for observations of this shape: see `make_encoder`."""
        keys, outputs = jax.random.split(key, 3), space.embed_width
        doubt = jnp.zeros((2 + hidden, space.size)).at[1].set(DOUBT_OF_NOVELTY)
        return cls(
            encoder=make_encoder(keys[0], shape, vocabulary, hidden, outputs, cell),
            hidden=Linear.init(keys[1], hidden, hidden, scale=2**0.5),
            outputs=Linear.init(keys[2], hidden, outputs, scale=0.1),
            mean=jnp.zeros(outputs),
            scale=jnp.ones(outputs),
            doubt=Linear(doubt, jnp.zeros(space.size)),
            space=space,
        )

    @property
    def cell(self) -> int:
        """Side of a cell of a picture; 1 for other observations."""
        return self.encoder.cell if isinstance(self.encoder, PictureEncoder) else 1

    def predict(
        self, observations: Observations, deep: Float[Array, ""] | float = 1.0
    ) -> tuple[Float[Array, "n outputs"], Float[Array, "n hidden"], Float[Array, "n"]]:
        """The output y, the features behind it, and the novelty of each observation.

        `deep` is the weight of the hidden layer in y.
        """
        encoded = self.encoder(observations)
        features = jax.nn.relu(normalise(self.hidden(jax.nn.relu(encoded.features))))
        mean, scale = jax.lax.stop_gradient((self.mean, self.scale))
        return mean + scale * (encoded.linear + deep * self.outputs(features)), features, encoded.novelty

    def loss(
        self, observations: Observations, rho: Float[Array, "n K"], deep: Float[Array, ""] | float = 1.0
    ) -> Float[Array, ""]:
        """The blocks' losses, summed over coordinates."""
        return jnp.mean(self.space.regression_loss(self.predict(observations, deep)[0], rho))

    def __call__(self, observations: Observations) -> tuple[Float[Array, "n K"], Float[Array, "n K"]]:
        """ρ̂, the nearest element, and the confidence in every coordinate."""
        y, features, novelty = self.predict(observations)
        return self.space.decode(y), jax.nn.sigmoid(-self.error_logits(y, features, novelty))

    def error_logits(
        self, y: Float[Array, "n outputs"], features: Float[Array, "n hidden"], novelty: Float[Array, "n"]
    ) -> Float[Array, "n K"]:
        """Logits of a wrong reading, which grow with y's distance from an element and with novelty."""
        between = self.space.regression_losses(y, self.space.decode(y))
        own = jnp.log(between + 1e-4) * self.doubt.weight[0]
        new = novelty[:, None] * jax.nn.softplus(self.doubt.weight[1])
        return own + new + features @ self.doubt.weight[2:] + self.doubt.bias


def correct(space: Product, read: Float[Array, "n K"], rho: Float[Array, "n K"]) -> Bool[Array, "n K"]:
    """Which coordinates are read correctly: exactly, or within two grains for a real."""
    real = jnp.array([isinstance(block, Real) for block in space.blocks])
    return jnp.where(real, jnp.abs(read - rho) <= NEAR * jnp.array(space.grain), read == rho)
