"""An order for counted changes, such that each one is feasible where it is made.

First greedily, in runs of one change: of the changes that take no other one away, the one with most left. If that gets
stuck, or ends elsewhere because changes do not commute, every order is tried change by change, up to a bound. Where
changes commute, ρ follows from the counts that are left, so each set of left counts is looked at once; else each set
with its ρ. Where no order exists, a plan has to make some change more often than counted, and it has
to do so at a ρ that these orders reach: those changes make the cut (generalised landmarks, Davies et al. 2015).
"""

import itertools
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from saplan.planning.counts import Cut
from saplan.planning.needs import Feasible
from saplan.planning.problem import Problem

RUNS = 4096
"""Runs of the greedy order, at most."""
LONGEST = 120
"""Changes of which all orders are tried; of more, only the greedy order."""
CELLS = 4_000_000
"""Numbers that one batch of a run may hold."""
TOGETHER = 32
"""Sets of left counts that are looked at in one batch."""


@dataclass(frozen=True)
class Order:
    """Changes in an order that works, or the cut that rules their counts out."""

    transitions: Int[np.ndarray, "n"]
    rho: Float[np.ndarray, "m K"]
    """The attributes along the path, start and end included."""
    found: bool
    cut: Cut | None = None
    """What to add to the equation where there is no order."""
    proven: bool = False
    """Whether the cut holds for every plan: all orders were tried."""
    looked_at: int = 0
    """Sets of left counts that were looked at because the greedy order failed."""


def order(problem: Problem, counts: Int[np.ndarray, "C"], feasible: Feasible, budget: int = 3000) -> Order:
    """Orders the changes; `budget` bounds the sets of left counts that are looked at once the greedy order fails."""
    step = Feasibility(problem, feasible)
    runs, rho, left = _greedy(step, counts)
    ends = not left.any() and bool(problem.commutes or problem.reached(rho[None])[0])
    transitions = np.repeat(*np.array(runs, np.int64).reshape(-1, 2).T) if ends else None
    explored = _Explored(step, budget if counts.sum() <= LONGEST else 0)
    if transitions is None:
        transitions = explored.search(counts)
    if transitions is not None:
        path = _path(problem, transitions)
        if _verified(step, path, transitions):
            return Order(transitions, path, True, looked_at=explored.looked_at)
    nothing = np.zeros(0, np.int64)
    proven = transitions is None and not explored.spent
    more = explored.beyond if proven else _makers(problem, rho, left)
    cut = Cut(np.asarray(counts), tuple(int(j) for j in np.flatnonzero(more)))
    return Order(nothing, np.asarray(problem.start, float)[None], False, cut, proven, explored.looked_at)


