"""Work for the few lanes that need it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Shaped

from saplan.rl.optim import largest_of_all

PART = 4
"""On a CPU, the work is done for a quarter of the lanes, or for all where more need it."""


def where_wanted(
    function: Callable[..., Shaped[Array, "n"]],
    wanted: Bool[Array, "lanes"],
    rows: Shaped[Array, "lanes ..."],
    *given: Any,
) -> Shaped[Array, "lanes"]:
    """`function(rows, *given)`, with a valid result only where it is wanted.

    The function must treat its rows independently, and its result must fit any lane. On platforms other than a CPU it
    gets all rows: there a branch costs more than the work.
    """
    found: Array = jax.lax.platform_dependent(wanted, rows, *given, cpu=_few(function), default=_all(function))
    return found


def _all(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda wanted, rows, *given: function(rows, *given)


def _few(function: Callable[..., Array]) -> Callable[..., Array]:
    def run(wanted: Array, rows: Array, *given: Any) -> Array:
        size = max(1, len(wanted) // PART)
        number = jnp.cumsum(wanted) - 1

        def few(_: None) -> Array:
            lanes = (
                jnp.zeros(size, jnp.int32)
                .at[jnp.where(wanted, number, size)]
                .set(jnp.arange(len(wanted), dtype=jnp.int32), mode="drop")
            )
            return function(rows[lanes], *given)[jnp.clip(number, 0, size - 1)]

        enough = largest_of_all(jnp.sum(wanted)) <= size
        found: Array = jax.lax.cond(enough, few, lambda _: function(rows, *given), None)
        return found

    return run
