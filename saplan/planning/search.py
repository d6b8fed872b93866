"""Shortest paths: Dijkstra in the implicit graph, bounded, with its outcome as a value."""

import enum
import html
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int64
from scipy.sparse.csgraph import dijkstra

from saplan.planning.graph import NO_NODE, EdgeFunction, Graph, Nodes, Raised, raised_at, with_raised

WIDTH = 80
"""Columns of a printed plan."""
MOST_BESIDE = 256
"""Length of a path whose surroundings are looked at."""
FREE = 1e-9
"""Least cost of an edge: csgraph reads a stored zero as "no edge", and a path must not circle on free edges."""


class Outcome(enum.Enum):
    """How a search ended, with a sentence for people."""

    FOUND = "a path was found"
    UNREACHABLE = "no path leads there, as far as the agent knows"
    SPENT = "the search reached its bound of nodes before it found a path"
    LATE = "the search ran out of time before it found a path"
    HOLDS = "as the agent perceives it, the goal holds already"
    NONE = "this method makes no plan: one policy heads straight for the goal"


@dataclass(frozen=True)
class PlannedTransition:
    """One transition of a plan."""

    transition: int
    """Its number: the entry of 𝓑, the edge of the table, or the change of the rules."""
    rho: tuple[float, ...]
    """Attributes after it."""
    probability: float | None
    """Probability of success by the method's estimate; None if it has none."""
    steps: float | None
    """Expected environment steps; None if the method has no estimate."""
    words: str = ""
    """Its name by the rules of the game, or its change as text; empty before an agent has named it."""
    result: str = ""
    """The attributes that it changes, with their new values."""


@dataclass(frozen=True, repr=False)
class Plan:
    """A path of transitions from a start, or the reason why there is none. It prints as a table."""

    outcome: Outcome
    cost: float = np.inf
    start: tuple[float, ...] = ()
    """Attributes before the first transition; empty without a path."""
    path: tuple[PlannedTransition, ...] = ()
    uncertain_attributes: tuple[tuple[str, float], ...] = ()
    """Attributes of the start that the agent is not sure of, with its confidence in each."""

    @property
    def rho(self) -> tuple[tuple[float, ...], ...]:
        """Attributes along the path, start and goal included."""
        return (self.start, *(step.rho for step in self.path)) if self.start else ()

    @property
    def transitions(self) -> tuple[int, ...]:
        """Numbers of the transitions along the path."""
        return tuple(step.transition for step in self.path)

    @property
    def summary(self) -> str:
        """How the search ended, and what the path costs, in one line."""
        if not self.path:
            return self.outcome.value
        parts = [f"{self.outcome.value}: {len(self.path)} transition{'s' if len(self.path) > 1 else ''}"]
        chances, steps = ([getattr(step, name) for step in self.path] for name in ("probability", "steps"))
        if None not in chances:
            parts.append(f"p {np.prod(chances):.2f} in all")
        return ", ".join(parts if None in steps else [*parts, f"about {sum(steps):.0f} steps"])

    def __repr__(self) -> str:
        rows = [
            plan_row(k, step.words or f"transition {step.transition}", step.probability, step.steps, step.result)
            for k, step in enumerate(self.path, start=1)
        ]
        return "\n".join([self.summary, *rows])

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        rows = [
            [str(k), step.words, "" if step.probability is None else f"{step.probability:.2f}",
             "" if step.steps is None else f"{step.steps:.0f}", step.result]
            for k, step in enumerate(self.path, start=1)
        ]  # fmt: skip
        return html_table(self.summary, ["", "transition", "p of success", "expected steps", "then"], rows)


def plan_row(number: int, words: str, probability: float | None, steps: float | None, result: str) -> str:
    """One transition of a plan, in at most 80 columns."""
    chance = "" if probability is None else f"p {probability:.2f}"
    time = "" if steps is None else f"~{steps:.0f} step{'s' if round(steps) != 1 else ''}"
    return shortened(f"{number:4d}. {shortened(words, 26):<26} {chance:<6}  {time:<9}  → {result}", WIDTH)


def shortened(text: str, width: int) -> str:
    """Text of at most this many characters; an ellipsis stands for the rest."""
    return text if len(text) <= width else text[: width - 1] + "…"


