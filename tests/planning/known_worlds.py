"""Worlds with known rules for the planner: exchange, switches, a tech tree, Lights Out, and a wide synthetic one."""

import numpy as np
from numpy.typing import ArrayLike

from saplan.algebra import Cyclic, Natural, Product
from saplan.games import Exchange, Switches
from saplan.planning.needs import Feasible, Needs, read_needs
from saplan.planning.problem import Problem


def posed(
    space: Product,
    start: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    deltas: ArrayLike,
    needs: Needs | None = None,
    spread: np.ndarray | None = None,
) -> Problem:
    """A problem in plain numbers, with unit costs."""
    here, least, most, changes = (np.array(x, float) for x in (start, low, high, deltas))
    return Problem(space, here, least, most, changes, np.ones(len(changes)), needs, spread)


def exchange(objects: int, held: tuple[int, int, int]) -> Problem:
    """So many objects of each kind on the map, and exactly these to be held."""
    game = Exchange()
    changes = np.array([delta for _, delta in game.admissible()])
    free = np.full(3, np.inf)
    low, high = np.append(-free, held), np.append(free, held)
    start = np.array([objects] * 3 + [0] * 3, float)
    return Problem(game.space, start, low, high, changes, np.ones(len(changes)))


def always(problem: Problem) -> Feasible:
    """A world where a change is feasible wherever it stays in the space."""
    return lambda rho: np.ones((len(rho), len(problem.costs)), bool)


def switch_rules(rho: np.ndarray) -> np.ndarray:
    """Switches: an object can be picked up if the switch shows its kind; the switch can always be turned."""
    picks = (rho[:, 6:] == np.arange(3)) & (rho[:, :3] >= 1)
    return np.concatenate([picks, np.ones((len(rho), 1), bool)], axis=1)


def switches(on_map: tuple[int, int, int], held: tuple[int, int, int], switch: int) -> Problem:
    """So many on the map, exactly these to be held; the needs are read off the rules."""
    game = Switches()
    changes = np.array([delta for _, delta in game.admissible()])
    random = np.random.default_rng(0)
    references = np.column_stack([random.integers(0, 5, (60, 6)), random.integers(0, 3, 60)])
    low, high = np.full(7, -np.inf), np.full(7, np.inf)
    low[3:6] = high[3:6] = held
    needs = read_needs(game.space, switch_rules, references.astype(float))
    start = np.array([*on_map, 0, 0, 0, switch], float)
    return Problem(game.space, start, low, high, changes, np.ones(len(changes)), needs)


class TechTree:
    """Sixty items in seven levels. Items of level 0 are gathered; the others are crafted of two to three kinds below,
    and some also need a tool of the level below, which is not used up.
    """

    def __init__(self, seed: int = 0, items: int = 60, levels: int = 7) -> None:
        random = np.random.default_rng(seed)
        self.level = np.sort(np.arange(items) % levels)
        self.space = Product(tuple(f"item{i}" for i in range(items)), (Natural(),) * items)
        self.deltas = np.eye(items)
        self.needs = Needs.none(items, items)
        for i in np.flatnonzero(self.level):
            below = np.flatnonzero(self.level == self.level[i] - 1)
            any_below = np.flatnonzero(self.level < self.level[i])
            self.deltas[i, random.choice(below)] = -random.integers(1, 3)
            for other in random.choice(any_below, 1 + int(random.integers(0, 2)), replace=False):
                self.deltas[i, other] = -random.integers(1, 4)
            if random.uniform() < 0.6:
                self.needs.low[i, random.choice(below)] = 1 + random.integers(0, 2)

    def problem(self, item: int) -> Problem:
        """One of an item, from nothing."""
        low = np.full(len(self.deltas), -np.inf)
        low[item] = 1
        return Problem(
            self.space,
            np.zeros(len(low)),
            low,
            np.full(len(low), np.inf),
            self.deltas,
            np.ones(len(low)),
            self.needs,
        )

    def feasible(self, rho: np.ndarray) -> np.ndarray:
        """Whether each item can be made: the ingredients and the tools are there."""
        enough = np.all(rho[:, None] + np.minimum(self.deltas, 0) >= 0, axis=2)
        possible: np.ndarray = enough & self.needs.hold(rho)
        return possible


def lights_out(rows: int, columns: int, seed: int) -> Problem:
    """Lights in a grid; a button turns its light and the neighbours. The goal is all dark, from a reachable start."""
    random = np.random.default_rng(seed)
    at = np.array([(r, c) for r in range(rows) for c in range(columns)])
    presses = (np.abs(at[:, None] - at).sum(axis=2) <= 1).astype(float)
    space = Product(tuple(f"light{i}" for i in range(len(at))), (Cyclic(2),) * len(at))
    start = random.integers(0, 2, len(at)) @ presses % 2
    dark = np.zeros(len(at))
    return Problem(space, start, dark, dark, presses, np.ones(len(at)))


def wide_world(seed: int, asked: int = 8, changes: int = 200, attributes: int = 60) -> tuple[Problem, int]:
    """Sixty counts and two hundred conversions; exact values of some counts after random changes, and how many."""
    random = np.random.default_rng(seed)
    deltas = np.zeros((changes, attributes))
    for j in range(changes):
        chosen = random.choice(attributes, 4, replace=False)
        deltas[j, chosen[:2]] = -random.integers(1, 4, 2)
        deltas[j, chosen[2:]] = random.integers(1, 3, 2)
    start = random.integers(5, 20, attributes).astype(float)
    rho, made = start.copy(), 0
    for j in random.integers(0, changes, 400):
        if np.all(rho + deltas[j] >= 0):
            rho, made = rho + deltas[j], made + 1
    space = Product(tuple(f"a{i}" for i in range(attributes)), (Natural(),) * attributes)
    chosen = random.choice(attributes, asked, replace=False)
    low, high = np.full(attributes, -np.inf), np.full(attributes, np.inf)
    low[chosen] = high[chosen] = rho[chosen]
    return Problem(space, start, low, high, deltas, np.ones(changes)), made
