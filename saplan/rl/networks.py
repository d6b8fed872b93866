"""Networks over observations: one trunk per state, and a light head per goal.

A goal enters after the trunk, as a gain and a shift before the last nonlinearity. The costly part is therefore computed
once per state, for any number of goals, which makes learning about all of them at once affordable.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

Batch = Float[Array, "... features"]
EPSILON = 1e-5
"""Added to a variance before it divides."""


class Linear(eqx.Module):
    """x ↦ x W + b."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, "outputs"]

    @classmethod
    def init(cls, key: PRNGKeyArray, inputs: int, outputs: int, scale: float = 1.0) -> "Linear":
        """Weights of variance scale² / inputs."""
        weight = jax.random.normal(key, (inputs, outputs)) * (scale * inputs**-0.5)
        return cls(weight, jnp.zeros(outputs))

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        return x @ self.weight + self.bias


def normalise(x: Batch) -> Batch:
    """Layer normalisation without parameters: the next layer has weights of its own."""
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + EPSILON)


def bag(table: Float[Array, "vocabulary features"], words: Int[Array, "batch slots"]) -> Float[Array, "batch features"]:
    """Sum of the words' rows, by the implementation that is fast on the platform; the mathematics is the same."""
    total: Array = jax.lax.platform_dependent(table, words, cpu=_bag_by_scan, default=_bag_by_product)
    return total


def _bag_by_scan(table: Array, words: Array) -> Array:
    # On a CPU, `table[words].sum(1)` would write out every row before adding; slot by slot the sum stays in cache.
    def add(total: Array, slot: Array) -> tuple[Array, None]:
        return total + table[slot], None

    start = jnp.zeros((words.shape[0], table.shape[1]), table.dtype)
    return jax.lax.scan(add, start, words.T.astype(jnp.int32))[0]


@jax.custom_vjp
def _bag_by_product(table: Array, words: Array) -> Array:
    return _product_forward(table, words)[0]


def _product_forward(table: Array, words: Array) -> tuple[Array, Array]:
    rows = jnp.arange(words.shape[0])[:, None]
    counts = jnp.zeros((words.shape[0], table.shape[0]), jnp.bfloat16).at[rows, words.astype(jnp.int32)].add(1)
    return jnp.dot(counts, table.astype(jnp.bfloat16), preferred_element_type=jnp.float32), counts


def _product_backward(counts: Array, cotangent: Array) -> tuple[Array, None]:
    # Left to JAX, this product would be one of single precision: twice the time, and no gain in a noisy gradient.
    return jnp.dot(counts.T, cotangent.astype(jnp.bfloat16), preferred_element_type=jnp.float32), None


_bag_by_product.defvjp(_product_forward, _product_backward)


class Head(eqx.Module):
    """(trunk, features of a goal) → one number per output."""

    gain: Linear
    shift: Linear
    outputs: Linear

    def __call__(
        self, trunk: Float[Array, "... hidden"], goal: Float[Array, "... goal"], part: slice = slice(None)
    ) -> Float[Array, "... outputs"]:
        """The part that depends on state and goal; the leading axes of both broadcast. `part` selects outputs."""
        return self.hidden(trunk, goal) @ self.outputs.weight[:, part] + self.outputs.bias[part]

    def hidden(self, trunk: Float[Array, "... hidden"], goal: Float[Array, "... goal"]) -> Float[Array, "... hidden"]:
        """The last hidden layer."""
        return jax.nn.relu(normalise(trunk * (1 + self.gain(goal)) + self.shift(goal)))


