"""A lower bound on the cost from any ρ to a goal: one price per row of the equation, found once per problem.

The prices y solve the dual of the linear relaxation, so y·δρ_j <= cost_j for every change j. Then
h(ρ) = max(0, y·(target - ρ)) never falls by more than a change costs: it is consistent, and costs one product per ρ.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from saplan.planning.equation import Equation, build_equation
from saplan.planning.landmarks import enabled_changes
from saplan.planning.problem import Problem

NOISE = 1e-9
"""Prices below this are rounding."""


@dataclass(frozen=True)
class Potential:
    """h(ρ), the least cost from ρ to the goal as far as prices per attribute can express it."""

    equation: Equation
    prices: Float[np.ndarray, "rows"]
    """y: what one unit in each row is worth."""
    target: float
    """y·target: the worth of the goal, at the bounds that the prices press against."""

    def __call__(self, rho: Float[np.ndarray, "n K"]) -> Float[np.ndarray, "n"]:
        """A lower bound on the cost from each ρ to the goal."""
        return np.asarray(np.maximum(0.0, self.target - self.equation.values(np.asarray(rho, float)) @ self.prices))


def potential(problem: Problem) -> Potential:
    """The potential that is greatest at the start; zero everywhere if the relaxation has no solution."""
    equation = build_equation(problem, enabled_changes(problem).enabled, follow=True)
    found = equation.from_start(problem.start).relax()
    prices = found.row_duals if found.status == 0 else np.zeros(len(equation.attributes))
    prices = np.where(np.abs(prices) < NOISE, 0.0, prices) * (np.array(equation.attributes, int) >= 0)
    prices = prices * _share(equation, prices)
    low, high = np.array(equation.program.row_low), np.array(equation.program.row_high)
    bound = np.where(prices > 0, low, np.where(prices < 0, high, 0.0))
    return Potential(equation, prices, float(prices @ bound))


def _share(equation: Equation, prices: Float[np.ndarray, "rows"]) -> float:
    """The share of the prices at which no change gains more than it costs: 1, but for rounding."""
    problem, attributes, labels = equation.problem, np.array(equation.attributes, int), np.array(equation.labels, int)
    plain = np.where(labels < 0, prices, 0.0)
    columns = equation.program.matrix[:, : len(problem.costs)]
    gain = np.asarray(columns.T @ plain) if len(plain) else np.zeros(len(problem.costs))
    for dial in equation.dials:
        worth = np.zeros(dial.size)
        rows = np.flatnonzero((attributes == dial.attribute) & (labels >= 0))
        worth[labels[rows]] = prices[rows]
        best = np.full(len(gain), -np.inf)
        np.maximum.at(best, dial.change, worth[dial.to] - worth[dial.start])
        gain += np.where(np.isfinite(best), best, 0.0)
    gains = np.isfinite(problem.costs) & (gain > NOISE)
    return min(1.0, float(np.min(problem.costs[gains] / gain[gains], initial=1.0)))
