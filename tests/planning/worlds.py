"""Graphs for the tests: tables made by hand, random lattices, and a plain Dijkstra to judge by."""

import heapq
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import numpy as np

from saplan.planning import EdgeFunction, Edges, Graph, Plan, Route
from saplan.planning.search import search_in

Table = dict[int, list[tuple[int, float]]]
"""From every node the (end, cost) of its transitions, in order."""
INFINITE = float("inf")
Node = TypeVar("Node", bound=Hashable)


def edges_of(table: Table) -> EdgeFunction:
    """The edge function of a graph whose nodes are whole numbers."""
    width = max(len(row) for row in table.values())

    def edges(nodes: np.ndarray) -> Edges:
        ends = np.zeros((len(nodes), width, 1), np.float32)
        cost = np.full((len(nodes), width), np.inf, np.float32)
        for i, node in enumerate(nodes):
            for c, (end, price) in enumerate(table.get(int(node[0]), [])):
                ends[i, c, 0], cost[i, c] = end, price
        return Edges(ends, cost)

    return edges


def rows(*values: Any) -> np.ndarray:
    """One row per value: a number, or a tuple of them."""
    return np.array([np.atleast_1d(value) for value in values], np.float32)


def route(edges: EdgeFunction, start: object, low: object, high: object | None = None, **bounds: Any) -> Route:
    """One search for low <= ρ <= high, or for exactly `low`."""
    starts = rows(start)
    grain = np.ones(starts.shape[1], np.float32)
    (found,) = search_in(Graph(grain, edges), starts, rows(low), rows(low if high is None else high), **bounds)
    return found


def cost_along(edges: EdgeFunction, plan: Plan) -> float:
    """What a plan costs when every transition is looked up again; it must lead from each ρ to the next."""
    total = 0.0
    for here, there, transition in zip(plan.rho[:-1], plan.rho[1:], plan.transitions, strict=True):
        found = edges(rows(here))
        np.testing.assert_array_equal(found.ends[0, transition], there)
        total += float(found.cost[0, transition])
    return total


def dijkstra(
    start: Node, neighbours: Callable[[Node], Iterable[tuple[Node, float]]], is_goal: Callable[[Node], bool]
) -> float:
    """The cost of the cheapest path to a goal, infinite if there is none."""
    best, heap = {start: 0.0}, [(0.0, 0, start)]
    ticket = 0
    while heap:
        cost, _, node = heapq.heappop(heap)
        if cost > best[node]:
            continue
        if is_goal(node):
            return cost
        for end, price in neighbours(node):
            if price < INFINITE and cost + price < best.get(end, INFINITE):
                best[end] = cost + price
                ticket += 1
                heapq.heappush(heap, (cost + price, ticket, end))
    return INFINITE


class Lattice:
    """A box of whole numbers with random moves; the price of a move at a place is random, and often infinite."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        dimensions = int(random.integers(1, 4))
        self.shape = random.integers(2, 6, size=dimensions)
        self.moves = random.integers(-2, 3, size=(int(random.integers(1, 6)), dimensions))
        prices = random.choice([0.0, 0.25, 1.0, 1.0, 2.5, np.inf], size=(*self.shape, len(self.moves)))
        noise = random.uniform(0, 0.5, prices.shape) * random.integers(0, 2)
        self.price = (prices + noise).astype(np.float32)
        self.random = random

    def edges(self, nodes: np.ndarray) -> Edges:
        """All moves from a batch of places."""
        places = nodes.astype(int)
        ends = places[:, None] + self.moves
        inside = np.all((ends >= 0) & (ends < self.shape), axis=-1)
        cost = np.where(inside, self.price[tuple(places.T)], np.inf).astype(np.float32)
        return Edges(ends.astype(np.float32), cost)

    def neighbours(self, node: tuple[int, ...]) -> list[tuple[tuple[int, ...], float]]:
        """The same for one place, written the plain way."""
        result = []
        for move, price in zip(self.moves, self.price[node], strict=True):
            end = tuple(int(a + b) for a, b in zip(node, move, strict=True))
            if all(0 <= x < limit for x, limit in zip(end, self.shape, strict=True)):
                result.append((end, float(price)))
        return result

    def task(self) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
        """A start and a goal, some of whose coordinates are free."""
        start = tuple(int(self.random.integers(limit)) for limit in self.shape)
        subgoal = np.array([self.random.integers(limit) for limit in self.shape], np.float32)
        free = self.random.uniform(size=len(subgoal)) < 0.3
        return start, np.where(free, -np.inf, subgoal), np.where(free, np.inf, subgoal)

    def cheapest(self, start: tuple[int, ...], low: np.ndarray, high: np.ndarray) -> float:
        """What the best path costs, by brute force."""
        return dijkstra(start, self.neighbours, lambda node: bool(np.all((low <= node) & (node <= high))))
