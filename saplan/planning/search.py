"""Shortest paths: Dijkstra in the implicit graph, bounded, and with its outcome as a value."""

import enum
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int64
from scipy.sparse.csgraph import dijkstra

from saplan.planning.graph import NO_NODE, EdgeFunction, Graph, Nodes, Raised, raised_at, with_raised

FREE = 1e-9
"""What an edge costs at least: csgraph reads a stored zero as "no edge", and a path must not circle on free edges."""


class Outcome(enum.Enum):
    """How a search ended, with a sentence for people."""

    FOUND = "a path was found"
    UNREACHABLE = "no path leads there, as far as the agent knows"
    SPENT = "the search reached its bound of nodes before it found a path"
    LATE = "the search ran out of time before it found a path"


@dataclass(frozen=True)
class Plan:
    """A path of transitions from a start, or the reason why there is none."""

    outcome: Outcome
    cost: float = np.inf
    rho: tuple[tuple[float, ...], ...] = ()
    """The attributes along the path, start and goal included."""
    transitions: tuple[int, ...] = ()
    """The entry of 𝓑 that leads from each to the next."""
    uncertain_attributes: tuple[tuple[str, float], ...] = ()
    """The attributes of the start that are not known for sure, and how sure they are."""


class Field:
    """A finished graph with the cost from every node to its owner's goal."""

    def __init__(self, graph: Graph, is_goal: Bool[np.ndarray, "n"]) -> None:
        """`is_goal` marks the nodes that satisfy their owner's goal."""
        self.graph = graph
        self.remaining: Float[np.ndarray, "n"] = distances(graph, is_goal)
        """The cost from every node to its owner's goal."""


class Ways(NamedTuple):
    """The transitions that one can set out with from a ρ."""

    cost: Float[np.ndarray, "C"]
    """What each costs by itself, infinite where there is no such transition."""
    raised: Float[np.ndarray, "C"]
    """The part of that cost that was added because the transition failed from this very ρ."""
    total: Float[np.ndarray, "C"]
    """What it costs to reach the goal by way of each."""
    nearer: Bool[np.ndarray, "C"]
    """Which lead nearer to the goal; in expectation, all that can lead there."""