def html_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as HTML, everything escaped."""
    cells = [("th", head), *(("td", row) for row in rows)] if rows else []
    lines = ["<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in row) + "</tr>" for tag, row in cells]
    return f"<table><caption>{html.escape(caption)}</caption>{''.join(lines)}</table>"


class Successors(NamedTuple):
    """All transitions from one ρ, with the cost of the paths that begin with them."""

    cost: Float[np.ndarray, "C"]
    """Cost of each transition by itself; infinite where there is no edge."""
    raised: Float[np.ndarray, "C"]
    """The part of that cost that was added because the transition failed from this very ρ."""
    total: Float[np.ndarray, "C"]
    """Cost of reaching the goal by way of each."""
    nearer: Bool[np.ndarray, "C"]
    """Whether each leads nearer to the goal; in expectation, whether it can lead there."""
    probability: Float[np.ndarray, "C"]
    steps: Float[np.ndarray, "C"]
    """The estimates that each was priced with; NaN where the method has none."""

    def with_first(self, first: Float[np.ndarray, "C"]) -> Float[np.ndarray, "C"]:
        """Cost of reaching the goal by way of each transition if it costs `first` by itself."""
        leads = np.isfinite(self.total)
        beyond = np.where(leads, self.total, 0) - np.where(leads, self.cost, 0)
        return np.where(leads, beyond + first, np.inf)


@dataclass(frozen=True)
class Route:
    """Everything that one search found out about one goal: from any expanded node, the next transition is a look-up."""

    graph: Graph
    remaining: Float[np.ndarray, "n"]
    """Cost from every node of the graph to its owner's goal."""
    owner: int
    low: Float[np.ndarray, "K"]
    high: Float[np.ndarray, "K"]
    outcome: Outcome
    raised: Raised = ()
    cut: bool = False
    """Whether a bound ended the search, so that a better path may exist."""

    @property
    def failure(self) -> Outcome:
        """Why there is no path from a ρ that has none."""
        return Outcome.UNREACHABLE if self.outcome is Outcome.FOUND else self.outcome

    def stale(self, rho: Float[np.ndarray, "K"]) -> bool:
        """Whether a new search from ρ may find a path that this one, cut short elsewhere, did not."""
        return self.outcome in (Outcome.SPENT, Outcome.LATE) and self._find(rho) != self.owner

    def node(self, rho: Float[np.ndarray, "K"]) -> int:
        """Node of ρ in this search; NO_NODE if the search did not expand it."""
        found = self._find(rho)
        return found if found != NO_NODE and self.graph.expanded[found] else NO_NODE

    def totals(self, node: int) -> Float[np.ndarray, "C"]:
        """Cost to the goal by way of each transition from a node."""
        ends = self.graph.ends[node]
        cost = np.maximum(self.graph.cost[node].astype(np.float64), FREE)
        totals: Float[np.ndarray, "C"] = cost + np.where(ends >= 0, self.remaining[ends], np.inf)
        return totals

    def knows(self, rho: Float[np.ndarray, "K"]) -> bool:
        """Whether the search expanded ρ."""
        return self.node(rho) != NO_NODE

    def successors(self, rho: Float[np.ndarray, "K"]) -> Successors | None:
        """Every transition from ρ; None if the search did not expand it."""
        node, graph = self.node(rho), self.graph
        if node == NO_NODE:
            return None
        nearer = self.remaining[np.maximum(graph.ends[node], 0)] < self.remaining[node]
        raised = raised_at(rho, self.raised, graph.grain, len(nearer))
        estimates = graph.probability[node], graph.steps[node]
        return Successors(graph.cost[node], raised, self.totals(node), nearer, *estimates)

    @property
    def met(self) -> Nodes:
        """Every ρ that the search came to."""
        met: Nodes = self.graph.rho[self.graph.owner == self.owner]
        return met

    def plan(self, rho: Float[np.ndarray, "K"], first: int | None = None) -> Plan:
        """Cheapest path from ρ, or the cheapest that begins with `first`, a transition that leads to the goal."""
        graph, node = self.graph, self._find(rho)
        if node == NO_NODE or not np.isfinite(self.remaining[node]):
            return Plan(self.failure)
        start, cost = to_tuple(graph.rho[node]), float(self.remaining[node])
        path: list[PlannedTransition] = []
        while self.remaining[node] > 0:
            totals = self.totals(node)
            chosen = int(np.argmin(totals)) if path or first is None else first
            if first is not None and not path:
                cost = float(totals[first])
            estimates = known(graph.probability[node, chosen]), known(graph.steps[node, chosen])
            node = int(graph.ends[node, chosen])
            path.append(PlannedTransition(chosen, to_tuple(graph.rho[node]), *estimates))
        return Plan(Outcome.FOUND, cost, start, tuple(path))

    def _find(self, rho: Float[np.ndarray, "K"]) -> int:
        return int(self.graph.find(np.asarray(rho, np.float32)[None], np.array([self.owner]))[0])


def to_tuple(rho: Float[np.ndarray, "K"]) -> tuple[float, ...]:
    """ρ as plain numbers."""
    return tuple(map(float, rho))


