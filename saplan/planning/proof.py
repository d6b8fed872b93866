"""Finds certificates that a goal is unreachable; `proof_checker` checks them.

Three reasons are tried, from the most to the least readable: weights that no change raises (a linear program), weights
under which every change adds a whole number (integer elimination), and a split on the count of a change with a reason
for each side. Weights come from floating point, so each is rounded to fractions and checked before it is returned.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import scipy
from jaxtyping import Float

from saplan.planning.landmarks import enabled_changes
from saplan.planning.problem import Problem
from saplan.planning.proof_checker import (
    Bounds,
    Certificate,
    ExactRow,
    Modular,
    Reason,
    RowName,
    Split,
    Weighted,
    Weights,
    check,
    exact_rows,
    proves,
)

DENOMINATORS = (1, 12, 1000, 10**6)
"""Rounding of weights, from the simplest numbers on."""
SPLITS = 60
"""Splits of one certificate, at most."""
CELLS = 20_000
"""Size of the matrix that integer elimination is tried on."""
DEPTH = 40


def find_certificate(problem: Problem) -> Certificate | None:
    """A checked certificate that no path leads to the goal; None where there is none or none was found."""
    reach = enabled_changes(problem)
    if not reach.goal:
        certificate = Certificate(reach, None)
    else:
        changes = [int(j) for j in np.flatnonzero(reach.enabled)]
        reason = _Search(exact_rows(problem, changes), changes).reason({}, 0)
        if reason is None:
            return None
        certificate = Certificate(reach, reason)
    return certificate if check(problem, certificate) else None


@dataclass
class _Search:
    """Looks for a reason why no counts satisfy some rows."""

    rows: dict[RowName, ExactRow]
    changes: list[int]
    splits: int = 0
    names: list[RowName] = field(init=False)
    most: Float[np.ndarray, "rows C"] = field(init=False)
    least: Float[np.ndarray, "rows C"] = field(init=False)
    low: Float[np.ndarray, "rows"] = field(init=False)
    high: Float[np.ndarray, "rows"] = field(init=False)

    def __post_init__(self) -> None:
        """The rows in floating point, less what the start contributes."""
        self.names = [name for name, row in self.rows.items() if row.low is not None or row.high is not None]
        rows = [self.rows[name] for name in self.names]
        self.most = np.array([[float(row.most[j]) for j in self.changes] for row in rows])
        self.least = np.array([[float(row.least[j]) for j in self.changes] for row in rows])
        self.low = np.array([-np.inf if row.low is None else float(row.low - row.value) for row in rows])
        self.high = np.array([np.inf if row.high is None else float(row.high - row.value) for row in rows])

    def reason(self, bounds: Bounds, depth: int) -> Reason | None:
        """A reason for all counts within the bounds, or None."""
        if not self.names:
            return None
        point = self._point(bounds)
        found = self._weighted(bounds) if point is None else self._modular(bounds)
        if found is not None or point is None:
            return found
        if self.splits >= SPLITS or depth >= DEPTH or not len(point):
            return None
        self.splits += 1
        place = int(np.argmax(np.abs(point - np.rint(point))))
        change, at = self.changes[place], int(np.floor(point[place] + 1e-6))
        low, high = bounds.get(change, (0, None))
        above = self.reason({**bounds, change: (max(low, at + 1), high)}, depth + 1)
        below = None if above is None else self.reason({**bounds, change: (low, at)}, depth + 1)
        return None if above is None or below is None else Split(change, at, below, above)

    def _point(self, bounds: Bounds) -> Float[np.ndarray, "C"] | None:
        """Counts, perhaps fractions, that satisfy all rows but those of circles; None where there are none."""
        lines = [k for k, name in enumerate(self.names) if not self.rows[name].size]
        sides = np.concatenate([self.least[lines], -self.most[lines]])
        ends = np.concatenate([self.high[lines], -self.low[lines]])
        real = np.isfinite(ends)
        limits = [bounds.get(j, (0, None)) for j in self.changes]
        if any(high is not None and low > high for low, high in limits):
            return None
        if not self.changes:
            return None if np.any(ends < 0) else np.zeros(0)
        found = scipy.optimize.linprog(np.ones(len(self.changes)), sides[real], ends[real], bounds=limits)
        return np.asarray(found.x) if found.status == 0 else None

    def _weighted(self, bounds: Bounds) -> Reason | None:
        """Weights w in [-1, 1] with the widest gap between what the goal needs and what counts within bounds add."""
        up = [k for k, name in enumerate(self.names) if np.isfinite(self.low[k]) and not self.rows[name].size]
        down = [k for k, name in enumerate(self.names) if np.isfinite(self.high[k]) and not self.rows[name].size]
        adds = np.concatenate([self.most[up], -self.least[down]]).T
        gain = np.concatenate([self.low[up], -self.high[down]])
        # A change that nothing bounds must add nothing. A bounded one gets a column for the most that it adds.
        limits = [bounds.get(j, (0, None)) for j in self.changes]
        capped = [k for k, (low, high) in enumerate(limits) if low > 0 or high is not None]
        sides = []
        for k, (low, high) in enumerate(limits):
            own = np.array([-1.0 if k == other else 0.0 for other in capped])
            if high is None:
                sides.append(np.append(adds[k], 0 * own))
            sides += [np.append(adds[k] * times, own) for times in (low, high) if times is not None and k in capped]
        costs = np.ones(len(capped))
        box = [(0, 1)] * len(gain) + [(None, None)] * len(costs)
        if not len(gain):
            return None
        found = scipy.optimize.linprog(
            np.append(-gain, costs),
            np.array(sides) if sides else None,
            np.zeros(len(sides)) if sides else None,
            bounds=box,
        )
        if found.status != 0 or found.fun > -1e-9:
            return None
        weights = np.zeros(len(self.names))
        np.add.at(weights, up, found.x[: len(up)])
        np.subtract.at(weights, down, found.x[len(up) : len(gain)])
        return self._rounded(weights, bounds)

    def _rounded(self, weights: Float[np.ndarray, "rows"], bounds: Bounds) -> Reason | None:
        """The simplest fractions near the weights that prove the point."""
        least = np.min(np.abs(weights[np.abs(weights) > 1e-9]), initial=np.inf)
        for scaled in (weights / least, weights):
            for denominator in DENOMINATORS:
                near = [Fraction(float(w)).limit_denominator(denominator) for w in scaled]
                reason = Weighted(_named(self.names, near))
                if proves(self.rows, self.changes, reason, bounds):
                    return reason
        return None

    def _modular(self, bounds: Bounds) -> Reason | None:
        """Weights under which all free counts add whole numbers and the goal needs a fraction."""
        fixed = {j: low for j, (low, high) in bounds.items() if low == high}
        free = [j for j in self.changes if j not in fixed]
        names = [name for name in self.names if _is_exact(self.rows[name])]
        rows = [self.rows[name] for name in names]
        if not rows or len(rows) * (len(free) + len(rows)) > CELLS:
            return None
        circles = [k for k, row in enumerate(rows) if row.size]
        matrix = [
            [int(row.most[j]) for j in free] + [row.size * (k == circle) for circle in circles]
            for k, row in enumerate(rows)
        ]
        sides = [int(row.low - row.value - sum(row.most[j] * n for j, n in fixed.items())) for row in rows]  # type: ignore[operator]
        weights = fractional_weights(matrix, sides)
        if weights is None:
            return None
        reason = Modular(_named(names, weights))
        return reason if proves(self.rows, self.changes, reason, bounds) else None


def _is_exact(row: ExactRow) -> bool:
    exact = row.whole and row.low is not None and row.low == row.high and row.least == row.most
    return exact and row.value.denominator == 1


def _named(names: list[RowName], weights: list[Fraction]) -> Weights:
    return tuple((name, weight) for name, weight in zip(names, weights, strict=True) if weight)


def fractional_weights(matrix: list[list[int]], sides: list[int]) -> list[Fraction] | None:
    """Weights y with y·matrix whole and y·sides a fraction: proof that no whole x has matrix·x = sides; else None.

    Columns are combined until the matrix is a triangle H; then x is whole if and only if the solution z of H z = sides
    is, and a fraction in place k makes the k-th row of H's inverse the weights (Kronecker's theorem).
    """
    columns = [np.array(column, object) for column in zip(*matrix, strict=True)]
    pivots: list[int] = []
    for row in range(len(matrix)):
        rest = range(len(pivots), len(columns))
        while len(live := [c for c in rest if columns[c][row]]) > 1:
            least = min(live, key=lambda c: abs(columns[c][row]))
            for c in live:
                if c != least:
                    columns[c] = columns[c] - (columns[c][row] // columns[least][row]) * columns[least]
        if live:
            place = len(pivots)
            columns[place], columns[live[0]] = columns[live[0]], columns[place]
            pivots.append(row)
    solution: list[Fraction] = []
    for k, row in enumerate(pivots):
        known = sum((columns[c][row] * solution[c] for c in range(k)), Fraction(0))
        solution.append((sides[row] - known) / Fraction(int(columns[k][row])))
        if solution[-1].denominator != 1:
            weights = [Fraction(0)] * len(matrix)
            for c in range(k, -1, -1):
                rest_sum = sum(
                    (weights[pivots[d]] * int(columns[c][pivots[d]]) for d in range(c + 1, k + 1)), Fraction(0)
                )
                weights[pivots[c]] = (int(c == k) - rest_sum) / Fraction(int(columns[c][pivots[c]]))
            return weights
    return None
