"""Rows for what changes need but do not use up: whatever a plan needs at some moment must have been brought about.

With an indicator y_j of "change j is made at all": a threshold θ above ρ_i needs other changes that together add
θ - ρ_i to attribute i. A position or label at which j is made needs a path there from the present one, taken along the
changes that the plan makes.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from saplan.algebra import LineRow
from saplan.planning.integer_program import Program
from saplan.planning.problem import Problem

FLOW_COLUMNS = 20_000
"""Columns of all paths to the values of a dial; beyond it paths are left out, and the ordering has to notice."""


@dataclass(frozen=True)
class Dial:
    """An attribute followed from value to value. Every arc is a change made at one value, with its own count."""

    attribute: int
    size: int
    change: Int[np.ndarray, "arcs"]
    column: Int[np.ndarray, "arcs"]
    start: Int[np.ndarray, "arcs"]
    to: Int[np.ndarray, "arcs"]


class Link(NamedTuple):
    """A column that may exceed 0 only if its indicator, another column, is 1."""

    column: int
    change: int
    """The change that the column counts."""
    indicator: int


@dataclass(frozen=True)
class Reach:
    """A box that holds every ρ on any path from the start, and the changes that can be made somewhere in it."""

    enabled: Bool[np.ndarray, "C"]
    low: Float[np.ndarray, "K"]
    high: Float[np.ndarray, "K"]
    values: tuple[frozenset[int] | None, ...]
    """The positions or labels of each attribute, None on a line and where all count as reached."""
    goal: bool
    """Whether the goal meets the box."""


def enabled_changes(problem: Problem) -> Reach:
    """The changes that can ever be made, if every change made once could be repeated at will."""
    lines = np.array([problem.is_line(i) for i in range(len(problem.rows))])
    start = np.asarray(problem.start, float)
    low, high = np.where(lines, start, -np.inf), np.where(lines, start, np.inf)
    values = [frozenset({int(start[i])}) if problem.is_dial(i) else None for i in range(len(start))]
    enabled = np.zeros(len(problem.costs), bool)
    while True:
        fresh = np.flatnonzero(problem.usable & ~enabled & _possible(problem, low, high, values))
        deltas, width = problem.changes[fresh], problem.width[fresh]
        high = np.where(lines & np.any(deltas + width > 0, axis=0), np.inf, high)
        low = np.where(lines & np.any(deltas - width < 0, axis=0), -np.inf, low)
        enabled[fresh] = True
        grown = [_moved(problem, i, enabled, found) for i, found in enumerate(values)]
        if not len(fresh) and grown == values:
            break
        values = grown
    bounds = problem.bounds
    meets = np.all(~lines | ((bounds[0] <= high) & (bounds[1] >= low)))
    ends = all(found is None or found & problem.ends_at(i) for i, found in enumerate(values))
    return Reach(enabled, low, high, tuple(values), bool(meets and ends and np.all(bounds[0] <= bounds[1])))


def _possible(
    problem: Problem, low: Float[np.ndarray, "K"], high: Float[np.ndarray, "K"], values: list[frozenset[int] | None]
) -> Bool[np.ndarray, "C"]:
    """The changes that some ρ in the box allows."""
    deltas, width = problem.changes, problem.width
    floor = np.array([row.low if isinstance(row, LineRow) else -np.inf for row in problem.rows])
    ceiling = np.array([row.high if isinstance(row, LineRow) else np.inf for row in problem.rows])
    possible = np.all((high + deltas + width >= floor) & (low + deltas - width <= ceiling), axis=1)
    if problem.needs is not None:
        possible &= np.all((problem.needs.low <= high) & (problem.needs.high >= low), axis=1)
    for i, found in enumerate(values):
        if found is not None:
            for j in np.flatnonzero(possible):
                starts = {v for v, _ in problem.rows[i].moves(deltas[j, i])}  # type: ignore[union-attr]
                allowed = problem.allowed(int(j), i)
                possible[j] = bool(found & (starts if allowed is None else starts & allowed))
    return np.asarray(possible)


def _moved(
    problem: Problem, i: int, enabled: Bool[np.ndarray, "C"], found: frozenset[int] | None
) -> frozenset[int] | None:
    """The values of a dial after any of the enabled changes."""
    if found is None:
        return None
    ends = set(found)
    for j in np.flatnonzero(enabled & (problem.changes[:, i] != 0)):
        allowed = problem.allowed(int(j), i)
        moves = problem.rows[i].moves(problem.changes[j, i])  # type: ignore[union-attr]
        ends |= {w for v, w in moves if v in found and (allowed is None or v in allowed)}
    return frozenset(ends)


def thresholds(problem: Problem) -> list[tuple[int, int, int]]:
    """Every (change, attribute, sign) whose threshold the present ρ does not satisfy for good: sign 1 is a least value.

    A change that itself uses up as much as its threshold has it in the equation already.
    """
    if problem.needs is None:
        return []
    found = []
    for sign, needed in ((1, problem.needs.low), (-1, -problem.needs.high)):
        uses = np.maximum(-sign * problem.changes, 0)
        floors = np.array([_floor(problem, i, sign) for i in range(problem.space.size)])
        implied = np.isfinite(floors) & (needed - uses <= floors)
        met = (needed <= sign * np.asarray(problem.start)) & (uses == 0)
        found += [(int(j), int(i), sign) for j, i in np.argwhere(np.isfinite(needed) & ~implied & ~met)]
    return [(j, i, sign) for j, i, sign in found if problem.usable[j] and problem.is_line(i)]


def _floor(problem: Problem, i: int, sign: int) -> float:
    row = problem.rows[i]
    if not isinstance(row, LineRow) or problem.width[:, i].any():
        return -np.inf
    return row.low if sign > 0 else -row.high


def add_landmarks(program: Program, problem: Problem, dials: tuple[Dial, ...]) -> list[Link]:
    """Adds the rows, and returns the links under which they hold: a count may exceed 0 only if its indicator is 1."""
    made: dict[int, int] = {}
    for change, attribute, sign in thresholds(problem):
        if program.high[change] > 0:
            if change not in made:
                made[change] = program.column(high=1.0)
            _threshold(program, problem, change, attribute, sign, made[change])
    links = [Link(change, change, indicator) for change, indicator in made.items()]
    for dial in dials:
        links += _visits(program, problem, dial)
    return links


def _threshold(program: Program, problem: Problem, change: int, attribute: int, sign: int, made: int) -> None:
    """What other changes add, less what earlier uses of this one took, makes up for what ρ lacks."""
    assert problem.needs is not None
    needed = problem.needs.low if sign > 0 else -problem.needs.high
    deltas, width = sign * problem.changes[:, attribute], problem.width[:, attribute]
    others = np.flatnonzero((deltas + width > 0) & (np.arange(len(deltas)) != change))
    uses = max(-float(deltas[change] + width[change]), 0.0)
    lacks = float(needed[change, attribute] - uses - sign * problem.start[attribute])
    columns, factors = np.append(others, [change, made]), np.append((deltas + width)[others], [-uses, -lacks])
    program.row(columns[factors != 0], factors[factors != 0], 0.0, np.inf)


def _visits(program: Program, problem: Problem, dial: Dial) -> list[Link]:
    """For every value at which a change other than a pure move is made, a path there from the present value.

    A circle of pure moves away from the present value costs something and brings nothing.
    """
    other = problem.changes.copy()
    other[:, dial.attribute] = 0
    tied = np.flatnonzero(other[dial.change].any(axis=1))
    here = int(problem.start[dial.attribute])
    moving = np.flatnonzero(dial.start != dial.to)
    places = sorted({int(dial.start[arc]) for arc in tied} - {here})
    links: list[Link] = []
    if len(places) * len(moving) > FLOW_COLUMNS:
        return links
    for place in places:
        visited = program.column(high=1.0)
        arcs = tied[dial.start[tied] == place]
        links += [Link(int(dial.column[arc]), int(dial.change[arc]), visited) for arc in arcs]
        path = [program.column(high=1.0, whole=False) for _ in moving]
        for move, column in zip(moving, path, strict=True):
            program.row([column, int(dial.column[move])], [1.0, -1.0], -np.inf, 0.0)
        for value in set(range(dial.size)) - {here}:
            arrives, leaves = dial.to[moving] == value, dial.start[moving] == value
            factors = arrives.astype(float) - leaves
            used = np.flatnonzero(factors)
            goes = float(value == place)
            columns = np.append(np.array(path, int)[used], visited)
            program.row(columns, np.append(factors[used], -goes), 0.0, 0.0)
    return links
