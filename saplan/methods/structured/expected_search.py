"""The search of an agent whose changes are uncertain: plans in expectation, over a landscape that serves all tasks."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from saplan.algebra.base import EXACT
from saplan.goals import Goal
from saplan.interpreter.program import interpretable
from saplan.methods.agent import PlannerSettings
from saplan.methods.structured.evidence import block_ends
from saplan.methods.structured.memory import Memory
from saplan.methods.structured.pricing import in_batches, price_spread
from saplan.planning import ExpectedRoute, Landscape, Raised, SpreadEdges, expected_routes

if TYPE_CHECKING:
    from saplan.methods.structured.agent import StructuredAgent

CELL = 2
"""Grains per cell of the grid."""
REACH = 8
"""Cells of that grid within which a failure counts for its surroundings too: a boundary is not a single point."""


MARGIN = 2
"""Largest changes by which a landscape goes beyond the values that training met, starts and goals."""


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
        usual, self.margin = usual_box(agent)
        self.landscape = self.begin(usual)

    def __call__(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planner: PlannerSettings, raised: Sequence[Raised] = ()
    ) -> list[ExpectedRoute]:
        """Routes in expectation from several ρ to a goal each."""
        low, high = self._asked(rho, goals)
        box, room = self.landscape.box, not self.landscape.full or self.landscape.complete
        if not room or (low < box[0]).any() or (high > box[1]).any():
            # The surroundings of these ρ have no room in the old landscape.
            wider = np.minimum(box[0], low - self.margin), np.maximum(box[1], high + self.margin)
            self.landscape = self.begin(np.stack(wider))
        return expected_routes(self.landscape, rho, np.asarray(goals.low), np.asarray(goals.high), raised)

    def _asked(self, rho: Float[np.ndarray, "n K"], goals: Goal) -> Float[np.ndarray, "2 K"]:
        """Least and greatest values of starts and goals."""
        bounds = np.stack([np.asarray(goals.low), np.asarray(goals.high)])
        asked = np.concatenate([np.where(np.isfinite(bounds), bounds, rho), rho[None]])
        return np.stack([asked.min(axis=(0, 1)), asked.max(axis=(0, 1))])


def usual_box(agent: "StructuredAgent") -> tuple[Float[np.ndarray, "2 K"], Float[np.ndarray, "K"]]:
    """Least and greatest values of a landscape, and its margin: an open side ends beyond what training met.

    Where opinions carry over without end, the landscape would grow until there is no room. Sides on which the block
    itself ends need no box, and neither do circles and labels.
    """
    margin = MARGIN * np.abs(np.asarray(agent.memory.delta)).max(axis=0)
    met, nothing = np.asarray(agent.evidence.met), np.array([[-np.inf], [np.inf]])
    open_side = np.isnan(block_ends(agent.game.space)) & (np.abs(met) < EXACT)
    return np.where(open_side, met + np.stack([-margin, margin]), nothing), margin


def spread_edges(agent: "StructuredAgent", planner: PlannerSettings, rho: Float[np.ndarray, "n K"]) -> SpreadEdges:
    """All uncertain transitions from a batch of nodes."""
    return SpreadEdges(*in_batches(rho, lambda batch: price_spread(agent, batch, planner)))


@interpretable
@jax.jit
def _spread(memory: Memory) -> Float[Array, "C K"]:
    return memory.spread
