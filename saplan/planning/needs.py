"""What a change needs but does not use up: the switch at red, a pickaxe in hand.

Needs are data: a lowest and a highest value per change and attribute, and sets of values on circles and labels. They
are necessary conditions, so that a plan that they rule out does not exist. `read_needs` reads them off any function
that scores changes, such as an edge detector.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

from saplan.algebra import LineRow, Product, Row

Feasible = Callable[[Float[np.ndarray, "n K"]], Float[np.ndarray, "n C"] | Bool[np.ndarray, "n C"]]
"""ρ of a batch → whether each change can be made there, or how probable its success is."""

LARGEST_DIAL = 64
"""Positions or labels of an attribute whose values are taken one by one."""
PROBES = 64
"""Values along a line that are probed, at most."""
BATCH = 4096


@dataclass(frozen=True)
class Needs:
    """Necessary conditions for making each change."""

    low: Float[np.ndarray, "C K"]
    """The least value of an attribute at which a change can be made."""
    high: Float[np.ndarray, "C K"]
    """The greatest such value."""
    allowed: Mapping[tuple[int, int], frozenset[int]] = field(default_factory=dict)
    """By (change, attribute): the positions or labels at which a change can be made, where not all of them."""
    agreement: Float[np.ndarray, "C"] | None = None
    """The share of probes where these conditions say the same as the scores, if they were read off scores."""

    @classmethod
    def none(cls, changes: int, attributes: int) -> "Needs":
        """Conditions that always hold."""
        return cls(np.full((changes, attributes), -np.inf), np.full((changes, attributes), np.inf))

    def hold(self, rho: Float[np.ndarray, "n K"]) -> Bool[np.ndarray, "n C"]:
        """Whether the conditions of each change hold at each ρ."""
        holds = np.all((rho[:, None] >= self.low) & (rho[:, None] <= self.high), axis=2)
        for (change, attribute), values in self.allowed.items():
            holds[:, change] &= np.isin(rho[:, attribute], list(values))
        return np.asarray(holds)

    def of_attribute(self, space: Product, change: int, i: int) -> str:
        """The conditions of one change on one attribute, such as `>=1` or `in {0}`; empty where there are none."""
        found, block = [], space.blocks[i]
        if np.isfinite(self.low[change, i]):
            found.append(f">={block.format(self.low[change, i])}")
        if np.isfinite(self.high[change, i]):
            found.append(f"<={block.format(self.high[change, i])}")
        if (change, i) in self.allowed:
            found.append(f"in {{{', '.join(block.format(v) for v in sorted(self.allowed[change, i]))}}}")
        return " ".join(found)

    def describe(self, space: Product, change: int) -> str:
        """The conditions of one change in words, such as `pickaxe>=1, switch in {0}`; empty where there are none."""
        parts = [(name, self.of_attribute(space, change, i)) for i, name in enumerate(space.names)]
        return ", ".join(f"{name} {part}" if part.startswith("in") else f"{name}{part}" for name, part in parts if part)


def read_needs(
    space: Product,
    feasible: Feasible,
    references: Float[np.ndarray, "n K"],
    least: float = 0.5,
    noise: float = 0.0,
) -> Needs:
    """The needs of every change, read off scores by moving one attribute at a time away from reference points.

    A score of `least` or more means that a change can be made. A value is needed where the score falls below that for
    all other values, on all but a share of `noise` of the lines along which the change can be made somewhere.
    """
    lines = [_line(row, references[:, i]) for i, row in enumerate(block.row() for block in space.blocks)]
    probes = [_along(references, i, values) for i, values in enumerate(lines)]
    scores = [_scored(feasible, probe, least) for probe in probes]
    changes = max((score.shape[1] for score in scores if len(score)), default=0)
    needs = Needs.none(changes, space.size)
    allowed: dict[tuple[int, int], frozenset[int]] = {}
    for i, (values, score) in enumerate(zip(lines, scores, strict=True)):
        if not len(values):
            continue
        good, known = _good_values(score.reshape(len(references), len(values), changes), noise)
        for change in np.flatnonzero(known & ~good.all(axis=0)):
            if isinstance(space.blocks[i].row(), LineRow):
                needs.low[change, i], needs.high[change, i] = _interval(values, good[:, change])
            else:
                allowed[int(change), i] = frozenset(values[good[:, change]].astype(int).tolist())
    read = Needs(needs.low, needs.high, allowed)
    return Needs(needs.low, needs.high, allowed, _agreement(read, probes, scores))


def _line(row: Row | None, seen: Float[np.ndarray, "n"]) -> Float[np.ndarray, "V"]:
    """The values of one attribute that are probed: all positions, or the range of the references from the bound up."""
    if row is None or not len(seen) or (isinstance(row, LineRow) and row.wound):
        return np.zeros(0)  # on a circle of real numbers no threshold is a need: there are two ways round
    if not isinstance(row, LineRow):
        return np.arange(row.size if row.size <= LARGEST_DIAL else 0, dtype=float)
    low, high = seen.min(), seen.max()
    if row.whole and low - row.low <= PROBES:
        low = row.low
    values = np.linspace(low, high, PROBES)
    return np.unique(np.rint(values)) if row.whole else np.unique(values)


def _along(references: Float[np.ndarray, "n K"], attribute: int, values: np.ndarray) -> Float[np.ndarray, "m K"]:
    """Every reference with one attribute replaced by every value."""
    points = np.repeat(references.astype(float), len(values), axis=0)
    points[:, attribute] = np.tile(values, len(references))
    return points


def _scored(feasible: Feasible, points: Float[np.ndarray, "m K"], least: float) -> Bool[np.ndarray, "m C"]:
    parts = [np.asarray(feasible(points[k : k + BATCH])) >= least for k in range(0, len(points), BATCH)]
    return np.concatenate(parts) if parts else np.zeros((0, 0), bool)


def _good_values(
    score: Bool[np.ndarray, "n V C"], noise: float
) -> tuple[Bool[np.ndarray, "V C"], Bool[np.ndarray, "C"]]:
    """Values at which a change can be made on more than a share of `noise` of its lines; which changes have lines."""
    lines = score.any(axis=1).sum(axis=0)
    return score.sum(axis=0) > noise * lines, lines > 0


def _interval(values: Float[np.ndarray, "V"], good: Bool[np.ndarray, "V"]) -> tuple[float, float]:
    """Bounds that keep every good value; the last bad one is kept out, and whatever was not probed is kept in."""
    first, last = np.flatnonzero(good)[[0, -1]]
    whole = np.array_equal(values, np.rint(values))
    low = values[first] if whole else np.nextafter(values[max(first - 1, 0)], np.inf)
    high = values[last] if whole else np.nextafter(values[min(last + 1, len(values) - 1)], -np.inf)
    return float(low) if first else -np.inf, float(high) if last + 1 < len(values) else np.inf


def _agreement(needs: Needs, probes: list[np.ndarray], scores: list[np.ndarray]) -> Float[np.ndarray, "C"]:
    """The share of probes where the conditions say the same as the scores, per change."""
    changes = len(needs.low)
    same, count = np.zeros(changes), 0
    for points, score in zip(probes, scores, strict=True):
        for k in range(0, len(points), BATCH):
            same += np.sum(needs.hold(points[k : k + BATCH]) == score[k : k + BATCH], axis=0)
        count += len(points)
    return same / max(count, 1)
