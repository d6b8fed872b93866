"""A loss that is a sum over many goals, with its gradient, at the cost of one goal's memory."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Loss = Callable[[Any, Any, Any], Float[Array, ""]]
"""(what is learnt, what is given, an item) → its loss. It must not close over arrays."""


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def accumulate_loss(loss: Loss, learnt: Any, given: Any, items: Any, count: Int[Array, ""]) -> Float[Array, ""]:
    """Σ `loss(learnt, given, item)` over the first `count` of the stacked items; differentiable in `learnt` alone.

    On a CPU the items come one after another, those beyond `count` cost nothing, and the gradient is summed up on the
    way, so that nothing has to be kept for a backward pass. Elsewhere the items are one batch, of a few sizes to choose
    from: a loop whose length is known only on the device would have to ask the host at every turn.
    """
    return _value_and_gradient(loss, learnt, given, items, count)[0]


def _value_and_gradient(loss: Loss, learnt: Any, given: Any, items: Any, count: Int[Array, ""]) -> tuple[Array, Any]:
    def in_turn(learnt: Any, given: Any, items: Any, count: Array) -> tuple[Array, Any]:
        def add(k: Array, total: tuple[Array, Any]) -> tuple[Array, Any]:
            item = jax.tree.map(lambda x: x[k], items)
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(learnt, given, item))

        return jax.lax.fori_loop(0, count, add, (jnp.zeros(()), jax.tree.map(jnp.zeros_like, learnt)))

    def at_once(learnt: Any, given: Any, items: Any, count: Array) -> tuple[Array, Any]:
        return in_buckets(partial(_sum_of_first, loss), items, count, learnt, given)

    return jax.lax.platform_dependent(learnt, given, items, count, cpu=in_turn, default=at_once)


def _sum_of_first(loss: Loss, items: Any, count: Array, learnt: Any, given: Any) -> tuple[Array, Any]:
    def total(learnt: Any) -> Array:
        each = jax.vmap(lambda item: loss(learnt, given, item))(items)
        return jnp.sum(jnp.where(jnp.arange(each.shape[0]) < count, each, 0.0))

    return jax.value_and_grad(total)(learnt)


SEEDS = "seeds"
"""The axis of learners that are trained side by side by `jax.vmap`."""


def largest_of_all(value: Int[Array, ""]) -> Int[Array, ""]:
    """The largest of all learners that are trained side by side: a number that all of them share, as branches need."""
    try:
        return jax.lax.pmax(value, SEEDS)
    except NameError:  # one learner alone
        return value


def in_buckets(function: Callable[..., Any], items: Any, count: Int[Array, ""], *given: Any) -> Any:
    """`function(items, count, *given)` with no more of the stacked items than needed: four, eight, ... or all.

    What it returns must not depend on how many there are. Learners side by side get the same number: a choice of each
    by itself would mean that all of the choices are computed.
    """
    (most,) = {leaf.shape[0] for leaf in jax.tree.leaves(items)}
    sizes = [*(4 * 2**k for k in range(20) if 4 * 2**k < most), most]
    room = jnp.sum(largest_of_all(count) > jnp.array(sizes[:-1], jnp.int32))
    parts = [lambda *rest, n=n: function(jax.tree.map(lambda x: x[:n], items), *rest) for n in sizes]
    return jax.lax.switch(room, parts, count, *given)


def _forward(loss: Loss, learnt: Any, given: Any, items: Any, count: Array) -> tuple[Array, Any]:
    return _value_and_gradient(loss, learnt, given, items, count)


def _backward(loss: Loss, gradient: Any, cotangent: Array) -> tuple[Any, None, None, None]:
    return jax.tree.map(lambda g: g * cotangent, gradient), None, None, None


accumulate_loss.defvjp(_forward, _backward)
