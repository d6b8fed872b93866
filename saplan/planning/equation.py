"""The equation ρ + Σ n_j δρ_j = goal as a program over whole counts n_j; `counts` solves it.

A path to a goal is first of all a multiset of changes that adds up. Every block says how its values add up
(`Block.row`): a line is a row between bounds, a circle a row with a free multiple of its size, labels a flow between
them. This is the state equation of operator-counting heuristics (van den Briel et al. 2007, Bonet 2013, Pommerening et
al. 2014), on an algebra.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from saplan.algebra import CircleRow, LineRow
from saplan.planning.integer_program import Program
from saplan.planning.landmarks import Dial
from saplan.planning.problem import Problem


@dataclass(frozen=True)
class Equation:
    """The program of a problem before landmarks and cuts. Its first columns are the counts."""

    problem: Problem
    program: Program
    attributes: tuple[int, ...]
    """The attribute that every row is about, -1 where a row only links columns."""
    labels: tuple[int, ...]
    """The position or label that a row counts, -1 where it adds up values."""
    dials: tuple[Dial, ...]

    def values(self, rho: Float[np.ndarray, "n K"]) -> Float[np.ndarray, "n rows"]:
        """How much each ρ by itself contributes to every row."""
        attributes, labels = np.array(self.attributes, int), np.array(self.labels, int)
        own = rho[:, attributes] if len(attributes) else np.zeros((len(rho), 0))
        return np.where(attributes < 0, 0.0, np.where(labels < 0, own, own == labels))

    def from_start(self, rho: Float[np.ndarray, "K"]) -> Program:
        """The program with the contribution of ρ moved into the bounds."""
        program, value = self.program.copy(), self.values(np.asarray(rho, float)[None])[0]
        program.row_low = list(np.array(program.row_low) - value)
        program.row_high = list(np.array(program.row_high) - value)
        return program


class _Builder:
    """Collects the rows of all attributes."""

    def __init__(self, problem: Problem, enabled: Bool[np.ndarray, "C"], follow: bool) -> None:
        """`follow`: whether circles are followed position by position also where no change needs a position."""
        self.problem, self.follow, self.program = problem, follow, Program()
        self.attributes: list[int] = []
        self.labels: list[int] = []
        self.dials: list[Dial] = []
        highest = np.where(enabled, _turns(problem, self._followed), 0.0)
        for cost, high in zip(np.where(enabled, problem.costs, 0.0), highest, strict=True):
            self.program.column(float(cost), high=float(high))
        self.columns = np.flatnonzero(enabled)
        for i, row in enumerate(problem.rows):
            if isinstance(row, LineRow):
                self._line(i)
            elif row is not None and self._followed(i):
                self._dial(i)
            elif isinstance(row, CircleRow):
                self._circle(i, row)

    def _followed(self, i: int) -> bool:
        """Whether an attribute is followed from value to value."""
        problem = self.problem
        if not problem.is_dial(i):
            return False
        needed = problem.needs is not None and any(attribute == i for _, attribute in problem.needs.allowed)
        return needed or not isinstance(problem.rows[i], CircleRow) or (self.follow and bool(self._asked(i)))

    def _asked(self, i: int) -> bool:
        return len(self.problem.ends_at(i)) < self.problem.rows[i].size  # type: ignore[union-attr]

    def _row(self, i: int, label: int, columns: np.ndarray, factors: np.ndarray, low: float, high: float) -> None:
        used = factors != 0
        self.program.row(columns[used], factors[used], low, high)
        self.attributes.append(i)
        self.labels.append(label)

    def _line(self, i: int) -> None:
        low, high = (side[i] for side in self.problem.bounds)
        columns, deltas, width = (
            self.columns,
            self.problem.changes[self.columns, i],
            self.problem.width[self.columns, i],
        )
        if i in self.problem.wound and (np.isfinite(low) or np.isfinite(high)):
            columns = np.append(columns, self.program.column(low=-np.inf))
            deltas = np.append(deltas, -self.problem.rows[i].period)  # type: ignore[union-attr]
            width = np.append(width, 0.0)
        if not width.any():
            if np.isfinite(low) or np.isfinite(high):
                self._row(i, -1, columns, deltas, low, high)
            return
        # Whatever uncertain changes may add is enough to allow a plan: the bounds are met by some outcome.
        if np.isfinite(low):
            self._row(i, -1, columns, deltas + width, low, np.inf)
        if np.isfinite(high):
            self._row(i, -1, columns, deltas - width, -np.inf, high)

    def _circle(self, i: int, row: CircleRow) -> None:
        if not self._asked(i):
            return
        ends = self.problem.ends_at(i)
        turns = self.program.column(low=-np.inf)
        columns, deltas = np.append(self.columns, turns), self.problem.changes[self.columns, i] % row.size
        self._row(i, -1, columns, np.append(deltas, -row.size), min(ends), max(ends))

    def _dial(self, i: int) -> None:
        """One row per value: ends there = starts there + arrivals - departures."""
        problem, program, row = self.problem, self.program, self.problem.rows[i]
        assert row is not None
        assert not isinstance(row, LineRow)
        arcs: list[tuple[int, int, int, int]] = []
        for j in map(int, self.columns):
            allowed = problem.allowed(j, i)
            moves = [(v, w) for v, w in row.moves(problem.changes[j, i]) if allowed is None or v in allowed]
            if allowed is None and all(v == w for v, w in moves):
                continue
            counts = [j] if len(moves) == 1 else [program.column() for _ in moves]
            if len(moves) != 1:
                program.row([j, *counts], [1.0, *[-1.0] * len(counts)], 0.0, 0.0)
                self.attributes.append(-1)
                self.labels.append(-1)
            arcs += [(j, count, v, w) for count, (v, w) in zip(counts, moves, strict=True)]
        ends, table = problem.ends_at(i), np.array(arcs, int).reshape(-1, 4)
        dial = Dial(i, row.size, *table.T)
        for v in range(row.size):
            factors = (dial.to == v).astype(float) - (dial.start == v)
            self._row(i, v, dial.column, factors, float(ends == {v}), float(v in ends))
        self.dials.append(dial)


def _turns(problem: Problem, followed: Callable[[int], bool]) -> Float[np.ndarray, "C"]:
    """The most times a change is worth making: one that only turns circles is back after a whole number of turns."""
    most = np.full(len(problem.changes), np.inf)
    for j, delta in enumerate(problem.changes):
        changed = [int(i) for i in np.flatnonzero((delta != 0) | (problem.width[j] > 0))]
        sizes = [(row.size, int(delta[i])) for i in changed if isinstance(row := problem.rows[i], CircleRow)]
        if len(sizes) == len(changed) and not any(map(followed, changed)):
            most[j] = math.lcm(*(size // math.gcd(size, turn) for size, turn in sizes)) - 1
    return most


def build_equation(problem: Problem, enabled: Bool[np.ndarray, "C"] | None = None, follow: bool = False) -> Equation:
    """The program of a problem, without landmarks and cuts, for any start."""
    built = _Builder(problem, problem.usable if enabled is None else enabled, follow)
    return Equation(problem, built.program, tuple(built.attributes), tuple(built.labels), tuple(built.dials))
