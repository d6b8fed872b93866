"""A mixed-integer linear program, collected row by row and solved by HiGHS. Failure is a status, not an exception."""

import copy
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are imported when they are first used: together they take longer than a small plan
from jaxtyping import Float, Int

if TYPE_CHECKING:
    import scipy.optimize
    import scipy.sparse

CLOSE = 1e-6
"""HiGHS keeps rows and whole numbers to within this much."""


class Status(enum.Enum):
    """How solving for counts of changes ended, with a sentence for people."""

    OPTIMAL = "counts were found, and none cost less"
    FEASIBLE = "counts were found, perhaps not the cheapest"
    INFEASIBLE = "no counts of changes add up to the goal"
    BOUND = "the solver reached its bound before it found counts"


@dataclass(frozen=True)
class Limits:
    """Bounds on one call of the solver."""

    nodes: int = 20_000
    """Nodes of branch and bound."""
    gap: float = 0.0
    """Relative distance to the lower bound at which the solver may stop."""
    seconds: float = np.inf
    """For callers with a person waiting: what is found then depends on the machine."""


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class Answer:
    """Values of all columns with their cost, and a lower bound on any cost."""

    status: Status
    values: Float[np.ndarray, "columns"]
    cost: float = np.inf
    bound: float = -np.inf
    nodes: int = 0


class Program:
    """Minimise cost·x for low <= x <= high, with rows between bounds and some columns whole."""

    def __init__(self) -> None:
        """No columns and no rows."""
        self.cost: list[float] = []
        self.low: list[float] = []
        self.high: list[float] = []
        self.whole: list[bool] = []
        self.rows: list[tuple[Int[np.ndarray, "n"], Float[np.ndarray, "n"]]] = []
        self.row_low: list[float] = []
        self.row_high: list[float] = []

    def column(self, cost: float = 0.0, low: float = 0.0, high: float = np.inf, whole: bool = True) -> int:
        """Adds a column and returns its number."""
        self.cost.append(cost)
        self.low.append(low)
        self.high.append(high)
        self.whole.append(whole)
        return len(self.cost) - 1

    def row(
        self, columns: Sequence[int] | np.ndarray, factors: Sequence[float] | np.ndarray, low: float, high: float
    ) -> int:
        """Adds low <= Σ factor·column <= high and returns its number."""
        self.rows.append((np.asarray(columns, int), np.asarray(factors, float)))
        self.row_low.append(low)
        self.row_high.append(high)
        return len(self.rows) - 1

    def copy(self) -> "Program":
        """The same program; rows and columns added to one are not added to the other."""
        other = copy.copy(self)
        for name, value in vars(self).items():
            setattr(other, name, list(value))
        return other

    @property
    def matrix(self) -> "scipy.sparse.csr_array":
        """The factors of all rows."""
        lengths = [len(columns) for columns, _ in self.rows]
        indices = np.concatenate([columns for columns, _ in self.rows]) if self.rows else np.zeros(0, int)
        data = np.concatenate([factors for _, factors in self.rows]) if self.rows else np.zeros(0)
        start = np.append(0, np.cumsum(lengths)).astype(int)
        return scipy.sparse.csr_array((data, indices, start), shape=(len(self.rows), len(self.cost)))

    def solve(self, limits: Limits = DEFAULT_LIMITS) -> Answer:
        """The cheapest whole solution within the limits."""
        found = self._milp(limits, presolve=True)
        if found.status in (3, 4) or (found.x is not None and not self._holds(np.asarray(found.x))):
            # Costs are not negative, so nothing is unbounded: presolve stopped early or returned a wrong point.
            found = self._milp(limits, presolve=False)
        nodes = int(found.mip_node_count or 0)
        if found.x is not None and self._holds(np.asarray(found.x)):
            whole = np.array(self.whole)
            values = np.where(whole, np.rint(found.x), found.x)
            cost = float(values @ np.array(self.cost))
            bound = cost if found.mip_dual_bound is None else min(float(found.mip_dual_bound), cost)
            status = Status.OPTIMAL if self._proven(cost, bound) else Status.FEASIBLE
            return Answer(status, values, cost, cost if status is Status.OPTIMAL else bound, nodes)
        nothing = np.zeros(len(self.cost))
        if found.status == 2:
            return Answer(Status.INFEASIBLE, nothing, np.inf, np.inf, nodes)
        bound = found.mip_dual_bound
        return Answer(Status.BOUND, nothing, np.inf, 0.0 if bound is None or not np.isfinite(bound) else bound, nodes)

    def _milp(self, limits: Limits, presolve: bool) -> "scipy.optimize.OptimizeResult":
        options: dict[str, float | int | bool] = {
            "presolve": presolve,
            "node_limit": limits.nodes,
            "mip_rel_gap": limits.gap,
        }
        if np.isfinite(limits.seconds):
            options["time_limit"] = limits.seconds
        rows = scipy.optimize.LinearConstraint(self.matrix, self.row_low, self.row_high) if self.rows else ()
        bounds = scipy.optimize.Bounds(self.low, self.high)
        whole = np.array(self.whole, int)
        return scipy.optimize.milp(self.cost, integrality=whole, bounds=bounds, constraints=rows, options=options)

    def _holds(self, x: Float[np.ndarray, "columns"]) -> bool:
        """Whether a point satisfies all bounds and rows once its whole columns are rounded."""
        x = np.where(self.whole, np.rint(x), x)
        value = self.matrix @ x
        slack = 1e-5 * (1 + np.abs(value))
        inside = np.all((x >= np.array(self.low) - CLOSE) & (x <= np.array(self.high) + CLOSE))
        return bool(inside and np.all((value >= self.row_low - slack) & (value <= self.row_high + slack)))

    def _proven(self, cost: float, bound: float) -> bool:
        """Whether no whole solution can cost less; with whole costs, less means at least one less."""
        costs = np.array(self.cost)
        unit = np.min(costs[costs > 0], initial=1.0)
        steps = costs / unit
        gap = (
            unit * (1 - 1e-3)
            if np.array_equal(steps, np.rint(steps)) and np.all(np.array(self.whole)[costs > 0])
            else 0.0
        )
        return bool(cost - bound <= max(gap, CLOSE * max(1.0, abs(cost))))

    def relax(self) -> "scipy.optimize.OptimizeResult":
        """The linear program without whole columns, with `row_duals` added: one price per row."""
        low, high, matrix = np.array(self.row_low), np.array(self.row_high), self.matrix
        at_most, at_least = np.flatnonzero(np.isfinite(high)), np.flatnonzero(np.isfinite(low))
        sides = scipy.sparse.vstack([matrix[at_most], -matrix[at_least]]) if self.rows else None
        ends = np.concatenate([high[at_most], -low[at_least]]) if self.rows else None
        found = scipy.optimize.linprog(self.cost, sides, ends, bounds=np.column_stack([self.low, self.high]))
        found.row_duals = np.zeros(len(self.rows))
        if found.status == 0 and self.rows:
            marginals = -np.asarray(found.ineqlin.marginals)
            np.subtract.at(found.row_duals, at_most, marginals[: len(at_most)])
            np.add.at(found.row_duals, at_least, marginals[len(at_most) :])
        return found
