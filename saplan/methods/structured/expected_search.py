"""The search of an agent whose changes are uncertain: plans in expectation, over a landscape that serves all tasks."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from saplan.goals import Goal
from saplan.interpreter.program import interpretable
from saplan.methods.agent import PlannerSettings
from saplan.methods.structured.memory import Memory
from saplan.methods.structured.pricing import in_batches, price_spread
from saplan.planning import ExpectedRoute, Landscape, Raised, SpreadEdges, expected_routes

if TYPE_CHECKING:
    from saplan.methods.structured.agent import StructuredAgent

CELL = 2
"""Grains per cell of the grid."""
REACH = 8
"""Cells of that grid within which a failure counts for its surroundings too: a boundary is not a single point."""


class ExpectedSearch:
    """Routes of least expected cost to any goals, in one landscape."""

    def __init__(self, agent: "StructuredAgent", planner: PlannerSettings) -> None:
        """Start with an empty landscape."""
        discrete = np.asarray(_spread(agent.memory)).max(axis=0) <= np.asarray(agent.game.space.grain)
        cells = np.asarray(agent.game.space.grain, np.float32) * np.where(discrete, 1, CELL)
        reach = (cells * np.where(discrete, 0, REACH)).astype(np.float32)
        # Without its policy, which planning does not ask: every call of a compiled program looks through all arrays.
        price = partial(spread_edges, eqx.tree_at(lambda a: a.policy, agent, None), planner)
        bounds = planner.max_nodes, planner.max_seconds
        self.begin = partial(Landscape, cells.astype(np.float32), price, *bounds, reach)
        self.landscape = self.begin()

    def __call__(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planner: PlannerSettings, raised: Sequence[Raised] = ()
    ) -> list[ExpectedRoute]:
        """Routes in expectation from several ρ to a goal each."""
        if self.landscape.full and not self.landscape.complete:
            self.landscape = self.begin()  # the surroundings of these ρ have no room in the old one
        return expected_routes(self.landscape, rho, np.asarray(goals.low), np.asarray(goals.high), raised)


def spread_edges(agent: "StructuredAgent", planner: PlannerSettings, rho: Float[np.ndarray, "n K"]) -> SpreadEdges:
    """All uncertain transitions from a batch of nodes."""
    return SpreadEdges(*in_batches(rho, lambda batch: price_spread(agent, batch, planner)))


@interpretable
@jax.jit
def _spread(memory: Memory) -> Float[Array, "C K"]:
    return memory.spread
