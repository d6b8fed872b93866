"""What the edge detector and the policy expect of transitions: ends, cost, probability of success and steps."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from saplan.interpreter.program import interpretable
from saplan.methods.agent import PlannerSettings
from saplan.methods.structured.memory import marginals

if TYPE_CHECKING:
    from saplan.methods.structured.agent import StructuredAgent

BATCHES = (64, 512)
"""Batch sizes for scoring edges: few, so that few programs are compiled; small, so that they stay in cache."""
SURE = 0.9
"""Probability from which on a change may lead to a combination of values that training never visited."""


def in_batches(rho: Float[np.ndarray, "n K"], price: Callable[[np.ndarray], Any]) -> list[np.ndarray]:
    """Arrays that `price` returns for many ρ, computed in batches of few sizes; only the last batch is padded."""
    parts = []
    for start in range(0, len(rho), BATCHES[-1]):
        part = rho[start : start + BATCHES[-1]]
        size = next(b for b in BATCHES if b >= len(part))
        parts.append(price(np.concatenate([part, np.repeat(part[:1], size - len(part), axis=0)])))
    # All batches have been dispatched before the first result is waited for.
    return [np.concatenate([np.asarray(x) for x in column])[: len(rho)] for column in zip(*parts, strict=True)]


@interpretable
@partial(jax.jit, static_argnames="planner")
def price_spread(agent: "StructuredAgent", rho: Float[Array, "n K"], planner: PlannerSettings) -> tuple[Array, ...]:
    """The fields of `SpreadEdges`. A change is spread evenly, as wide as its standard deviation says."""
    space, memory = agent.game.space, agent.memory
    places = (2 * jnp.arange(planner.outcomes) + 1) / planner.outcomes - 1
    # Rounding leaves a trace of spread in certain changes as well; without this, a used hammer would nearly exist.
    spread = jnp.where(memory.spread > jnp.array(space.grain), memory.spread, 0.0)
    changes = memory.delta[:, None] + jnp.sqrt(3.0) * places[:, None] * spread[:, None]
    ends = space.compose(rho[:, None, None], changes)
    log_success, steps = edge_outlook(agent, rho, planner)
    cost = -log_success + planner.time_weight * steps
    # Places that training never visited are trusted only as far as the evidence goes.
    carried, known = carry_over(agent, ends, planner)
    # Inside the range, an unvisited combination is trusted where the detector is sure of the change that leads there:
    # at a boundary that training has probed, it is not.
    sure = (log_success > jnp.log(SURE)) & jnp.any(agent.evidence.present) & planner.beyond
    met = agent.visited(space, carried) | sure[:, :, None]
    real = agent.trusted[:, None] & space.contains(ends) & known & met
    likely = agent.trusted & (log_success > jnp.log(planner.floor)) & this_side(agent, rho)
    probability = jnp.where(agent.trusted, jnp.exp(log_success), jnp.nan)
    return ends, real & likely[:, :, None], jnp.where(likely, cost, jnp.inf), probability, steps


@interpretable
@partial(jax.jit, static_argnames="planner")  # a third of the overhead of `filter_jit`, paid per batch
def price_edges(agent: "StructuredAgent", rho: Float[Array, "n K"], planner: PlannerSettings) -> tuple[Array, ...]:
    """The fields of `Edges`. An edge costs -log of its success plus the price of its time; infinite where cut."""
    space, memory = agent.game.space, agent.memory
    # Changes are rounded to the grain of the graph: two that nearly cancel would else create ever new nodes.
    grain = jnp.array(space.grain)
    ends = space.compose(rho[:, None], jnp.round(memory.delta / grain) * grain)
    log_success, steps = edge_outlook(agent, rho, planner)
    cost = -log_success + planner.time_weight * steps
    # A value that training never met is trusted only as far as the evidence goes.
    known = carry_over(agent, ends, planner)[1]
    likely = (log_success > jnp.log(planner.floor)) & this_side(agent, rho)
    real = agent.trusted & space.contains(ends) & known & likely
    probability = jnp.where(agent.trusted, jnp.exp(log_success), jnp.nan)
    return ends, jnp.where(real, cost, jnp.inf), probability, steps


def carry_over(
    agent: "StructuredAgent", rho: Float[Array, "... K"], planner: PlannerSettings
) -> tuple[Float[Array, "... K"], Bool[Array, "..."]]:
    """ρ moved into the range that training met where opinions carry over, and whether each of its values is trusted."""
    evidence, space = agent.evidence, agent.game.space
    counts = agent.memory.explored + agent.memory.executed
    beyond = evidence.beyond(rho)
    # The outermost bins hold all values beyond them, so they say nothing about a value outside the range.
    outermost = (space.bin(rho) == 0) | (space.bin(rho) == jnp.array(space.bins) - 1)
    visited = (marginals(counts, space, rho) > 0) & ~(outermost & jnp.any(beyond, axis=-2))
    carries = jnp.any(beyond & evidence.carries & planner.beyond, axis=-2) & ~visited
    carried = jnp.where(carries, jnp.clip(rho, evidence.met[0], evidence.met[1]), rho)
    return carried, jnp.all(visited | carries, axis=-1)


def this_side(agent: "StructuredAgent", rho: Float[Array, "n K"]) -> Bool[Array, "n C"]:
    """Whether each ρ lies on this side of all boundaries that are suspected for a transition."""
    if agent.bounds is None:
        return jnp.ones((len(rho), len(agent.memory.delta)), bool)
    return ~jnp.any((rho[:, None] <= agent.bounds[0]) | (rho[:, None] >= agent.bounds[1]), axis=-1)


def edge_outlook(
    agent: "StructuredAgent", rho: Float[Array, "n K"], planner: PlannerSettings
) -> tuple[Float[Array, "n C"], Float[Array, "n C"]]:
    """Logarithm of the success probability, and expected steps, of every transition at every ρ."""
    scores = agent.detector(agent.game.space, agent.familiar(rho)[:, None], agent.memory.delta[None])
    logit = scores.success if planner.calibrated else scores.feasible
    return jax.nn.log_sigmoid(logit), jnp.exp(jnp.clip(scores.log_steps, 0.0, 5.0))


@interpretable
@eqx.filter_jit
def price_first(
    agent: "StructuredAgent", state: Any, planner: PlannerSettings
) -> tuple[Float[Array, "n C"], Float[Array, "n C"]]:
    """Cost and expected steps of every first transition, by the policy's value: it sees how far the objects are."""
    settings = agent.settings
    rho = jax.vmap(agent.game.attributes)(state)
    log_success, _ = edge_outlook(agent, rho, planner)
    trunk = agent.in_use.policy.trunk(jax.vmap(agent.game.observe)(state), rho)
    value = jax.vmap(lambda d: agent.policy.execution_log_value(trunk, d), out_axes=1)(agent.memory.delta)
    steps = jnp.clip(1 + (value - log_success) / jnp.log(settings.discount), 1.0, settings.attempt_steps)
    return -log_success + planner.time_weight * steps, steps
