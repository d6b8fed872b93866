"""A lower bound on the cost from any ρ to a goal: one price per row of the equation, found once per problem.

The prices y solve the dual of the linear relaxation, so y·δρ_j <= cost_j for every change j. Then
h(ρ) = max(0, y·(target - ρ)) never falls by more than a change costs: it is consistent, and costs one product per ρ.

A change often costs more as its supply runs out: the last red object is farther away than the first of eight. Where an
attribute only ever falls, by one at a time, each of its levels is left once, and changes are priced level by level.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from saplan.algebra import LineRow
from saplan.planning.equation import Equation, build_equation
from saplan.planning.integer_program import Program
from saplan.planning.landmarks import enabled_changes
from saplan.planning.problem import Problem

NOISE = 1e-9
"""Prices below this are rounding."""
ENOUGH_PRICES = 48
"""Goals with the same free attributes that get prices of their own; further ones take the best of these prices."""
HIGHEST = 64
"""Levels of an attribute that are priced one by one; changes made above them are priced like those at the top."""


@dataclass(frozen=True)
class Levels:
    """The least costs of changes by the level of an attribute that they lower by one, and that nothing raises."""

    attribute: int
    lowers: Bool[np.ndarray, "C"]
    costs: Float[np.ndarray, "levels C"]
    """Least cost of each change made at each level, from zero on; only where it lowers the attribute."""


def falling(problem: Problem) -> list[int]:
    """Attributes that only ever fall, by one at a time; each change counts for the first that it lowers."""
    usable, found, taken = problem.changes[problem.usable], list[int](), np.zeros(int(problem.usable.sum()), bool)
    for i, row in enumerate(problem.rows):
        one = usable[:, i]
        if isinstance(row, LineRow) and row.whole and np.all((one == 0) | (one == -1)) and np.any((one < 0) & ~taken):
            found.append(i)
            taken |= one < 0
    return found


def read_levels(problem: Problem, rho: Float[np.ndarray, "n K"], cost: Float[np.ndarray, "n C"]) -> tuple[Levels, ...]:
    """The levels of a problem, read off known edges; at a level without any, the least cost of the change counts."""
    found, taken = [], np.zeros(len(problem.costs), bool)
    for i in falling(problem):
        lowers = problem.usable & (problem.changes[:, i] == -1) & ~taken
        taken |= lowers
        level = np.clip(np.rint(rho[:, i]), 0, HIGHEST).astype(np.int64)
        table = np.full((HIGHEST + 1, len(problem.costs)), np.inf)
        for j in np.flatnonzero(lowers):
            np.minimum.at(table[:, j], level, cost[:, j])
        table = np.where(np.isfinite(table), table, problem.costs)
        found.append(Levels(i, lowers, np.maximum(table, problem.costs)))
    return tuple(found)


@dataclass(frozen=True)
class Potential:
    """h(ρ), the least cost from ρ to the goal as far as prices per attribute can express it."""

    equation: Equation
    prices: Float[np.ndarray, "rows"]
    """y: what one unit in each row is worth."""
    target: float
    """y·target: the worth of the goal, at the bounds that the prices press against."""
    levels: tuple[tuple[int, Float[np.ndarray, "levels"]], ...] = ()
    """Attributes with the worth of what is left of each, by its level: more than their price where changes cost less
    than they gain."""

    def __call__(self, rho: Float[np.ndarray, "n K"]) -> Float[np.ndarray, "n"]:
        """A lower bound on the cost from each ρ to the goal."""
        left = self.target - self.equation.values(np.asarray(rho, float)) @ self.prices
        for attribute, worth in self.levels:
            left -= worth[np.clip(np.rint(rho[:, attribute]), 0, len(worth) - 1).astype(np.int64)]
        return np.asarray(np.maximum(0.0, left))


def potential(problem: Problem, levels: Sequence[Levels] = ()) -> Potential:
    """The potential that is greatest at the start; zero everywhere if the relaxation has no solution."""
    levels = [one for one in levels if problem.start[one.attribute] <= HIGHEST]
    equation = build_equation(problem, enabled_changes(problem).enabled, follow=True)
    program = equation.from_start(problem.start)
    for one in levels:
        _split(program, problem, one)
    found = program.relax()
    rows = len(equation.attributes)
    prices = found.row_duals[:rows] if found.status == 0 else np.zeros(rows)
    prices = np.where(np.abs(prices) < NOISE, 0.0, prices) * (np.array(equation.attributes, int) >= 0)
    return _at_prices(equation, prices, levels)


def _at_prices(equation: Equation, prices: Float[np.ndarray, "rows"], levels: Sequence[Levels]) -> Potential:
    """The potential of given prices, lowered where a change would gain more than it costs."""
    gain = _gains(equation, prices)
    levelled = np.any([one.lowers for one in levels], axis=0) if levels else np.zeros(len(gain), bool)
    share = _share(equation.problem.costs, np.where(levelled, 0.0, gain))
    prices, gain = share * prices, share * gain
    low, high = np.array(equation.program.row_low), np.array(equation.program.row_high)
    worth = tuple(_worth(one, gain) for one in levels)
    return Potential(equation, prices, float(_target(prices, low, high)), worth)


def _target(
    prices: Float[np.ndarray, "*n rows"], low: Float[np.ndarray, "rows"], high: Float[np.ndarray, "rows"]
) -> Float[np.ndarray, "*n"]:
    """The least worth of a ρ that satisfies the goal; minus infinity where a price presses against no bound."""
    bound = np.where(prices > 0, low, np.where(prices < 0, high, 0.0))
    return np.asarray(np.sum(prices * bound, axis=-1))


class Potentials:
    """Potentials of many goals over the same changes. Their prices are found for a few, and serve the others.

    Prices that are right for one goal give a bound for every other: which changes cost how much has nothing to do with
    the goal. This holds where every row is a line; goals with other rows get prices of their own.
    """

    def __init__(self, levels: Sequence[Levels]) -> None:
        """Start without prices."""
        self.levels = levels
        self._known: dict[tuple[bytes, bytes], list[Potential]] = {}

    def __call__(self, problem: Problem) -> Potential:
        """The potential of a problem: of its own, or the best of those that are known."""
        low, high = problem.bounds
        known = self._known.setdefault((np.isfinite(low).tobytes(), np.isfinite(high).tobytes()), [])
        if len(known) < ENOUGH_PRICES or np.max(problem.start) > HIGHEST:
            found = potential(problem, self.levels)
            if all(isinstance(problem.rows[i], LineRow) for i in found.equation.attributes if i >= 0):
                known.append(found)
            return found
        rows = np.array(known[0].equation.attributes, int)
        prices = np.stack([one.prices for one in known])
        targets = _target(prices, low[rows], high[rows])
        height = targets - prices @ problem.start[rows]
        for place, (attribute, _) in enumerate(known[0].levels):
            level = int(np.rint(problem.start[attribute]))
            height -= [one.levels[place][1][level] for one in known]
        best = int(np.argmax(height))
        return replace(known[best], target=float(targets[best]))


def _split(program: Program, problem: Problem, levels: Levels) -> None:
    """Price the changes that lower an attribute level by level: a level is left once, by one of them."""
    most = int(np.rint(problem.start[levels.attribute]))
    by_level: list[list[int]] = [[] for _ in range(most)]
    for change in map(int, np.flatnonzero(levels.lowers)):
        program.cost[change] = 0.0
        columns = [program.column(float(levels.costs[level, change])) for level in range(1, most + 1)]
        program.row([change, *columns], [1.0, *[-1.0] * most], 0.0, 0.0)
        for level, column in enumerate(columns):
            by_level[level].append(column)
    for columns in by_level:
        program.row(columns, [1.0] * len(columns), -np.inf, 1.0)


def _worth(levels: Levels, gain: Float[np.ndarray, "C"]) -> tuple[int, Float[np.ndarray, "levels"]]:
    """What changes that lower an attribute gain beyond their costs, summed from each level downwards."""
    beyond = np.where(levels.lowers, gain - levels.costs, 0.0).max(axis=1)
    beyond[0] = 0.0
    return levels.attribute, np.cumsum(np.maximum(beyond, 0.0))


def _share(costs: Float[np.ndarray, "C"], gain: Float[np.ndarray, "C"]) -> float:
    """The share of the prices at which no change gains more than it costs: 1, but for rounding."""
    gains = np.isfinite(costs) & (gain > NOISE)
    return min(1.0, float(np.min(costs[gains] / gain[gains], initial=1.0)))


def _gains(equation: Equation, prices: Float[np.ndarray, "rows"]) -> Float[np.ndarray, "C"]:
    """What every change gains at these prices, at most."""
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
    return gain