@dataclass(frozen=True)
class Route:
    """All that a search found out about one goal: from any node it met, the way on is a look-up."""

    field: Field
    owner: int
    outcome: Outcome
    raised: Raised = ()

    def stale(self, rho: Float[np.ndarray, "K"]) -> bool:
        """Whether a new search from ρ may find a path although this one found none: it was cut short elsewhere."""
        start = self.field.graph.find(np.asarray(rho, np.float32)[None], np.array([self.owner]))[0] == self.owner
        return self.outcome in (Outcome.SPENT, Outcome.LATE) and not start

    def node(self, rho: Float[np.ndarray, "K"]) -> int:
        """The node of ρ in this route's graph, NO_NODE if the search did not meet it or did not look beyond it."""
        graph = self.field.graph
        found = int(graph.find(np.asarray(rho, np.float32)[None], np.array([self.owner]))[0])
        return found if found != NO_NODE and graph.expanded[found] else NO_NODE

    def options(self, node: int) -> Float[np.ndarray, "C"]:
        """The cost to the goal by way of each transition from a node."""
        ends = self.field.graph.ends[node]
        cost = np.maximum(self.field.graph.cost[node].astype(np.float64), FREE)
        return cost + np.where(ends >= 0, self.field.remaining[ends], np.inf)

    def knows(self, rho: Float[np.ndarray, "K"]) -> bool:
        """Whether the search met ρ and looked beyond it."""
        return self.node(rho) != NO_NODE

    def ways(self, rho: Float[np.ndarray, "K"]) -> Ways | None:
        """Every transition from ρ; None where the search did not meet it or did not look beyond it."""
        node = self.node(rho)
        if node == NO_NODE:
            return None
        graph, remaining = self.field.graph, self.field.remaining
        nearer = remaining[np.maximum(graph.ends[node], 0)] < remaining[node]
        raised = raised_at(rho, self.raised, graph.grain, len(nearer))
        return Ways(graph.cost[node], raised, self.options(node), nearer)

    def end(self, rho: Float[np.ndarray, "K"], transition: int) -> Float[np.ndarray, "K"]:
        """Where a transition that leads somewhere leads."""
        return self.field.graph.rho[self.field.graph.ends[self.node(rho), transition]]

    @property
    def met(self) -> Nodes:
        """Every ρ that the search came to."""
        return self.field.graph.rho[self.field.graph.owner == self.owner]

    def plan(self, rho: Float[np.ndarray, "K"]) -> Plan:
        """The cheapest path from ρ, if the search met it."""
        graph, node = (
            self.field.graph,
            int(self.field.graph.find(np.asarray(rho, np.float32)[None], np.array([self.owner]))[0]),
        )
        if node == NO_NODE or not np.isfinite(self.field.remaining[node]):
            return Plan(Outcome.UNREACHABLE if self.outcome is Outcome.FOUND else self.outcome)
        cost, path, transitions = float(self.field.remaining[node]), [node], []
        while self.field.remaining[node] > 0:
            transitions.append(int(np.argmin(self.options(node))))
            node = int(graph.ends[node, transitions[-1]])
            path.append(node)
        return Plan(Outcome.FOUND, cost, tuple(tuple(map(float, graph.rho[n])) for n in path), tuple(transitions))


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
    """Searches from several starts, each for its own goal low <= ρ <= high, side by side.

    The graph grows layer by layer, in batches. Once an owner's goal has been met, only nodes cheaper to reach than the
    goal are expanded, as Dijkstra would; when none is left the path is optimal. `max_nodes` bounds the nodes per owner.
    `max_seconds` bounds the whole call where a person waits for it; what is found then depends on the machine.
    `raised` names edges that cost more than `edges` says.
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
    field, cut = Field(graph, is_goal), Outcome.LATE if late else Outcome.SPENT
    outcomes = [_outcome(float(field.remaining[k]), cut if spent[k] else None) for k in range(len(starts))]
    return [Route(field, k, outcome, raised) for k, outcome in enumerate(outcomes)]


def _outcome(remaining: float, cut: Outcome | None) -> Outcome:
    if np.isfinite(remaining):
        return Outcome.FOUND
    return cut or Outcome.UNREACHABLE


def _frontier(
    graph: Graph, is_goal: Bool[np.ndarray, "n"], spent: Bool[np.ndarray, "owners"]
) -> Int64[np.ndarray, "m"]:
    """The unexpanded nodes worth looking beyond: not yet spent, and cheaper to reach than the owner's nearest goal."""
    nearest = np.full(len(spent), np.inf)
    np.minimum.at(nearest, graph.owner[is_goal], graph.reach[is_goal])
    waiting = ~graph.expanded & ~is_goal & ~spent[graph.owner] & (graph.reach < nearest[graph.owner])
    return np.flatnonzero(waiting)


def distances(graph: Graph, is_goal: Bool[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """The cost of the cheapest path from every node to a goal of its owner."""
    goals = np.flatnonzero(is_goal)
    if not len(goals) or not graph.ends.size:
        return np.where(is_goal, 0.0, np.inf)
    real = graph.ends >= 0
    first = np.append(0, np.cumsum(real.sum(axis=1))).astype(np.int32)
    cost = np.maximum(graph.cost[real].astype(np.float64), FREE)
    # Rows of edges as they lie, read as columns: the graph against its direction. Built so, parallel edges stay apart,
    # where a matrix of (row, column) pairs would add them up.
    against = scipy.sparse.csc_array((cost, graph.ends[real], first), shape=(len(graph), len(graph)))
    return dijkstra(against, indices=goals, min_only=True)
