"""A planning problem in attributes: a start, a goal, the changes with their costs, and what they need."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from saplan.algebra import GroupRow, LabelRow, LineRow, Product, Row
from saplan.errors import InputError
from saplan.planning.needs import LARGEST_DIAL, Needs

ROUND = 1e-4
"""How far a bound on whole numbers may lie beside the number it means."""
BEYOND = 2.0**24
"""Bounds this far away restrict nothing."""


@dataclass(frozen=True)
class Problem:
    """Reach low <= ρ <= high from `start` with changes `deltas`, at the least sum of costs."""

    space: Product
    start: Float[np.ndarray, "K"]
    low: Float[np.ndarray, "K"]
    high: Float[np.ndarray, "K"]
    deltas: Float[np.ndarray, "C K"]
    costs: Float[np.ndarray, "C"]
    """What each change costs at least, wherever it is made; infinite: never use it."""
    needs: Needs | None = None
    spread: Float[np.ndarray, "C K"] | None = None
    """How far a change may fall short of its delta or exceed it; nothing where changes are certain."""

    def __post_init__(self) -> None:
        shape = (len(self.costs), self.space.size)
        if np.shape(self.deltas) != shape or not len(self.start) == len(self.low) == len(self.high) == shape[1]:
            raise InputError(f"a problem with {shape[0]} costs in {shape[1]} attributes needs deltas of shape {shape}")
        if not np.all(np.asarray(self.costs) >= 0) or not np.all(np.isfinite(self.deltas)):
            raise InputError("costs must not be negative, and changes must be finite")

    @cached_property
    def rows(self) -> tuple[Row | None, ...]:
        """How the changes of each attribute add up."""
        return tuple(block.row() for block in self.space.blocks)

    @cached_property
    def changes(self) -> Float[np.ndarray, "C K"]:
        """The deltas, exactly whole where only whole numbers exist, and 0 where nothing is counted."""
        changes = np.asarray(self.deltas, float).copy()
        for i, row in enumerate(self.rows):
            if row is None:
                changes[:, i] = 0
            elif not isinstance(row, LineRow) or row.whole:
                changes[:, i] = np.rint(changes[:, i])
        return changes

    @cached_property
    def width(self) -> Float[np.ndarray, "C K"]:
        """The spread of every change, zero where only whole numbers exist."""
        width = np.zeros_like(self.changes) if self.spread is None else np.asarray(self.spread, float).copy()
        exact = [not (isinstance(row, LineRow) and not row.whole) for row in self.rows]
        width[:, exact] = 0
        return width

    @cached_property
    def bounds(self) -> tuple[Float[np.ndarray, "K"], Float[np.ndarray, "K"]]:
        """The goal within the space: least and greatest value at the end, infinite where there is no bound."""
        low, high = np.asarray(self.low, float).copy(), np.asarray(self.high, float).copy()
        for i, row in enumerate(self.rows):
            if row is None:
                low[i], high[i] = -np.inf, np.inf
                continue
            if isinstance(row, LineRow):
                low[i], high[i] = max(low[i], row.low), min(high[i], row.high)
                if row.wound and low[i] > high[i]:  # round through zero
                    high[i] += row.period
            if not isinstance(row, LineRow) or row.whole:
                low[i], high[i] = np.ceil(low[i] - ROUND), np.floor(high[i] + ROUND)
        return np.where(low <= -BEYOND, -np.inf, low), np.where(high >= BEYOND, np.inf, high)

    @cached_property
    def usable(self) -> Bool[np.ndarray, "C"]:
        """Changes that change something and may be used."""
        labelled = [i for i, row in enumerate(self.rows) if isinstance(row, LabelRow)]
        applies = np.all(self.changes[:, labelled] >= 0, axis=1)
        return np.asarray(np.isfinite(self.costs) & applies & np.any((self.changes != 0) | (self.width > 0), axis=1))

    def ends_at(self, attribute: int) -> frozenset[int]:
        """The positions or labels that the goal allows for an attribute on a circle or with labels."""
        row = self.rows[attribute]
        assert row is not None
        assert not isinstance(row, LineRow)
        low, high = self.bounds[0][attribute], self.bounds[1][attribute]
        return frozenset(v for v in range(row.size) if low <= v <= high)

    def allowed(self, change: int, attribute: int) -> frozenset[int] | None:
        """The positions or labels at which a change can be made; None where any will do."""
        return None if self.needs is None else self.needs.allowed.get((change, attribute))

    @cached_property
    def commutes(self) -> bool:
        """Whether the order of changes does not matter for the ρ that they lead to."""
        return not any(isinstance(row, GroupRow) for row in self.rows)

    @cached_property
    def wound(self) -> tuple[int, ...]:
        """The attributes whose real values go round in a circle."""
        return tuple(i for i, row in enumerate(self.rows) if isinstance(row, LineRow) and row.wound)

    def is_line(self, attribute: int) -> bool:
        """Whether the values of an attribute lie on a line that does not go round."""
        return isinstance(self.rows[attribute], LineRow) and attribute not in self.wound

    def is_dial(self, attribute: int) -> bool:
        """Whether an attribute has few enough values to follow it from value to value."""
        row = self.rows[attribute]
        return row is not None and not isinstance(row, LineRow) and row.size <= LARGEST_DIAL

    def reached(self, rho: Float[np.ndarray, "n K"]) -> Bool[np.ndarray, "n"]:
        """Whether each ρ satisfies the goal."""
        low, high = self.bounds
        rho = np.array(rho, float)
        for i in self.wound:
            if np.isfinite(low[i]):
                period = self.rows[i].period  # type: ignore[union-attr]
                rho[:, i] = low[i] - ROUND + np.mod(rho[:, i] - low[i] + ROUND, period)
        return np.asarray(np.all((rho >= low - ROUND) & (rho <= high + ROUND), axis=1))

    def repeat(
        self, rho: Float[np.ndarray, "#n K"], changes: Int[np.ndarray, "n"], times: Float[np.ndarray, "n"] | float = 1.0
    ) -> Float[np.ndarray, "n K"]:
        """ρ after each of several changes was repeated; one ρ for all changes, or one for each."""
        deltas = self.changes[changes]
        times = np.broadcast_to(times, deltas.shape[:1])
        ends = np.array(np.broadcast_to(rho, deltas.shape), float)
        for columns, row in self._alike:
            ends[:, columns] = row.repeat(ends[:, columns], deltas[:, columns], times[:, None])
        return ends

    def inside(self, rho: Float[np.ndarray, "n K"]) -> Bool[np.ndarray, "n"]:
        """Whether each ρ lies in the space."""
        return np.asarray(np.all([row.contains(rho[:, columns]).all(axis=1) for columns, row in self._alike], axis=0))

    @cached_property
    def _alike(self) -> list[tuple[np.ndarray, Row]]:
        """Attributes grouped by how they add up."""
        kinds = dict.fromkeys(row for row in self.rows if row is not None)
        return [(np.array([i for i, other in enumerate(self.rows) if other == row]), row) for row in kinds]
