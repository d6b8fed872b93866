"""Plans, and routes: everything that one search found out about one goal."""

import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Int32

from saplan.planning.graph import NO_NODE, Graph, Nodes, Raised, raised_at
from saplan.planning.printing import html_table, plan_row

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
    bound: float = 0.0
    """No path costs less, as far as the agent knows its changes."""
    uncertain_attributes: tuple[tuple[str, float], ...] = ()
    """Attributes of the start that the agent is not sure of, with its confidence in each."""
    beyond: tuple[str, ...] = ()
    """Values on the path that training never met, each in a sentence with the evidence that opinions carry over."""

    @property
    def rho(self) -> tuple[tuple[float, ...], ...]:
        """Attributes along the path, start and goal included."""
        return (self.start, *(step.rho for step in self.path)) if self.start else ()

    @property
    def gap(self) -> float:
        """How much cheaper another path could be at most."""
        return max(0.0, self.cost - self.bound)

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
    start: int
    """Node from which the search began."""
    nodes: Int32[np.ndarray, "m"]
    """Nodes that the search came to, in ascending order."""
    expanded: Bool[np.ndarray, "m"]
    """Whether the search looked at the edges of each."""
    remaining: Float64[np.ndarray, "m"]
    """Cost from each to the goal, by the cheapest path that the search saw."""
    low: Float[np.ndarray, "K"]
    high: Float[np.ndarray, "K"]
    outcome: Outcome
    raised: Raised = ()
    cut: bool = False
    """Whether a bound ended the search, so that a better path may exist."""
    bound: float = 0.0
    """No path from the start costs less."""
    why: str = ""
    """Why the goal is unreachable, in a sentence, where arithmetic shows it."""

    @property
    def failure(self) -> Outcome:
        """The outcome for a ρ without a path."""
        return Outcome.UNREACHABLE if self.outcome is Outcome.FOUND else self.outcome

    def stale(self, rho: Float[np.ndarray, "K"]) -> bool:
        """Whether a new search from ρ may find a path that this one, cut short elsewhere, did not."""
        return self.outcome in (Outcome.SPENT, Outcome.LATE) and self._find(rho) != self.start

    def node(self, rho: Float[np.ndarray, "K"]) -> int:
        """Node of ρ; NO_NODE if the search did not expand it."""
        found = self._find(rho)
        return found if found != NO_NODE and self.expanded[self._place(found)] else NO_NODE

    def left(self, nodes: Int[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
        """Cost from nodes to the goal; infinite for nodes that the search did not reach, and for NO_NODE."""
        place = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        return np.where(self.nodes[place] == nodes, self.remaining[place], np.inf)

    def totals(self, node: int) -> Float[np.ndarray, "C"]:
        """Cost to the goal by way of each transition from a node."""
        totals: Float[np.ndarray, "C"] = np.maximum(self._costs(node), FREE) + self.left(self.graph.ends[node])
        return totals

    def knows(self, rho: Float[np.ndarray, "K"]) -> bool:
        """Whether the search expanded ρ."""
        return self.node(rho) != NO_NODE

    def successors(self, rho: Float[np.ndarray, "K"]) -> Successors | None:
        """Every transition from ρ; None if the search did not expand it."""
        node, graph = self.node(rho), self.graph
        if node == NO_NODE:
            return None
        nearer = self.left(graph.ends[node]) < self.left(np.array(node))
        raised = raised_at(rho, self.raised, graph.grain, len(nearer))
        estimates = graph.probability[node], graph.steps[node]
        return Successors(self._costs(node), raised, self.totals(node), nearer, *estimates)

    @property
    def met(self) -> Nodes:
        """Every ρ that the search came to."""
        met: Nodes = self.graph.rho[self.nodes]
        return met

    def plan(self, rho: Float[np.ndarray, "K"], first: int | None = None) -> Plan:
        """Cheapest path from ρ, or the cheapest that begins with `first`, a transition that leads to the goal."""
        graph, node = self.graph, self._find(rho)
        cost = float(self.left(np.array(node)))
        if not np.isfinite(cost):
            return Plan(self.failure)
        start, bound = to_tuple(graph.rho[node]), self.bound if node == self.start else 0.0 if self.cut else cost
        path: list[PlannedTransition] = []
        while self.left(np.array(node)) > 0:
            totals = self.totals(node)
            chosen = int(np.argmin(totals)) if path or first is None else first
            if first is not None and not path:
                cost = float(totals[first])
            estimates = known(graph.probability[node, chosen]), known(graph.steps[node, chosen])
            node = int(graph.ends[node, chosen])
            path.append(PlannedTransition(chosen, to_tuple(graph.rho[node]), *estimates))
        return Plan(Outcome.FOUND, cost, start, tuple(path), min(bound, cost))

    def _costs(self, node: int) -> Float64[np.ndarray, "C"]:
        """Cost of every transition from a node, raised costs included."""
        cost = self.graph.cost[node].astype(np.float64)
        return np.asarray(cost + raised_at(self.graph.rho[node], self.raised, self.graph.grain, len(cost)))

    def _place(self, node: int) -> int:
        return int(np.searchsorted(self.nodes, node))

    def _find(self, rho: Float[np.ndarray, "K"]) -> int:
        """Node of ρ if the search came to it."""
        node = int(self.graph.find(np.asarray(rho, np.float32)[None])[0])
        place = self._place(node)
        return node if place < len(self.nodes) and self.nodes[place] == node else NO_NODE


def to_tuple(rho: Float[np.ndarray, "K"]) -> tuple[float, ...]:
    """ρ as plain numbers."""
    return tuple(map(float, rho))


def known(estimate: float | np.floating) -> float | None:
    """An estimate as a plain number; None where the method has none."""
    return float(estimate) if np.isfinite(estimate) else None
