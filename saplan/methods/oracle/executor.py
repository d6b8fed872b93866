"""Executors of an oracle: walk to the item that serves the chosen change, and choose by paths in the exact graph."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from saplan.goals import Goal
from saplan.interpreter.program import AnyKey
from saplan.methods.decision import Alternatives, Decision
from saplan.methods.executor import Executor
from saplan.methods.oracle.walks import FAR, all_walks, lengths, walk_on
from saplan.planning import Outcome, Route

if TYPE_CHECKING:
    from saplan.methods.oracle.agent import Oracle

SLACK = 6.0
"""First edges whose paths cost at most this much more than the best are compared by the true length of their walk."""


class OracleExecutor(Executor[Any]):
    """Walks to the item that serves the chosen change."""

    def __init__(self, oracle: "Oracle", state: Any, goals: Goal) -> None:
        """Measure all walks on the maps."""
        super().__init__(oracle.game, state, goals)
        self.oracle, self.walk_lengths = oracle, all_walks(state)
        self.change = np.zeros(len(self.rho), np.int32)
        self.item = np.full(len(self.rho), -1, np.int32)

    def late(self) -> Bool[np.ndarray, "tasks"]:
        return np.zeros(len(self.rho), bool)

    def act(self, key: AnyKey) -> Int[Array | np.ndarray, "tasks"]:
        action = self.oracle.knowledge.action[self.change]
        return walk_on(self.state, self.walk_lengths, self.item, action)

    def set_out(self, task: int, change: int, item: int) -> None:
        """Set out for a change, and for the item that serves it (-1 if the change needs none)."""
        self.change[task], self.item[task] = change, item
        self.delta[task] = self.oracle.delta[change]

    def nearest(self) -> tuple[Float[np.ndarray, "tasks T"], Int[np.ndarray, "tasks T"]]:
        """Steps of every change by its nearest item, and that item."""
        served = self.oracle.knowledge.served
        length = np.asarray(lengths(self.state, self.walk_lengths))[:, None, :]
        length = np.where(served, length, FAR)
        anywhere = ~served.any(axis=1)
        return (
            np.where(anywhere, 1, length.min(axis=2) + 1).astype(float),
            np.where(anywhere, -1, length.argmin(axis=2)),
        )


class GraphOracle(OracleExecutor):
    """Follows shortest paths in the exact attribute graph; the true length of the first walk decides between them."""

    def __init__(self, oracle: "Oracle", state: Any, goals: Goal) -> None:
        """Start without plans."""
        super().__init__(oracle, state, goals)
        self.routes: list[Route | None] = [None] * len(self.rho)

    def decide(self, tasks: Int[np.ndarray, "m"]) -> list[Decision]:
        """Choose the next change of these tasks."""
        unrouted = [k for k in tasks if (route := self.routes[k]) is None or not route.knows(self.rho[k])]
        if unrouted:
            goals = Goal(self.low[unrouted], self.high[unrouted])
            for k, route in zip(unrouted, self.oracle.routes(self.rho[unrouted], goals), strict=True):
                self.routes[k] = route
        steps, item = self.nearest()
        return [self._decide(int(k), steps[k], item[k]) for k in tasks]

    def _decide(self, task: int, steps: Float[np.ndarray, "T"], item: Int[np.ndarray, "T"]) -> Decision:
        route, rho = self.routes[task], self.rho[task]
        assert route is not None
        successors = route.successors(rho)
        if successors is None:
            return Decision(route.failure)
        cost = successors.with_first(steps)
        alternatives = Alternatives(
            rho, successors.probability, steps.copy(), cost, self.oracle.change, "steps", step_price=1.0
        )
        close = successors.nearer & np.isfinite(cost) & (successors.total <= successors.total.min() + SLACK)
        if not close.any():
            return Decision(route.failure, None, alternatives, route)
        chosen = int(np.argmin(np.where(close, cost, np.inf)))
        self.set_out(task, chosen, int(item[chosen]))
        return Decision(Outcome.FOUND, chosen, alternatives, route)
