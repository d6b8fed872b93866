"""Parities of a finite group: functions f from its elements to {0, 1} with f(a·b) = f(a) + f(b) modulo 2.

What changes multiply depends on their order; what they add to a parity does not. So a parity is a row of the equation
that holds for every order, for example "how many mirrorings, modulo 2" in a dihedral group.
"""

from functools import lru_cache

import numpy as np

from saplan.algebra import GroupRow

LARGEST_GROUP = 128
"""Elements of a group whose parities are looked for."""


@lru_cache(maxsize=64)
def parities(row: GroupRow) -> tuple[tuple[int, ...], ...]:
    """A basis of the parities of a group, each as its value at every element; empty where there is none."""
    if row.size > LARGEST_GROUP:
        return ()
    pivots: dict[int, int] = {}
    for equation in {_equation(a, b, c) for a, line in enumerate(_table(row).tolist()) for b, c in enumerate(line)}:
        left = equation
        while left and (top := left.bit_length() - 1) in pivots:
            left ^= pivots[top]
        if left:
            pivots[left.bit_length() - 1] = left
    free = [element for element in range(row.size) if element not in pivots]
    found = (_completed(row.size, pivots, element) for element in free)
    return tuple(values for values in found if is_parity(row, values))


def is_parity(row: GroupRow, values: tuple[int, ...]) -> bool:
    """Whether a function on the elements is a parity, checked for every pair."""
    f, table = np.array(values), _table(row)
    return bool(np.all(f[table] == (f[:, None] + f[None]) % 2))


def _table(row: GroupRow) -> np.ndarray:
    """The product of every two elements."""
    elements = np.arange(row.size)
    return np.array([row.multiply(np.full(row.size, a), elements) for a in elements])


def _equation(a: int, b: int, product: int) -> int:
    """f(a) + f(b) + f(a·b) = 0 as a set of bits; what occurs twice cancels."""
    return (1 << a) ^ (1 << b) ^ (1 << product)


def _completed(size: int, pivots: dict[int, int], chosen: int) -> tuple[int, ...]:
    """The solution with one free element at 1 and the other free ones at 0; each pivot follows from lower bits."""
    values = 1 << chosen
    for top in sorted(pivots):
        rest = pivots[top] ^ (1 << top)
        values |= ((values & rest).bit_count() % 2) << top
    return tuple(values >> element & 1 for element in range(size))