def known(estimate: float | np.floating) -> float | None:
    """An estimate as a plain number; None where the method has none."""
    return float(estimate) if np.isfinite(estimate) else None


def search(
    starts: Nodes,
    low: Nodes,
    high: Nodes,
    grain: Float[np.ndarray, "K"],
    edges: EdgeFunction,
    max_nodes: int = 100_000,
    max_seconds: float = np.inf,
    raised: Raised = (),
) -> list[Route]:
    """Routes from several starts, each to its own goal low <= ρ <= high, searched side by side.

    The graph grows layer by layer, in batches. Once an owner's goal has been met, the search expands only nodes that
    are cheaper to reach than the goal, as Dijkstra would; when none is left, the path is optimal. `max_nodes` bounds
    the nodes per owner. `max_seconds` bounds the whole call where a person waits for it; the result then depends on
    the machine. `raised` names edges that cost more than `edges` says.
    """
    graph, deadline = Graph(starts, grain, with_raised(edges, raised, grain)), time.monotonic() + max_seconds
    spent, is_goal, late = np.zeros(len(starts), bool), np.zeros(0, bool), False
    while True:
        rho, owner = graph.rho[len(is_goal) :], graph.owner[len(is_goal) :]
        is_goal = np.append(is_goal, np.all((rho >= low[owner]) & (rho <= high[owner]), axis=1))
        frontier = _frontier(graph, is_goal, spent)
        if not len(frontier):
            break
        late |= time.monotonic() > deadline
        full = (np.bincount(graph.owner, minlength=len(starts)) >= max_nodes) | late
        spent[graph.owner[frontier]] |= full[graph.owner[frontier]]
        frontier = frontier[~spent[graph.owner[frontier]]]
        if len(frontier):
            graph.expand(frontier)
    remaining, cut = distances(graph, is_goal), Outcome.LATE if late else Outcome.SPENT
    return [
        Route(graph, remaining, k, low[k], high[k], _outcome(float(remaining[k]), cut if full else None), raised, full)
        for k, full in enumerate(map(bool, spent))
    ]


def route_along(
    path: Nodes,
    low: Float[np.ndarray, "K"],
    high: Float[np.ndarray, "K"],
    grain: Float[np.ndarray, "K"],
    edges: EdgeFunction,
    raised: Raised = (),
) -> Route:
    """The route of a path that is known already, from its start to a goal low <= ρ <= high.

    Its changes can often be made in another order, so the route also covers every ρ that one later change, made early,
    leads to beside the path.
    """
    graph = Graph(path[:1], grain, with_raised(edges, raised, grain))
    later = {tuple(delta) for delta in np.diff(path, axis=0)} if len(path) <= MOST_BESIDE else ()
    places = np.concatenate([path[:-1], *(path[:-1] + np.array(delta, np.float32) for delta in later)])
    graph.expand(np.unique(graph.add(places, np.zeros(len(places), np.int64))))
    remaining = distances(graph, np.all((graph.rho >= low) & (graph.rho <= high), axis=1))
    return Route(graph, remaining, 0, low, high, _outcome(float(remaining[0]), Outcome.SPENT), raised, cut=True)


def _outcome(remaining: float, cut: Outcome | None) -> Outcome:
    if np.isfinite(remaining):
        return Outcome.FOUND
    return cut or Outcome.UNREACHABLE


def _frontier(
    graph: Graph, is_goal: Bool[np.ndarray, "n"], spent: Bool[np.ndarray, "owners"]
) -> Int64[np.ndarray, "m"]:
    """Nodes to expand next: of an owner that is not spent, and cheaper to reach than its nearest goal."""
    nearest = np.full(len(spent), np.inf)
    np.minimum.at(nearest, graph.owner[is_goal], graph.reach[is_goal])
    waiting = ~graph.expanded & ~is_goal & ~spent[graph.owner] & (graph.reach < nearest[graph.owner])
    return np.flatnonzero(waiting)


def distances(graph: Graph, is_goal: Bool[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """Cost of the cheapest path from every node to a goal of its owner."""
    goals = np.flatnonzero(is_goal)
    if not len(goals) or not graph.ends.size:
        return np.where(is_goal, 0.0, np.inf)
    real = graph.ends >= 0
    first = np.append(0, np.cumsum(real.sum(axis=1))).astype(np.int32)
    cost = np.maximum(graph.cost[real].astype(np.float64), FREE)
    # The rows of edges are read as columns, which reverses the graph. Parallel edges stay apart this way; a matrix of
    # (row, column) pairs would add them up.
    against = scipy.sparse.csc_array((cost, graph.ends[real], first), shape=(len(graph), len(graph)))
    found: Float[np.ndarray, "n"] = dijkstra(against, indices=goals, min_only=True)
    return found
