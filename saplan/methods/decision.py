"""One decision of one task: what was weighed, what was chosen, and the plan behind it.

A decision keeps the numbers that were compared. `render/explanation.py` turns them into words when a person looks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from saplan.planning import AnyRoute, Outcome, Plan

Change = Callable[[Float[np.ndarray, "K"], int], Float[np.ndarray, "K"]]
"""ρ and the number of a transition → its change δρ."""


@dataclass(frozen=True)
class Alternatives:
    """All transitions from one ρ, as they were compared."""

    rho: Float[np.ndarray, "K"]
    """ρ as the agent perceived it."""
    probability: Float[np.ndarray, "C"]
    """Estimated probability of success of each; NaN where the method has no estimate."""
    steps: Float[np.ndarray, "C"]
    """Expected environment steps of each from the present state; NaN where the method has no estimate."""
    cost: Float[np.ndarray, "C"]
    """Cost of the whole path that begins with each; infinite where no path does."""
    change: Change
    unit: str
    """Unit of the costs."""
    floor: float = 0.0
    """Transitions that are not more likely than this were cut."""
    step_price: float = 0.0
    """What one expected step costs in that unit; 0 where time has no price."""


@dataclass(frozen=True)
class Decision:
    """What a task tries next, and why."""

    outcome: Outcome
    """Where it is neither FOUND nor NONE, no path is known and the choice is random."""
    chosen: int | None = None
    """The transition to try next; None where the method has none to choose, or keeps the one before."""
    alternatives: Alternatives | None = None
    """The transitions that were compared; None where there were none."""
    route: AnyRoute | None = None
    """What the search found."""

    @property
    def changes(self) -> list[Float[np.ndarray, "K"]]:
        """The changes of the plan, in order."""
        if self.alternatives is None:
            return []
        starts = (np.array(rho, np.float32) for rho in self.plan.rho)
        return [self.alternatives.change(rho, step.transition) for rho, step in zip(starts, self.plan.path)]  # noqa: B905

    @cached_property
    def plan(self) -> Plan:
        """The path that begins with the chosen transition, read off the search when it is first asked for."""
        if self.route is None or self.alternatives is None or self.outcome is not Outcome.FOUND:
            return Plan(self.outcome)
        return self.route.plan(self.alternatives.rho, self.chosen)
