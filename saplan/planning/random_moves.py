"""Plans where every action has several possible ends: the greatest probability of reaching the goal.

`expectation` plans with changes on ℝ that vary around their mean. Here the change itself is random, as on ice: an
action meant to lead right may lead up or down. Value iteration over all reachable ρ finds the action that most likely
leads to the goal in the end, including one that avoids a hole rather than approaches the goal.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int64

from saplan.algebra.hashing import hashed, mixers
from saplan.goals import meets
from saplan.planning.graph import NO_NODE, Nodes
from saplan.planning.node_index import Index

SWEEPS = 2000
ENOUGH = 1e-6
"""Probability that values may still change by when iteration ends."""


class Chances(NamedTuple):
    """The possible ends of every action from a batch of nodes; the rest of the probability is a failure for good."""

    ends: Float32[np.ndarray, "n actions Q K"]
    probability: Float32[np.ndarray, "n actions Q"]


ChanceFunction = Callable[[Nodes], Chances]


class ChanceGraph:
    """All reachable ρ with the possible ends of every action. It has no goal."""

    def __init__(
        self, grain: Float32[np.ndarray, "K"], chances: ChanceFunction, max_nodes: int, patience: float
    ) -> None:
        """`patience` is the share of its value that a goal keeps per step of delay."""
        self.grain, self.chances, self.max_nodes, self.patience = grain, chances, max_nodes, patience
        self._index, self._mixers = Index(), mixers(len(grain))
        self.rho = np.zeros((0, len(grain)), np.float32)
        self._ends: list[np.ndarray] = []
        self._probability: list[np.ndarray] = []
        self._solved: dict[bytes, Float[np.ndarray, "nodes actions"]] = {}

    def action_values(
        self, rho: Nodes, low: Float[np.ndarray, "K"], high: Float[np.ndarray, "K"]
    ) -> Float[np.ndarray, "m actions"]:
        """Discounted probability of reaching the goal after each action from several ρ."""
        self._cover(rho)
        name = low.tobytes() + high.tobytes()
        if name not in self._solved:
            self._solved[name] = self._after(self._values(low, high))
        values: Float[np.ndarray, "m actions"] = self._solved[name][self._index.find(self._keys(rho))]
        return values

    def _cover(self, starts: Nodes) -> None:
        """Expand every ρ reachable from `starts`, up to the bound; nodes beyond it have no actions."""
        waiting = self._meet(starts)
        if len(waiting):
            self._solved.clear()
        while len(waiting):
            ends, probability = self.chances(waiting)
            shape = probability.shape
            room = len(self.rho) < self.max_nodes
            flat = ends.reshape(-1, ends.shape[-1])
            possible = (probability > 0).reshape(-1)
            waiting = self._meet(flat[possible]) if room else waiting[:0]
            nodes = self._index.find(self._keys(flat)).reshape(shape)
            self._ends.append(np.where(probability > 0, nodes, NO_NODE))
            self._probability.append(probability)

    def _meet(self, rho: Nodes) -> Float32[np.ndarray, "new K"]:
        _, new = self._index.intern(self._keys(rho))
        fresh: Float32[np.ndarray, "new K"] = rho[new]
        self.rho = np.concatenate([self.rho, fresh])
        return fresh

    def _keys(self, rho: Nodes) -> Int64[np.ndarray, "m"]:
        return hashed(np.rint(rho / self.grain).astype(np.int64), self._mixers)

    def _values(self, low: Float[np.ndarray, "K"], high: Float[np.ndarray, "K"]) -> Float[np.ndarray, "nodes"]:
        """The greatest discounted probability of reaching the goal from every node."""
        at_goal = np.all(meets(low, high, self.rho), axis=1)
        value: Float[np.ndarray, "nodes"] = at_goal.astype(float)
        for _ in range(SWEEPS):
            new = np.where(at_goal, 1.0, self._after(value).max(axis=1))
            change, value = np.abs(new - value).max(), new
            if change < ENOUGH:
                break
        return value

    def _after(self, value: Float[np.ndarray, "nodes"]) -> Float[np.ndarray, "nodes actions"]:
        """Expected value after every action of every node; zero for nodes that were not expanded."""
        ends, probability = np.concatenate(self._ends), np.concatenate(self._probability)
        then = np.where(ends == NO_NODE, 0.0, value[np.maximum(ends, 0)])
        after = np.zeros((len(value), probability.shape[1]))
        after[: len(ends)] = self.patience * (then * probability).sum(axis=-1)
        return after
