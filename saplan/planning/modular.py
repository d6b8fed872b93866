"""Worlds where every change turns dials of one prime size, such as Lights Out: a linear system modulo that size.

Elimination gives one solution and a basis of the multisets that change nothing. Where those are few enough to list, the
cheapest solution is the cheapest of their sums, in milliseconds; elsewhere the integer program decides.
"""

import numpy as np
from jaxtyping import Bool, Int

from saplan.algebra import CircleRow
from saplan.planning.integer_program import Answer, Status
from saplan.planning.problem import Problem

LISTED = 2**16
"""Sums of changes that change nothing, at most."""
LARGEST = 251
"""Size of a dial, at most: products stay far below the largest integer."""


def solve_modular(problem: Problem, enabled: Bool[np.ndarray, "C"]) -> Answer | None:
    """The cheapest counts where all rows count modulo one prime; None where they do not, or too many are to list."""
    size, rows = _system(problem, enabled)
    if not size:
        return None
    changes = np.flatnonzero(enabled)
    matrix = problem.changes[changes][:, rows].T.astype(np.int64) % size
    ends = np.array([min(problem.ends_at(i)) for i in rows])
    sides = (ends - problem.start[rows].astype(np.int64)) % size
    values = np.zeros(len(problem.costs))
    solved = eliminate(matrix, sides, size)
    if solved is None:
        return Answer(Status.INFEASIBLE, values, np.inf, np.inf)
    one, nothing = solved
    if size ** len(nothing) > LISTED:
        return None
    times = np.indices((size,) * len(nothing)).reshape(len(nothing), -1).T if len(nothing) else np.zeros((1, 0), int)
    counts = (one + times @ nothing) % size
    costs = counts @ problem.costs[changes]
    best = int(np.argmin(costs))
    values[changes] = counts[best]
    return Answer(Status.OPTIMAL, values, float(costs[best]), float(costs[best]))


def _system(problem: Problem, enabled: Bool[np.ndarray, "C"]) -> tuple[int, list[int]]:
    """The one prime size that all rows count by, and the attributes with a row; 0 where there is no such size."""
    changed = np.any((problem.changes[enabled] != 0) | (problem.width[enabled] > 0), axis=0)
    asked = []
    for i, row in enumerate(problem.rows):
        if isinstance(row, CircleRow) and len(problem.ends_at(i)) == row.size:
            continue
        if isinstance(row, CircleRow) and len(problem.ends_at(i)) == 1:
            asked.append(i)
        elif row is not None and changed[i]:
            return 0, []
    sizes = {row.size for i in asked if isinstance(row := problem.rows[i], CircleRow)}
    size = sizes.pop() if len(sizes) == 1 else 0
    prime = 2 <= size <= LARGEST and all(size % k for k in range(2, int(size**0.5) + 1))
    return (size, asked) if prime and problem.needs is None else (0, [])


def eliminate(
    matrix: Int[np.ndarray, "R C"], sides: Int[np.ndarray, "R"], size: int
) -> tuple[Int[np.ndarray, "C"], Int[np.ndarray, "D C"]] | None:
    """One solution of matrix·x = sides modulo a prime and a basis of those of matrix·x = 0; None without solution."""
    table = np.column_stack([matrix, sides]) % size
    pivots: list[int] = []
    for column in range(matrix.shape[1]):
        done = len(pivots)
        live = np.flatnonzero(table[done:, column])
        if not len(live):
            continue
        table[[done, done + live[0]]] = table[[done + live[0], done]]
        table[done] = table[done] * pow(int(table[done, column]), -1, size) % size
        factors = table[:, column].copy()
        factors[done] = 0
        table = (table - np.outer(factors, table[done])) % size
        pivots.append(column)
    if table[len(pivots) :, -1].any():
        return None
    one = np.zeros(matrix.shape[1], np.int64)
    one[pivots] = table[: len(pivots), -1]
    free = [column for column in range(matrix.shape[1]) if column not in set(pivots)]
    nothing = np.zeros((len(free), matrix.shape[1]), np.int64)
    for k, column in enumerate(free):
        nothing[k, column] = 1
        nothing[k, pivots] = -table[: len(pivots), column] % size
    return one, nothing
