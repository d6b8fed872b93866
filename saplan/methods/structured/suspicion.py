"""Failures beyond the range of training: after a few of them, a boundary is suspected there.

A failure inside the range says something about its own ρ alone. Beyond it, nothing but an extrapolation said that the
change is possible. So failures count against the same transition wherever the coordinate lies as far out or farther:
after `ENOUGH` of them it is not planned there any more. A success as far out refutes them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Float32

from saplan.goals import Goal
from saplan.methods.agent import PlannerSettings
from saplan.methods.plan_executor import RouteFinder
from saplan.planning import AnyRoute, Outcome, Raised

if TYPE_CHECKING:
    from saplan.methods.structured.agent import StructuredAgent

ENOUGH = 3
"""Failures after which a boundary is taken for real."""
Met = Float32[np.ndarray, "2 K"]
"""Least and greatest value of every coordinate that training met; the first is above the second without evidence."""


def blamed(met: Met, delta: Float[np.ndarray, "K"], rho: Float[np.ndarray, "K"]) -> Bool[np.ndarray, "2 K"]:
    """The coordinates, below or above the range, that a failure of a change at ρ is blamed on.

    These are the coordinates that it moves farther out, if there are any, else all that lie beyond the range.
    """
    end = rho + delta
    out = np.stack([np.minimum(rho, end) < met[0], np.maximum(rho, end) > met[1]]) & (met[0] <= met[1])
    moved: Bool[np.ndarray, "2 K"] = out & np.stack([delta < 0, delta > 0])
    return moved if moved.any() else out


def boundaries(met: Met, deltas: Float[np.ndarray, "C K"], raised: Raised) -> Float32[np.ndarray, "2 C K"]:
    """Values from which on each transition has failed often enough, below and above; infinite where it has not."""
    shape = deltas.shape
    failures = np.zeros((2, *shape), int)
    bounds = np.stack([np.full(shape, -np.inf, np.float32), np.full(shape, np.inf, np.float32)])
    for rho, transition, _ in raised:
        below, above = blamed(met, deltas[transition], rho)
        failures[0, transition] += below
        failures[1, transition] += above
        bounds[0, transition, below] = np.maximum(bounds[0, transition], rho)[below]
        bounds[1, transition, above] = np.minimum(bounds[1, transition], rho)[above]
    nowhere = np.array([-np.inf, np.inf], np.float32)[:, None, None]
    return np.where(failures >= ENOUGH, bounds, nowhere).astype(np.float32)


def refuted(
    met: Met, deltas: Float[np.ndarray, "C K"], raised: Raised, rho: Float[np.ndarray, "K"], transition: int
) -> Raised:
    """The failures that remain after a success of a transition at ρ: those of others, and those farther out."""

    def stands(failed: Float[np.ndarray, "K"]) -> bool:
        below, above = blamed(met, deltas[transition], failed)
        return not bool(np.any((below & (rho <= failed)) | (above & (rho >= failed))))

    return [one for one in raised if one[1] != transition or stands(one[0])]


class BoundarySearch:
    """The search of an agent that suspects boundaries where changes keep failing beyond the range of training."""

    def __init__(self, agent: "StructuredAgent", planner: PlannerSettings) -> None:
        """Start without suspicions."""
        self.agent, self.planner = agent, planner
        self.finders: dict[bytes, RouteFinder] = {}

    def __call__(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planner: PlannerSettings, raised: Sequence[Raised] = ()
    ) -> Sequence[AnyRoute]:
        """Routes from several ρ to a goal each, on this side of the boundaries that failures in `raised` suggest."""
        raised = raised or [()] * len(rho)
        low, high = np.asarray(goals.low), np.asarray(goals.high)
        groups: dict[bytes, list[int]] = {}
        for task, failures in enumerate(raised):
            groups.setdefault(self._bounds(failures), []).append(task)
        found: dict[int, AnyRoute] = {}

        def search(finder: RouteFinder, tasks: list[int]) -> None:
            part = Goal(low[tasks], high[tasks])
            found.update(zip(tasks, finder(rho[tasks], part, planner, [raised[task] for task in tasks]), strict=True))

        for bounds, tasks in groups.items():
            search(self._finder(bounds), tasks)
        # Where no path is left, the suspicion may be wrong: some attempts fail by bad luck. Trying again is better
        # than giving up.
        lost = [task for task in found if self._suspects(raised[task]) and found[task].outcome is not Outcome.FOUND]
        if lost:
            search(self._finder(self._bounds(())), lost)
        return [found[task] for task in range(len(rho))]

    def _suspects(self, failures: Raised) -> bool:
        return self._bounds(failures) != self._bounds(())

    def _bounds(self, failures: Raised) -> bytes:
        agent = self.agent
        return boundaries(np.asarray(agent.evidence.met), np.asarray(agent.memory.delta), failures).tobytes()

    def _finder(self, name: bytes) -> RouteFinder:
        """The search on this side of some boundaries, made once."""
        if name not in self.finders:
            bounds = np.frombuffer(name, np.float32).reshape(2, *self.agent.memory.delta.shape)
            on_this_side = replace(self.agent, bounds=jnp.asarray(bounds) if np.isfinite(bounds).any() else None)
            self.finders[name] = on_this_side.plain_finder(self.planner)
        return self.finders[name]
