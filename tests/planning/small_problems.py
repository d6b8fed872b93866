"""Random small problems in mixed attributes, with a plain Dijkstra over all reachable ρ to judge by."""

import numpy as np

from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Integer, Natural, Product
from saplan.goals import meets
from saplan.planning.needs import Needs
from saplan.planning.problem import Problem
from tests.planning.worlds import dijkstra

MOST = 5
"""Counts and whole numbers stay within ±this: the rules refuse more, which the equation does not know."""


class SmallProblem:
    """A problem and the rules of its world, written the plain way."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        attributes, changes = int(self.random.integers(1, 5)), int(self.random.integers(1, 7))
        blocks = tuple(self._block() for _ in range(attributes))
        space = Product(tuple(f"a{i}" for i in range(attributes)), blocks)
        self.deltas = np.array([self._change(blocks) for _ in range(changes)], float)
        self.capped = self.random.uniform() < 0.7
        """Whether the rules refuse large values; else the search itself stops there."""
        self.needs = self._needs(blocks, changes)
        start = np.array([self._value(block) for block in blocks], float)
        kinds = self.random.choice(3)
        costs = (np.ones(changes), self.random.integers(1, 4, changes) / 2, self.random.uniform(0.1, 2, changes))[kinds]
        self.problem = Problem(space, start, *self._goal(blocks), self.deltas, costs.astype(float), self.needs)

    def _block(self) -> Block:
        kind = self.random.choice(["natural", "natural", "integer", "cyclic", "labels", "dihedral", "circle"])
        size = int(self.random.integers(2, 5))
        labels = Categorical(tuple("wxyz"[:size]))
        circles = {"cyclic": Cyclic(size), "dihedral": Dihedral(size), "circle": Circle(float(size), 1.0)}
        return {"natural": Natural(), "integer": Integer(), "labels": labels, **circles}[str(kind)]

    def _value(self, block: Block) -> int:
        if isinstance(block, Natural):
            return int(self.random.integers(0, MOST + 1))
        if isinstance(block, Integer):
            return int(self.random.integers(-2, 3))
        return int(self.random.integers(0, block.bins))

    def _change(self, blocks: tuple[Block, ...]) -> list[int]:
        while True:
            delta = []
            for block in blocks:
                if self.random.uniform() < 0.45:
                    delta.append(0)
                elif isinstance(block, Categorical):
                    delta.append(1 + int(self.random.integers(0, block.n**2)))
                elif isinstance(block, Cyclic | Dihedral):
                    delta.append(int(self.random.integers(0, block.bins)))
                elif isinstance(block, Circle):
                    delta.append(int(self.random.integers(-block.bins // 2, block.bins // 2)))
                else:
                    delta.append(int(self.random.integers(-3, 4)))
            if any(delta):
                return delta

    def _needs(self, blocks: tuple[Block, ...], changes: int) -> Needs | None:
        if self.random.uniform() < 0.4:
            return None
        none, allowed = Needs.none(changes, len(blocks)), {}
        for change in range(changes):
            for i, block in enumerate(blocks):
                if self.random.uniform() < 0.75 or isinstance(block, Circle):
                    continue
                if isinstance(block, Natural | Integer):
                    if self.random.uniform() < 0.7:
                        none.low[change, i] = self.random.integers(0, 4)
                    else:
                        none.high[change, i] = self.random.integers(0, 4)
                else:
                    size = block.bins
                    chosen = self.random.choice(size, int(self.random.integers(1, size + 1)), replace=False)
                    allowed[change, i] = frozenset(map(int, chosen))
        return Needs(none.low, none.high, allowed)

    def _goal(self, blocks: tuple[Block, ...]) -> tuple[np.ndarray, np.ndarray]:
        value = np.array([self._value(block) for block in blocks], float)
        low, high = value.copy(), value.copy()
        for i, block in enumerate(blocks):
            kind = self.random.uniform()
            if kind < 0.35:
                low[i], high[i] = -np.inf, np.inf
            elif isinstance(block, Circle):
                low[i], high[i] = (value[i] - 0.25) % block.period, (value[i] + 0.25) % block.period
            elif kind < 0.5 and block.ordered:
                high[i] = np.inf
            elif kind < 0.6 and block.ordered:
                low[i] = -np.inf
        return low, high

    def feasible(self, rho: np.ndarray) -> np.ndarray:
        """Whether each change can be made, by the rules of this world."""
        return np.array([[self.end(tuple(row), j) is not None for j in range(len(self.deltas))] for row in rho])

    def end(self, rho: tuple[float, ...], change: int) -> tuple[float, ...] | None:
        """The ρ that a change leads to; None where it cannot be made."""
        end = []
        for i, (block, x, d) in enumerate(zip(self.problem.space.blocks, rho, self.deltas[change], strict=True)):
            if self.needs is not None:
                allowed = self.needs.allowed.get((change, i))
                if not self.needs.low[change, i] <= x <= self.needs.high[change, i]:
                    return None
                if allowed is not None and x not in allowed:
                    return None
            if isinstance(block, Categorical):
                if d and (d - 1) // block.n != x:
                    return None
                end.append((d - 1) % block.n if d else x)
            elif isinstance(block, Cyclic | Circle):
                end.append((x + d) % block.bins)
            elif isinstance(block, Dihedral):
                # A mirrored change turns the other way what came before it.
                turn = (d + (-x if d >= block.n else x)) % block.n
                end.append(turn + block.n * ((x >= block.n) != (d >= block.n)))
            else:
                end.append(x + d)
                if self.capped and abs(end[-1]) > MOST:
                    return None
                if isinstance(block, Natural) and end[-1] < 0:
                    return None
        return tuple(map(float, end))

    def cheapest(self) -> float:
        """The least cost of a path, by brute force; of paths within twice the cap where nothing is refused."""

        def neighbours(rho: tuple[float, ...]) -> list[tuple[tuple[float, ...], float]]:
            ends = [(self.end(rho, j), float(cost)) for j, cost in enumerate(self.problem.costs)]
            lines = [isinstance(block, Natural | Integer) for block in self.problem.space.blocks]
            return [
                (end, cost)
                for end, cost in ends
                if end is not None and all(abs(x) <= 2 * MOST for x, line in zip(end, lines, strict=True) if line)
            ]

        low, high = self.problem.low, self.problem.high
        start = tuple(map(float, self.problem.start))
        return dijkstra(start, neighbours, lambda rho: bool(np.all(meets(low, high, np.array(rho)))))
