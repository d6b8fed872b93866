"""Cross-entropy of one head about many goals, with its gradient written out.

A step teaches about every goal, but only about the action that it took: one output of the head per step and goal. So
the outputs' weights are gathered per step beforehand, and no matrix product is left per goal. Automatic
differentiation would not know that; written out, value and gradient of one goal are a few passes over the trunk.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from saplan.rl.networks import EPSILON


class TakenHead(NamedTuple):
    """What a head needs to say about the actions taken in n states and about C goals."""

    trunk: Float[Array, "n hidden"]
    gain: Float[Array, "C hidden"]
    shift: Float[Array, "C hidden"]
    """The goals' factor on the trunk, and their addend."""
    weight: Float[Array, "n hidden"]
    bias: Float[Array, "n"]
    """The outputs' weights and bias for the action taken."""


class Wanted(NamedTuple):
    """What the head should say: probabilities, and where they are known."""

    target: Float[Array, "C n"]
    known: Bool[Array, "C n"]


@jax.custom_vjp
def goals_loss(head: TakenHead, wanted: Wanted, count: Int[Array, ""]) -> Float[Array, ""]:
    """Mean over the states of the cross-entropy, summed over the first `count` goals.

    On a CPU the goals are processed one after another, and those beyond `count` cost nothing. On other platforms all C
    are processed at once: a loop whose length is known only on the device would synchronise with the host in every
    iteration. `bucketed` keeps C small there.
    """
    return _value_and_gradient(head, wanted, count)[0]


def _value_and_gradient(head: TakenHead, wanted: Wanted, count: Array) -> tuple[Array, TakenHead]:
    found: tuple[Array, TakenHead] = jax.lax.platform_dependent(
        head, wanted, count, cpu=_goal_by_goal, default=_all_goals
    )
    return found


def _goal_by_goal(head: TakenHead, wanted: Wanted, count: Array) -> tuple[Array, TakenHead]:
    def add(c: Array, total: tuple[Array, TakenHead]) -> tuple[Array, TakenHead]:
        loss, so_far = total
        more, gradient = _one_goal(head, head.gain[c], head.shift[c], wanted.target[c], wanted.known[c])
        return loss + more, TakenHead(
            trunk=so_far.trunk + gradient.trunk,
            gain=so_far.gain.at[c].set(gradient.gain),
            shift=so_far.shift.at[c].set(gradient.shift),
            weight=so_far.weight + gradient.weight,
            bias=so_far.bias + gradient.bias,
        )

    nothing: TakenHead = jax.tree.map(jnp.zeros_like, head)
    total: tuple[Array, TakenHead] = jax.lax.fori_loop(0, count, add, (jnp.zeros(()), nothing))
    return total


def _all_goals(head: TakenHead, wanted: Wanted, count: Array) -> tuple[Array, TakenHead]:
    """All goals at once, in four sums over (goal, state, unit) of which none is written out.

    Each sum computes its summands again, which are a few operations on numbers that stay in the cache. The barriers
    keep the compiler from sharing them between the sums: it would write them to memory.
    """
    known = wanted.known & (jnp.arange(len(head.gain)) < count)[:, None]
    size, share = head.trunk.shape[1], known / len(head.trunk)
    mean = jnp.mean(head.trunk * head.gain[:, None] + head.shift[:, None], axis=-1)
    x, active = _centred(head, mean)
    scale = jax.lax.rsqrt(jnp.mean(x**2, axis=-1) + EPSILON)
    total, output = jnp.sum(active, axis=-1), jnp.sum(active * x, axis=-1)
    logit = scale * output + head.bias
    loss = jnp.sum(optax.sigmoid_binary_cross_entropy(logit, wanted.target) * share)
    slope = (jax.nn.sigmoid(logit) - wanted.target) * share
    by_scale = slope * scale
    back = by_scale, by_scale * total / size, by_scale * output * scale**2 / size
    gain, shift = _sums_over_states(head, mean, *back)
    trunk, weight = _sums_over_goals(head, mean, *back)
    return loss, TakenHead(trunk, gain, shift, weight, slope.sum(axis=0))


def _centred(
    head: TakenHead, mean: Float[Array, "C n"]
) -> tuple[Float[Array, "C n hidden"], Float[Array, "C n hidden"]]:
    """The numbers before their normalisation, less their mean, and the weights of those that pass the ReLU."""
    x = head.trunk * head.gain[:, None] + (head.shift[:, None] - mean[..., None])
    return x, jnp.where(x > 0, head.weight, 0.0)


def _sums_over_states(
    head: TakenHead, mean: Array, by_scale: Array, first: Array, second: Array
) -> tuple[Float[Array, "C hidden"], Float[Array, "C hidden"]]:
    """Gradients of gain and shift."""
    head, mean = jax.lax.optimization_barrier((head, mean))
    x, active = _centred(head, mean)
    before = by_scale[..., None] * active - (first[..., None] + second[..., None] * x)
    return jnp.sum(before * head.trunk, axis=1), jnp.sum(before, axis=1)


def _sums_over_goals(
    head: TakenHead, mean: Array, by_scale: Array, first: Array, second: Array
) -> tuple[Float[Array, "n hidden"], Float[Array, "n hidden"]]:
    """Gradients of the trunk and of the outputs' weights."""
    head, mean = jax.lax.optimization_barrier((head, mean))
    x, active = _centred(head, mean)
    before = by_scale[..., None] * active - (first[..., None] + second[..., None] * x)
    trunk = jnp.sum(before * head.gain[:, None], axis=0)
    return trunk, jnp.sum(by_scale[..., None] * jnp.maximum(x, 0.0), axis=0)


def _one_goal(
    head: TakenHead, gain: Float[Array, "hidden"], shift: Float[Array, "hidden"], target: Array, known: Array
) -> tuple[Array, TakenHead]:
    """Loss about one goal, and its gradient; the gradients of gain and shift are those of this goal alone."""
    trunk, size = head.trunk, head.trunk.shape[1]
    mixed = trunk * gain + shift
    x = mixed - jnp.mean(mixed, axis=-1, keepdims=True)
    scale = jax.lax.rsqrt(jnp.mean(x**2, axis=-1) + EPSILON)
    # The scale is positive, so it can be taken out of the ReLU.
    active = jnp.where(x > 0, head.weight, 0.0)
    output = jnp.sum(active * x, axis=-1)
    logit = scale * output + head.bias
    share = known / len(trunk)
    loss = jnp.sum(optax.sigmoid_binary_cross_entropy(logit, target) * share)
    slope = (jax.nn.sigmoid(logit) - target) * share
    # The backward pass of the normalisation, with z = scale · x: scale · (dz - mean(dz) - z · mean(z · dz)).
    by_scale = slope * scale
    back = by_scale * jnp.sum(active, axis=-1) / size, by_scale * output * scale**2 / size
    before = by_scale[:, None] * active - (back[0][:, None] + back[1][:, None] * x)
    return loss, TakenHead(
        trunk=before * gain,
        gain=jnp.sum(before * trunk, axis=0),
        shift=jnp.sum(before, axis=0),
        weight=by_scale[:, None] * jnp.maximum(x, 0.0),
        bias=slope,
    )


def _forward(head: TakenHead, wanted: Wanted, count: Array) -> tuple[Array, TakenHead]:
    return _value_and_gradient(head, wanted, count)


def _backward(gradient: TakenHead, cotangent: Array) -> tuple[TakenHead, None, None]:
    scaled: TakenHead = jax.tree.map(lambda g: g * cotangent, gradient)
    return scaled, None, None


goals_loss.defvjp(_forward, _backward)
