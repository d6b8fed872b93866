"""Certificates that a goal is unreachable, and a check of them in exact arithmetic.

The check shares no code with the solver: it needs the problem, fractions, and a few lines for each kind of reason.
Every reason speaks about counts n_j of changes with, for every row, low <= value(ρ) + Σ a_j n_j <= high. Rows are named
by (attribute, label): the values of a line or a circle have label -1, labels have a row each, parities of groups too.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from saplan.algebra import CircleRow, GroupRow, LineRow
from saplan.planning.landmarks import Reach
from saplan.planning.parity import parities
from saplan.planning.problem import Problem

RowName = tuple[int, int]
PARITY = -2
"""The label of the first parity of a group; the next ones count down from it."""
Weights = tuple[tuple[RowName, Fraction], ...]
Bounds = dict[int, tuple[int, int | None]]
"""The least and the greatest count of changes that a split has bounded."""


@dataclass(frozen=True)
class Weighted:
    """Weights of the rows under which no counts raise the weighted sum as far as the goal needs (a Farkas ray)."""

    weights: Weights


@dataclass(frozen=True)
class Modular:
    """Weights of exact rows under which every change adds a whole number, and the goal needs a fraction."""

    weights: Weights


@dataclass(frozen=True)
class Split:
    """A change is made at most `at` times or more often, and both are impossible."""

    change: int
    at: int
    below: "Reason"
    above: "Reason"


Reason = Weighted | Modular | Split


@dataclass(frozen=True)
class Certificate:
    """A box that no path leaves, and why the changes that are possible in it do not reach the goal."""

    reach: Reach
    reason: Reason | None
    """None: the box does not meet the goal."""


@dataclass(frozen=True)
class ExactRow:
    """One row of the equation in fractions."""

    low: Fraction | None
    high: Fraction | None
    value: Fraction
    """What the start contributes."""
    least: dict[int, Fraction]
    """By change: the least that it adds."""
    most: dict[int, Fraction]
    size: int = 0
    """Positions of a circle, 0 elsewhere."""
    whole: bool = True


def exact_rows(problem: Problem, changes: list[int]) -> dict[RowName, ExactRow]:
    """The rows of a problem in fractions, for some of its changes."""
    rows: dict[RowName, ExactRow] = {}
    for i, row in enumerate(problem.rows):
        start = Fraction(float(problem.start[i]))
        if i in problem.wound:
            continue  # proofs leave it out: a whole number of turns is always possible
        if isinstance(row, LineRow | CircleRow):
            ends = problem.bounds if isinstance(row, LineRow) else _ends(problem, i)
            low, high = (Fraction(float(end[i])) if math.isfinite(end[i]) else None for end in ends)
            delta = {j: Fraction(float(problem.changes[j, i])) for j in changes}
            width = {j: Fraction(float(problem.width[j, i])) for j in changes}
            least, most = {j: delta[j] - width[j] for j in changes}, {j: delta[j] + width[j] for j in changes}
            size, whole = (row.size, True) if isinstance(row, CircleRow) else (0, row.whole)
            rows[i, -1] = ExactRow(low, high, start, least, most, size, whole)
        elif isinstance(row, GroupRow):
            # What a change adds to being at an element of a group depends on the element. Its parities do not.
            rows.update({(i, PARITY - k): _parity(problem, i, f, changes) for k, f in enumerate(parities(row))})
        elif row is not None:
            ends_at = problem.ends_at(i)
            for v in range(row.size):
                adds = {j: Fraction(_flow(int(problem.changes[j, i]), row.size, v)) for j in changes}
                low, high = Fraction(int(ends_at == {v})), Fraction(int(v in ends_at))
                rows[i, v] = ExactRow(low, high, Fraction(int(start == v)), adds, adds)
    return rows


def _parity(problem: Problem, i: int, values: tuple[int, ...], changes: list[int]) -> ExactRow:
    """A parity of a group as a circle of two positions."""
    ends = {values[v] for v in problem.ends_at(i)}
    end = Fraction(ends.pop()) if len(ends) == 1 else None
    adds = {j: Fraction(values[int(problem.changes[j, i])]) for j in changes}
    return ExactRow(end, end, Fraction(values[int(problem.start[i])]), adds, adds, 2)


def _ends(problem: Problem, i: int) -> tuple[dict[int, float], dict[int, float]]:
    """The goal on a circle: a single position, else nothing."""
    ends = problem.ends_at(i)
    return ({i: min(ends)}, {i: max(ends)}) if len(ends) == 1 else ({i: -math.inf}, {i: math.inf})


def _flow(code: int, size: int, label: int) -> int:
    """What a change of label adds to being at a label."""
    start, end = divmod(code - 1, size)
    return int(code > 0) * (int(end == label) - int(start == label))


def check(problem: Problem, certificate: Certificate) -> bool:
    """Whether a certificate proves that no path leads to the goal."""
    if not _is_closed(problem, certificate.reach):
        return False
    if certificate.reason is None:
        return not _meets(problem, certificate.reach)
    changes = [j for j in range(len(problem.costs)) if certificate.reach.enabled[j]]
    return proves(exact_rows(problem, changes), changes, certificate.reason, {})


def proves(rows: dict[RowName, ExactRow], changes: list[int], reason: Reason, bounds: Bounds) -> bool:
    """Whether a reason rules out all counts within the bounds."""
    if isinstance(reason, Split):
        low, high = bounds.get(reason.change, (0, None))
        below = {**bounds, reason.change: (low, reason.at)}
        above = {**bounds, reason.change: (max(low, reason.at + 1), high)}
        return proves(rows, changes, reason.below, below) and proves(rows, changes, reason.above, above)
    if any(high is not None and low > high for low, high in bounds.values()):
        return True
    check_weights = _weighted if isinstance(reason, Weighted) else _modular
    return all(name in rows for name, _ in reason.weights) and check_weights(rows, changes, reason.weights, bounds)


def _weighted(rows: dict[RowName, ExactRow], changes: list[int], weights: Weights, bounds: Bounds) -> bool:
    """Whether the most that counts add to the weighted sum is less than the goal needs."""
    needs, adds = Fraction(0), dict.fromkeys(changes, Fraction(0))
    for name, weight in weights:
        row = rows[name]
        end = row.low if weight > 0 else row.high
        if row.size or (end is None and weight != 0):
            return False
        needs += weight * (end - row.value) if end is not None else 0
        for j in changes:
            adds[j] += weight * (row.most[j] if weight > 0 else row.least[j])
    most = Fraction(0)
    for j in changes:
        low, high = bounds.get(j, (0, None))
        if adds[j] > 0 and high is None:
            return False
        most += adds[j] * (low if adds[j] <= 0 or high is None else high)
    return most < needs


def _modular(rows: dict[RowName, ExactRow], changes: list[int], weights: Weights, bounds: Bounds) -> bool:
    """Whether all counts add whole numbers to the weighted sum where the goal needs a fraction."""
    needs, adds = Fraction(0), dict.fromkeys(changes, Fraction(0))
    for name, weight in weights:
        row = rows[name]
        exact = row.low is not None and row.low == row.high and row.least == row.most
        if not exact or (row.size and (weight * row.size).denominator != 1):
            return False
        needs += weight * (row.low - row.value)  # type: ignore[operator]
        for j in changes:
            adds[j] += weight * row.most[j]
    for j in changes:
        low, high = bounds.get(j, (0, None))
        if low == high:
            needs -= adds[j] * low
        elif adds[j].denominator != 1:
            return False
    return needs.denominator != 1


def _is_closed(problem: Problem, reach: Reach) -> bool:
    """Whether the start lies in the box, and no change that is possible in it leads out."""
    for i in range(len(problem.rows)):
        if problem.is_line(i) and not reach.low[i] <= problem.start[i] <= reach.high[i]:
            return False
        values = reach.values[i]
        if values is not None and int(problem.start[i]) not in values:
            return False
    return all(_stays(problem, reach, j) for j in range(len(problem.costs)) if problem.usable[j])


def _stays(problem: Problem, reach: Reach, j: int) -> bool:
    """Whether a change is impossible everywhere in the box and not enabled, or enabled and keeps within the box."""
    needs, possible, keeps = problem.needs, True, True
    for i, row in enumerate(problem.rows):
        low, high = reach.low[i], reach.high[i]
        if isinstance(row, LineRow):
            adds, width = problem.changes[j, i], problem.width[j, i]
            possible &= high + adds + width >= row.low and low + adds - width <= row.high
            possible &= needs is None or (needs.low[j, i] <= high and needs.high[j, i] >= low)
            keeps &= (adds + width <= 0 or high == math.inf) and (adds - width >= 0 or low == -math.inf)
        elif (values := reach.values[i]) is not None and row is not None:
            allowed = problem.allowed(j, i)
            moves = [(v, w) for v, w in row.moves(problem.changes[j, i]) if v in values]
            moves = [(v, w) for v, w in moves if allowed is None or v in allowed]
            possible &= bool(moves)
            keeps &= all(w in values for _, w in moves)
    return bool(keeps if reach.enabled[j] else not possible)


def _meets(problem: Problem, reach: Reach) -> bool:
    """Whether the goal meets the box."""
    low, high = problem.bounds
    lines = (i for i in range(len(problem.rows)) if problem.is_line(i))
    dials = (i for i, values in enumerate(reach.values) if values is not None)
    return all(low[i] <= reach.high[i] and high[i] >= reach.low[i] and low[i] <= high[i] for i in lines) and all(
        (reach.values[i] or frozenset()) & problem.ends_at(i) for i in dials
    )