def patches(pictures: Float[Array, "n h w c"], cell: int) -> Float[Array, "n i j patch"]:
    """The cells of pictures, square by square from the upper left; what is missing at the rims is black."""
    n, height, width, channels = pictures.shape
    rows, columns = -(-height // cell), -(-width // cell)
    room = ((0, 0), (0, rows * cell - height), (0, columns * cell - width), (0, 0))
    cut = jnp.pad(pictures, room).reshape(n, rows, cell, columns, cell, channels)
    return cut.swapaxes(2, 3).reshape(n, rows, columns, cell * cell * channels)


def brightness(pixels: Shaped[Array, "..."]) -> Float[Array, "..."]:
    """Pixels as numbers of order one; bytes are scaled, other numbers taken as they are."""
    scaled = pixels.astype(jnp.float32)
    return scaled / 128 - 1 if jnp.issubdtype(pixels.dtype, jnp.integer) else scaled


class CellEyes(eqx.Module):
    """A picture of cells: the same small layer for every cell, and a layer over all of them."""

    first: Linear
    outputs: Linear
    shape: tuple[int, int, int] = eqx.field(static=True)
    cell: int = eqx.field(static=True)

    @classmethod
    def init(
        cls, key: PRNGKeyArray, shape: tuple[int, int, int], cell: int, outputs: int, features: int = 16
    ) -> "CellEyes":
        """An untrained network."""
        one, two = jax.random.split(key)
        places = -(-shape[0] // cell) * -(-shape[1] // cell)
        first = Linear.init(one, cell * cell * shape[2], features, scale=2**0.5)
        return cls(first, Linear.init(two, places * features, outputs), shape, cell)

    def __call__(self, pixels: Shaped[Array, "batch pixels"]) -> Float[Array, "batch outputs"]:
        cells = patches(brightness(pixels).reshape(-1, *self.shape), self.cell)
        return self.outputs(jax.nn.relu(self.first(cells)).reshape(len(pixels), -1))


class PictureEyes(eqx.Module):
    """Two convolutions that halve a picture each, and a layer over all places: where things are matters."""

    first: Float[Array, "3 3 channels features"]
    second: Float[Array, "3 3 features features"]
    outputs: Linear
    shape: tuple[int, int, int] = eqx.field(static=True)

    @classmethod
    def init(cls, key: PRNGKeyArray, shape: tuple[int, int, int], outputs: int, features: int = 16) -> "PictureEyes":
        """An untrained network."""
        keys, (rows, columns, channels) = jax.random.split(key, 3), shape
        first = jax.random.normal(keys[0], (3, 3, channels, features)) * (2 / (9 * channels)) ** 0.5
        second = jax.random.normal(keys[1], (3, 3, features, features)) * (2 / (9 * features)) ** 0.5
        places = -(-rows // 4) * -(-columns // 4)
        return cls(first, second, Linear.init(keys[2], places * features, outputs), shape)

    def __call__(self, pixels: Shaped[Array, "batch pixels"]) -> Float[Array, "batch outputs"]:
        picture = brightness(pixels).reshape(-1, *self.shape)
        for kernel in (self.first, self.second):
            picture = jax.nn.relu(convolve(picture, kernel, 2))
        return self.outputs(picture.reshape(len(pixels), -1))


def convolve(x: Float[Array, "n h w c"], kernel: Float[Array, "3 3 c d"], stride: int = 1) -> Float[Array, "n i j d"]:
    """A 3 × 3 convolution with the given stride."""
    by = (stride, stride)
    return jax.lax.conv_general_dilated(x, kernel, by, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


class GoalNetwork(eqx.Module):
    """(observation, features of ρ) → trunk, and a head on it."""

    table: Float[Array, "vocabulary hidden"] | None
    """Embeddings of the words; None for a network without words."""
    eyes: Linear | PictureEyes | CellEyes | None
    """For numbers, for a picture, or None."""
    inputs: Linear
    hidden: Linear
    head: Head

    @classmethod
    def init(
        cls,
        key: PRNGKeyArray,
        *,
        state_width: int,
        goal_width: int,
        hidden: int,
        outputs: int,
        vocabulary: int = 0,
        numbers: int = 0,
        picture: tuple[int, int, int] | None = None,
        cell: int = 0,
    ) -> "GoalNetwork":
        """A fresh network that sees words of a `vocabulary`, so many `numbers`, a `picture`, or ρ alone.

        The picture may consist of cells of this side.
        """
        keys = jax.random.split(key, 6)
        eyes: Linear | PictureEyes | CellEyes | None = None
        if picture is not None and cell:
            eyes = CellEyes.init(keys[0], picture, cell, hidden)
        elif picture is not None:
            eyes = PictureEyes.init(keys[0], picture, hidden)
        elif numbers:
            eyes = Linear.init(keys[0], numbers, hidden)
        return cls(
            table=jax.random.normal(keys[0], (vocabulary, hidden)) * 0.2 if vocabulary else None,
            eyes=eyes,
            inputs=Linear.init(keys[1], state_width, hidden),
            hidden=Linear.init(keys[2], hidden, hidden, scale=2**0.5),
            head=Head(
                gain=Linear.init(keys[3], goal_width, hidden, scale=0.5),
                shift=Linear.init(keys[4], goal_width, hidden),
                outputs=Linear.init(keys[5], hidden, outputs, scale=0.1),
            ),
        )

    def trunk(
        self, observation: Shaped[Array, "batch slots"] | None, state: Float[Array, "... state"]
    ) -> Float[Array, "... hidden"]:
        """The part that depends on the state alone."""
        total = self.inputs(state)
        if self.table is not None and observation is not None:
            total = total + bag(self.table, observation)
        elif self.eyes is not None and observation is not None:
            total = total + self.eyes(observation)
        return self.hidden(jax.nn.relu(normalise(total)))
