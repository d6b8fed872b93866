"""Optimisation: Adam over minibatches, and losses that are sums over many subgoals at the cost of one."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Int32, PRNGKeyArray, PyTree

from saplan.rl.settings import Settings

ADAM = optax.scale_by_adam(eps=1e-5)
SEEDS = "seeds"
"""The axis of learners that are trained side by side by `jax.vmap`."""

Module = TypeVar("Module")
Moments = TypeVar("Moments")
Learnt = TypeVar("Learnt")
Rows = TypeVar("Rows")
Result = TypeVar("Result")


def descend(
    loss: Callable[[Module, Array], Float[Array, ""]],
    module: Module,
    moments: Moments,
    rate: Float[Array, ""] | float,
    batches: Array,
) -> tuple[Module, Moments, Float[Array, "batches"]]:
    """Adam steps on `loss(module, batch)`, one per batch."""

    def step(carry: tuple[Module, Moments], batch: Array) -> tuple[tuple[Module, Moments], Array]:
        module, moments = carry
        value, gradient = jax.value_and_grad(loss)(module, batch)
        direction, moments = ADAM.update(gradient, moments)
        return (jax.tree.map(lambda p, d: p - rate * d, module, direction), moments), value

    (module, moments), values = jax.lax.scan(step, (module, moments), batches)
    return module, moments, values


def learning_rate(settings: Settings, updates: Int32[Array, ""], total: int) -> Float[Array, ""]:
    """Step size of the policy's Adam, which falls to a tenth over `total` updates."""
    return settings.learning_rate * (1 - 0.9 * jnp.minimum(updates / total, 1.0))


def shuffle(settings: Settings, key: PRNGKeyArray, size: int) -> Int32[Array, "batches size"]:
    """Indices of the `size` steps in each minibatch of a rollout, over all epochs.

    Random numbers are sorted that carry the indices in their low bits: ten times faster than a sort of pairs. A few
    bits of chance per step suffice, since the order within a minibatch does not matter.
    """
    index, low = jnp.arange(size, dtype=jnp.uint32), jnp.uint32(2 ** (size - 1).bit_length() - 1)
    drawn = jax.random.bits(key, (settings.epochs, size), jnp.uint32)
    orders: Array = (jnp.sort((drawn & ~low) | index, axis=1) & low).astype(jnp.int32)
    return orders.reshape(settings.epochs * settings.minibatches, -1)


def take_rows(data: Rows, rows: Int32[Array, "size"]) -> Rows:
    """The given rows of every array in a tree."""
    taken: Rows = jax.tree.map(lambda x: x[rows], data)
    return taken


Loss = Callable[[Learnt, Any, Any], Float[Array, ""]]
"""(parameters, constants, item) → loss of the item. It must not close over arrays."""


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def accumulate_loss(
    loss: Loss[Learnt], learnt: Learnt, given: PyTree[Array], items: PyTree[Array], count: Int[Array, ""]
) -> Float[Array, ""]:
    """Σ `loss(learnt, given, item)` over the first `count` stacked items; differentiable in `learnt` alone.

    On a CPU the items are processed one after another, those beyond `count` cost nothing, and the gradient is summed on
    the way, so that nothing is kept for a backward pass. On other platforms the items form one batch of a few possible
    sizes, because a loop whose length is known only on the device would synchronise with the host in every iteration.
    """
    return _value_and_gradient(loss, learnt, given, items, count)[0]


def _value_and_gradient(loss: Loss[Any], learnt: Any, given: Any, items: Any, count: Array) -> tuple[Array, Any]:
    def in_turn(learnt: Any, given: Any, items: Any, count: Array) -> Any:
        def add(k: Array, total: tuple[Array, Any]) -> Any:
            item = jax.tree.map(lambda x: x[k], items)
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(learnt, given, item))

        return jax.lax.fori_loop(0, count, add, (jnp.zeros(()), jax.tree.map(jnp.zeros_like, learnt)))

    def at_once(learnt: Any, given: Any, items: Any, count: Array) -> tuple[Array, Any]:
        return in_buckets(partial(_sum_of_first, loss), items, count, learnt, given)

    found: tuple[Array, Any] = jax.lax.platform_dependent(learnt, given, items, count, cpu=in_turn, default=at_once)
    return found


def _sum_of_first(loss: Loss[Any], items: Any, count: Array, learnt: Any, given: Any) -> tuple[Array, Any]:
    def total(learnt: Any) -> Array:
        each = jax.vmap(lambda item: loss(learnt, given, item))(items)
        return jnp.sum(jnp.where(jnp.arange(each.shape[0]) < count, each, 0.0))

    return jax.value_and_grad(total)(learnt)


def _forward(loss: Loss[Any], learnt: Any, given: Any, items: Any, count: Array) -> tuple[Array, Any]:
    return _value_and_gradient(loss, learnt, given, items, count)


def _backward(loss: Loss[Any], gradient: Any, cotangent: Array) -> tuple[Any, None, None, None]:
    return jax.tree.map(lambda g: g * cotangent, gradient), None, None, None


accumulate_loss.defvjp(_forward, _backward)


def largest_of_all(value: Int[Array, ""]) -> Int[Array, ""]:
    """Maximum over all learners that are trained side by side: a number they share, as branches need."""
    try:
        largest: Int[Array, ""] = jax.lax.pmax(value, SEEDS)
    except NameError:  # a single learner
        return value
    return largest


def in_buckets(function: Callable[..., Result], items: PyTree[Array], count: Int[Array, ""], *given: Any) -> Result:
    """`function(items, count, *given)` with the fewest stacked items that suffice."""
    (most,) = {leaf.shape[0] for leaf in jax.tree.leaves(items)}
    return bucketed(lambda n: function(jax.tree.map(lambda x: x[:n], items), count, *given), most, count)


def bucketed(function: Callable[[int], Result], most: int, count: Int[Array, ""]) -> Result:
    """`function(n)` with the least n that suffices for `count` of `most` items: 4, 16, 64, ... or all.

    Every size is a program to compile, so there are few of them. The result must not depend on n. Learners side by side
    share it: with a choice of its own for each, all choices would be computed.
    """
    sizes = [*(4**k for k in range(1, 11) if 4**k < most), most]
    bucket = jnp.sum(largest_of_all(count) > jnp.array(sizes[:-1], jnp.int32))
    result: Result = jax.lax.switch(bucket, [partial(function, n) for n in sizes])
    return result
