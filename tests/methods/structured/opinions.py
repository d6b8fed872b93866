"""Detectors whose opinion is given, and steps and memories made by hand."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from saplan.algebra import Product
from saplan.methods.structured.edge_detector import EdgeDetector, EdgeScores
from saplan.methods.structured.memory import Memory, count_visits, empty_memory, remember
from saplan.rl.rollout import Trajectory

take_in = jax.jit(remember, static_argnums=1)
count = jax.jit(count_visits, static_argnums=1)


class Opinion(EdgeDetector):
    """Says of every edge what `judge(ρ, δρ)` says, as a logit."""

    judge: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, space: Product, rho: Any, delta: Any) -> EdgeScores:
        shape = jnp.broadcast_shapes(rho.shape, delta.shape)
        logit = jnp.asarray(self.judge(jnp.broadcast_to(rho, shape), jnp.broadcast_to(delta, shape)), jnp.float32)
        return EdgeScores(logit, logit, jnp.zeros(shape[:-1]))


def opinion(space: Product, judge: Callable[..., Any]) -> Opinion:
    return Opinion(EdgeDetector.init(jax.random.key(0), space, 2).network, judge)


def memory_of(space: Product, changes: Any, capacity: int, explored: Any = (), executed: Any = ()) -> Memory:
    """𝓑 with these changes in this order, after these visits."""
    memory, _ = remember(
        empty_memory(space, capacity, 2**14), space, jnp.array(changes, jnp.float32), jnp.ones(len(changes), bool)
    )
    visits = jnp.array([*explored, *executed], jnp.float32).reshape(-1, space.size)
    exploring = jnp.arange(len(visits)) < len(explored)
    counted: Memory = count(memory, space, visits, exploring, ~exploring)
    return counted


def steps_of(space: Product, slots: int = 2, **given: Any) -> Trajectory:
    """Recorded steps; what is not given is that of a step at ρ = 0 which did nothing, exploring."""
    shape = jnp.asarray(next(iter(given.values()))).shape
    shape = shape[:-1] if next(iter(given)) in ("rho", "delta", "after", "subgoal") else shape
    rho = jnp.asarray(given.get("rho", jnp.zeros((*shape, space.size))), jnp.float32)
    delta = jnp.asarray(given.get("delta", jnp.zeros_like(rho)), jnp.float32)
    after = space.compose(rho, delta)
    changed = jnp.any(after != rho, axis=-1)
    flags = {
        name: jnp.asarray(given.get(name, jnp.full(shape, default)), bool)
        for name, default in {
            "explores": True,
            "success": False,
            "failure": False,
            "game_over": False,
            "lost": False,
        }.items()
    }
    return Trajectory(
        observation=jnp.zeros((*shape, slots), jnp.int16),
        rho=rho,
        subgoal=jnp.asarray(given.get("subgoal", jnp.zeros_like(rho)), jnp.float32),
        choice=jnp.asarray(given.get("choice", jnp.zeros(shape)), jnp.int32),
        action=jnp.asarray(given.get("action", jnp.zeros(shape)), jnp.int32),
        delta=delta,
        after=after,
        changed=changed,
        clock=jnp.asarray(given.get("clock", jnp.ones(shape)), jnp.int32),
        **flags,
    )