class Feasibility:
    """Which changes are possible where: by the callback, and without leaving the space."""

    def __init__(self, problem: Problem, feasible: Feasible) -> None:
        """`feasible` may return booleans or probabilities, of which one half is enough."""
        self.problem, self._feasible = problem, feasible

    def possible(self, rho: Float[np.ndarray, "n K"], among: Int[np.ndarray, "m"]) -> Bool[np.ndarray, "n m"]:
        """Whether each of some changes can be made at each ρ."""
        ends = self.problem.repeat(np.repeat(rho, len(among), axis=0), np.tile(among, len(rho)))
        inside = self.problem.inside(ends).reshape(len(rho), len(among))
        return np.asarray(inside & self._scored(rho)[:, among])

    def made(self, rho: Float[np.ndarray, "n K"], changes: Int[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
        """Whether at each ρ one change of its own can be made."""
        inside = self.problem.inside(self.problem.repeat(rho, changes))
        return np.asarray(inside & self._scored(rho)[np.arange(len(rho)), changes])

    def safe_times(
        self, rho: Float[np.ndarray, "K"], left: Int[np.ndarray, "C"], among: Int[np.ndarray, "m"]
    ) -> Int[np.ndarray, "m"]:
        """How often each of some changes can be made before another one can no longer find what it needs.

        What an attribute can still become is its value plus all that the changes left add to it.
        """
        problem, times, pending = self.problem, left[among].astype(float), np.flatnonzero(left)
        if problem.needs is None or not len(among):
            return np.asarray(left[among])
        for sign, needed in ((1.0, problem.needs.low), (-1.0, -problem.needs.high)):
            rows = np.vstack([needed[pending], np.full((1, len(rho)), -np.inf)])
            first = np.argmax(rows, axis=0)
            most = rows[first, np.arange(len(rho))]
            rows[first, np.arange(len(rho))] = -np.inf
            own = np.append(pending, -1)[first] == among[:, None]
            wanted = np.where(own, rows.max(axis=0), most)
            deltas = sign * problem.changes
            uses, reach = np.maximum(-deltas[among], 0), sign * rho + left @ np.maximum(deltas, 0)
            tight = (uses > 0) & np.isfinite(wanted)
            room = np.where(tight, reach - wanted, np.inf) / np.where(tight, uses, 1.0)
            times = np.minimum(times, np.floor(room.min(axis=1) + 1e-9))
        return np.asarray(np.maximum(times, 0).astype(np.int64))

    def _scored(self, rho: Float[np.ndarray, "n K"]) -> Bool[np.ndarray, "n C"]:
        score = np.asarray(self._feasible(rho))
        return score if score.dtype == bool else score >= 0.5


def _greedy(
    step: Feasibility, counts: Int[np.ndarray, "C"]
) -> tuple[list[tuple[int, int]], Float[np.ndarray, "K"], Int[np.ndarray, "C"]]:
    """Runs (change, times) as far as they go, the ρ that they lead to, and the counts that are left."""
    left, rho = np.asarray(counts, np.int64).copy(), np.asarray(step.problem.start, float)
    runs: list[tuple[int, int]] = []
    while left.any() and len(runs) < RUNS:
        run = _next_run(step, rho, left)
        if run is None:
            break
        change, times = run
        rho = step.problem.repeat(rho[None], np.array([change]), float(times))[0]
        left[change] -= times
        runs.append(run)
    return runs, rho, left


def _makers(problem: Problem, rho: Float[np.ndarray, "K"], left: Int[np.ndarray, "C"]) -> Bool[np.ndarray, "C"]:
    """The changes that bring about what those left lack at ρ, as far as needs say; else all of them."""
    if problem.needs is None or not left.any():
        return problem.usable
    pending, deltas = np.flatnonzero(left), problem.changes
    lacks = np.any(problem.needs.low[pending] > rho, axis=0)
    exceeds = np.any(problem.needs.high[pending] < rho, axis=0)
    makers = problem.usable & np.any((lacks & (deltas > 0)) | (exceeds & (deltas < 0)), axis=1)
    return makers if makers.any() else problem.usable


def _next_run(step: Feasibility, rho: Float[np.ndarray, "K"], left: Int[np.ndarray, "C"]) -> tuple[int, int] | None:
    """The change that takes fewest others away, most left first, and how often before it takes more away."""
    among = np.flatnonzero(left)
    now = step.possible(rho[None], among)[0]
    if not now.any():
        return None
    candidates = np.flatnonzero(now)
    remaining = np.tile(left[among], (len(candidates), 1))
    remaining[np.arange(len(candidates)), candidates] -= 1
    after = step.possible(step.problem.repeat(rho[None], among[candidates]), among)
    harm = np.sum(remaining * (now & ~after), axis=1)
    safe = step.safe_times(rho, left, among[candidates])
    best = np.lexsort((candidates, -left[among[candidates]], harm, safe == 0))[0]
    place = int(candidates[best])
    return int(among[place]), _run_length(step, rho, left, among, now, place, max(int(safe[best]), 1))


def _run_length(
    step: Feasibility,
    rho: Float[np.ndarray, "K"],
    left: Int[np.ndarray, "C"],
    among: Int[np.ndarray, "n"],
    now: Bool[np.ndarray, "n"],
    place: int,
    most: int,
) -> int:
    """How often a change is made in a row: until it stops being possible, or others become possible or impossible."""
    most = min(most, max(16, CELLS // (len(among) * len(rho))))
    if most == 1:
        return 1
    along = step.problem.repeat(rho[None], np.full(most, among[place]), np.arange(1.0, most + 1))
    possible = step.possible(along, among)
    others = np.where(np.arange(len(among)) == place, 0, left[among])
    lost, new = (now & ~possible) @ others, (~now & possible) @ others
    ends = np.flatnonzero(~possible[:, place] | (new > 0))[:1] + 1
    return int(min([most, *ends, *np.flatnonzero(lost > lost[0])[:1]]))


@dataclass
class _Explored:
    """Every order, change by change, up to a number of sets of left counts."""

    step: Feasibility
    budget: int
    spent: bool = False
    looked_at: int = 0
    beyond: Bool[np.ndarray, "C"] = field(default_factory=lambda: np.zeros(0, bool))
    """Changes that are possible somewhere when their count is used up."""

    def _key(self, rho: Float[np.ndarray, "K"], left: Int[np.ndarray, "C"]) -> tuple[float, ...]:
        """What distinguishes a moment from others: the counts left, and ρ where it does not follow from them."""
        return tuple(map(int, left)) if self.step.problem.commutes else (*map(int, left), *map(float, rho))

    def search(self, counts: Int[np.ndarray, "C"]) -> Int[np.ndarray, "n"] | None:
        """An order of all the changes, depth first, or None."""
        problem, every = self.step.problem, np.flatnonzero(self.step.problem.usable)
        self.beyond = np.zeros(len(counts), bool)
        seen, made = {self._key(problem.start, counts)}, [(0, -1)]
        stack = [(np.asarray(problem.start, float), np.asarray(counts, np.int64), 0)]
        while stack:
            batch, stack = stack[-TOGETHER:], stack[:-TOGETHER]
            at = np.array([rho for rho, _, _ in batch])
            can, reached = self.step.possible(at, every), problem.reached(at)
            for k, (rho, left, node) in enumerate(batch):
                if reached[k]:
                    return _unwind(made, node)
                changes = every[can[k]]
                self.beyond[changes[left[changes] == 0]] = True
                tries = changes[left[changes] > 0]
                dead = self.step.safe_times(rho, left, tries) == 0
                tries = tries[np.argsort(~dead, kind="stable")]  # dead ends are looked at last
                for change, end in zip(tries, problem.repeat(rho[None], tries), strict=True):
                    after = left.copy()
                    after[change] -= 1
                    if (key := self._key(end, after)) not in seen:
                        seen.add(key)
                        made.append((node, int(change)))
                        stack.append((end, after, len(made) - 1))
            self.looked_at = len(seen)
            if len(seen) > self.budget:
                self.spent = True
                return None
        return None


def _unwind(made: list[tuple[int, int]], node: int) -> Int[np.ndarray, "n"]:
    """The changes on the way to a node, given the parent and the last change of every node."""
    found = []
    while node:
        node, change = made[node]
        found.append(change)
    return np.array(found[::-1], np.int64)


def _path(problem: Problem, transitions: Int[np.ndarray, "n"]) -> Float[np.ndarray, "m K"]:
    """ρ before and after every change."""
    rho, parts = np.asarray(problem.start, float), [np.asarray(problem.start, float)[None]]
    starts = [k for k in range(len(transitions)) if k == 0 or transitions[k] != transitions[k - 1]]
    for begin, end in itertools.pairwise([*starts, len(transitions)]):
        times = np.arange(1.0, end - begin + 1)
        parts.append(problem.repeat(rho[None], transitions[begin:end], times))
        rho = parts[-1][-1]
    return np.concatenate(parts)


def _verified(step: Feasibility, path: Float[np.ndarray, "m K"], transitions: Int[np.ndarray, "n"]) -> bool:
    """Whether every change is possible where it is made, and the path ends at the goal: one batch, nothing assumed."""
    if not step.problem.reached(path[-1:])[0]:
        return False
    return not len(transitions) or bool(np.all(step.made(path[:-1], transitions)))
