"""Random moves: which change happens after an action, counted in training, and an executor that plans with it.

The counts are pooled over ρ, since the algebra makes a change the same everywhere, and kept per place as well, since
walls and holes are not. A place that was seldom visited has the pooled shares of the changes that are feasible there.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int32

from saplan.algebra import Product
from saplan.goals import Goal
from saplan.interpreter.program import AnyKey
from saplan.methods.agent import PlannerSettings
from saplan.methods.decision import Decision
from saplan.methods.executor import Executor
from saplan.methods.structured.memory import cell
from saplan.planning import Outcome
from saplan.planning.random_moves import ChanceGraph, Chances
from saplan.rl.rollout import Trajectory

if TYPE_CHECKING:
    from saplan.methods.structured.agent import StructuredAgent

CELLS = 2**12
"""Places with counts of their own."""
TRUST = 8.0
"""Steps at a place that the pooled shares count for."""
PATIENCE = 0.999
"""Share of its value that a goal keeps per step of delay."""
BATCH = 256


class ActionOutcomes(eqx.Module):
    """How often every action led to every change; the last column is no change."""

    pooled: Int32[Array, "actions changes"]
    here: Int32[Array, "cells actions changes"]
    arrived: Int32[Array, "cells"]
    lost: Int32[Array, "cells"]
    """How often a change led to a place, and how often the game was lost there."""


def no_outcomes(actions: int, capacity: int) -> ActionOutcomes:
    """Counts of nothing."""
    zeros = partial(jnp.zeros, dtype=jnp.int32)
    return ActionOutcomes(
        zeros((actions, capacity + 1)), zeros((CELLS, actions, capacity + 1)), zeros(CELLS), zeros(CELLS)
    )


def count_outcomes(counts: ActionOutcomes, space: Product, flat: Trajectory, entry: Int[Array, "n"]) -> ActionOutcomes:
    """Adds the steps of a rollout; `entry` is the change that each of them made."""
    last = counts.pooled.shape[1] - 1
    made = jnp.where(flat.changed, entry, last)
    known = (made >= 0) & (flat.changed | ~flat.game_over)  # a change beyond the capacity of 𝓑 has no number
    place = jnp.where(known, cell(space, flat.rho, CELLS), CELLS)
    end = jnp.where(flat.changed, cell(space, flat.after, CELLS), CELLS)
    return ActionOutcomes(
        counts.pooled.at[jnp.where(known, flat.action, len(counts.pooled)), made].add(1, mode="drop"),
        counts.here.at[place, flat.action, made].add(1, mode="drop"),
        counts.arrived.at[end].add(1, mode="drop"),
        counts.lost.at[end].add(flat.lost.astype(jnp.int32), mode="drop"),
    )


@jax.jit
def price_outcomes(agent: "StructuredAgent", rho: Float[Array, "n K"]) -> tuple[Array, Array]:
    """The fields of `Chances`: ρ after every change of 𝓑 and without one, and its probability after every action."""
    space, counts = agent.game.space, agent.outcomes
    assert counts is not None
    ends = space.compose(rho[:, None], agent.memory.delta)
    scores = agent.detector(space, rho[:, None], agent.memory.delta[None])
    # The counts know nothing of places that training never visited. ℕ has no end, and its last bin holds all values
    # beyond it, so that a visit there does not tell which of them was met.
    met = agent.visited(space, ends) & ~jnp.any(agent.evidence.beyond(ends), axis=(-2, -1))
    inside = agent.trusted & space.contains(ends) & met
    feasible = inside & (jax.nn.sigmoid(scores.feasible) > agent.settings.threshold)
    pool = counts.pooled / jnp.maximum(counts.pooled.sum(axis=-1, keepdims=True), 1)
    prior = jnp.where(feasible[:, None], pool[:, :-1], 0.0)
    prior = jnp.concatenate([prior, 1 - prior.sum(axis=-1, keepdims=True)], axis=-1)
    place = cell(space, rho, CELLS)
    seen = counts.here[place]
    shares = (seen + TRUST * prior) / (seen.sum(axis=-1, keepdims=True) + TRUST)
    alive = 1 - counts.lost[place] / jnp.maximum(counts.arrived[place], 1)
    inside = jnp.concatenate([inside, jnp.ones((len(rho), 1), bool)], axis=-1)
    probability = jnp.where(inside[:, None], shares, 0.0) * alive[:, None, None]
    every = jnp.concatenate([jnp.where(inside[:, :-1, None], ends, rho[:, None]), rho[:, None]], axis=1)
    return jnp.broadcast_to(every[:, None], (*probability.shape, rho.shape[-1])), probability


def chances_of(agent: "StructuredAgent", rho: Float[np.ndarray, "n K"]) -> Chances:
    """The possible ends of every action from a batch of nodes."""
    parts = []
    for start in range(0, len(rho), BATCH):
        part = rho[start : start + BATCH]
        padded = np.concatenate([part, np.repeat(part[:1], BATCH - len(part), axis=0)])
        parts.append([np.asarray(x)[: len(part)] for x in price_outcomes(agent, padded)])
    return Chances(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class OutcomeExecutor(Executor[Any]):
    """Tasks carried out one action at a time, each the one that most likely leads to the goal in the end."""

    def __init__(self, agent: "StructuredAgent", state: Any, goals: Goal, planner: PlannerSettings) -> None:
        """Start without plans."""
        super().__init__(agent.game, state, goals)
        grain = np.asarray(agent.game.space.grain, np.float32)
        self.graph = ChanceGraph(grain, partial(chances_of, agent), planner.max_nodes, PATIENCE)
        self.chosen = np.zeros(len(self.rho), np.int32)
        self.random = np.random.default_rng(0)

    def late(self) -> Bool[np.ndarray, "tasks"]:
        return self.clock >= 1

    def ended(self, task: int, success: bool) -> None:
        """Every step is an attempt: they are not recorded."""

    def decide(self, tasks: Int[np.ndarray, "m"]) -> list[Decision]:
        """Choose the best action of these tasks; a random one where no action leads to the goal."""
        goals = np.concatenate([self.low[tasks], self.high[tasks]], axis=1)
        _, first, same = np.unique(goals, axis=0, return_index=True, return_inverse=True)
        value = np.zeros((len(tasks), len(self.game.actions)))
        for group, one in enumerate(first):
            alike = same.reshape(-1) == group
            value[alike] = self.graph.action_values(self.rho[tasks[alike]], self.low[tasks[one]], self.high[tasks[one]])
        some = value.max(axis=1) > 0
        self.chosen[tasks] = np.where(some, value.argmax(axis=1), self.random.integers(value.shape[1], size=len(tasks)))
        return [Decision(Outcome.FOUND if leads else Outcome.UNREACHABLE) for leads in some]

    def act(self, key: AnyKey) -> Int[Array | np.ndarray, "tasks"]:
        return jnp.asarray(self.chosen)
