"""What attributes can become by arithmetic alone, and so why a goal cannot be reached, before anybody searches.

A state that is come to is ρ + Σ n_j δρ_j with counts n_j that are not negative. Where these are let be fractions, the
most and the least of every attribute are linear programmes, solved in milliseconds. Nothing that they rule out can be
reached; what they allow may still be impossible.
"""

from typing import Any

import numpy as np
import scipy.optimize
from jaxtyping import Float

from saplan.algebra import Integer, Natural, Real
from saplan.games import Game
from saplan.goals import Goal, format_goal

SLACK = 1e-6

Range = tuple[float, float]


class Arithmetic:
    """The changes of a game from one ρ on."""

    def __init__(self, game: Game[Any], rho: Float[np.ndarray, "K"]) -> None:
        """Nothing is ruled out where changes are not named, or vary in size as those of quantities do."""
        self.game, self.rho = game, np.asarray(rho, float)
        blocks = game.space.blocks
        changes = np.array([delta for _, delta in game.admissible()], float).reshape(-1, len(blocks))
        unknown = not len(changes) or any(isinstance(block, Real) for block in blocks)
        counts = [] if unknown else [k for k, block in enumerate(blocks) if isinstance(block, Natural | Integer)]
        self.changes, self.counts = changes, counts
        self.lowest = np.array([0.0 if isinstance(block, Natural) else -np.inf for block in blocks])

    def span(self, k: int) -> Range:
        """The least and the most that an attribute can become."""
        if k not in self.counts:
            return -np.inf, np.inf
        least, most = (self._least(sign * self.changes[:, k]) for sign in (1.0, -1.0))
        return float(np.round(self.rho[k] + least, 4)), float(np.round(self.rho[k] - most, 4))

    def allows(self, goal: Goal) -> bool:
        """Whether all conditions together can hold."""
        return bool(np.isfinite(self._least(np.zeros(len(self.changes)), goal)))

    def _least(self, cost: Float[np.ndarray, "T"], goal: Goal | None = None) -> float:
        """The least of a linear function of the counts; infinite where no counts will do, or there is no bound."""
        low, high = self.lowest, np.full(len(self.rho), np.inf)
        if goal is not None:
            low, high = np.maximum(low, np.asarray(goal.low)), np.asarray(goal.high, float)
        rows = self.changes[:, self.counts].T
        above, below = (high - self.rho)[self.counts] + SLACK, (self.rho - low)[self.counts] + SLACK
        sides, bounds = np.concatenate([rows, -rows]), np.concatenate([above, below])
        real = np.isfinite(bounds)
        if not real.any():
            return 0.0 if not cost.any() else -np.inf
        found = scipy.optimize.linprog(cost, sides[real], bounds[real])
        if found.status == 0:
            return float(found.fun)
        return np.inf if found.status == 2 else -np.inf


def why_not(game: Game[Any], rho: Float[np.ndarray, "K"], goal: Goal) -> str | None:
    """Why a goal is out of reach by the rules, in a sentence; None where arithmetic does not rule it out."""
    arithmetic, space = Arithmetic(game, rho), game.space
    low, high = np.asarray(goal.low, float), np.asarray(goal.high, float)
    for k in arithmetic.counts:
        least, most = arithmetic.span(k)
        if low[k] > most + SLACK:
            return f"{space.names[k]} can become at most {space.blocks[k].format(np.floor(most + SLACK))} from here"
        if high[k] < least - SLACK:
            return (
                f"{space.names[k]} can become no less than {space.blocks[k].format(np.ceil(least - SLACK))} from here"
            )
    if arithmetic.counts and not arithmetic.allows(goal):
        return f"each of {format_goal(space, goal)} can be had, but not all at once"
    return game.rules_out(goal)
