"""Time to plan by graph size: python benchmarks/graph_search.py --json results/benchmark-planning.json.

The world is a cube in ℕ^4 with eight transitions, ±1 in each coordinate: a side of 15 gives 50,625 nodes and 378,000
edges. An edge detector of the usual size prices every edge, through the function that an agent plans with; its weights
are random and stretched, so that the prices differ. The floor cuts no edge, all values inside the cube count as visited
and none beyond it, and the goal is the corner farthest from the start, so that the search must expand the whole graph.
One more row has its goal in the middle, where the search has to stop early.

The time covers everything from the request to the path: growing the graph, scoring, shortest paths, and reading the
path. Compilation, once per program and size of batch, is reported separately. The floor is a single run of SciPy's
Dijkstra on the finished matrix of the same graph.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from common import describe, make_parser, progress, quantity, setting, text_table
from scipy.sparse.csgraph import dijkstra

from saplan.algebra import Natural, Product
from saplan.experiments.result_file import write_result
from saplan.methods.agent import PlannerSettings
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.edge_detector import EdgeDetector
from saplan.methods.structured.evidence import no_evidence
from saplan.methods.structured.memory import Memory, condense, empty_memory
from saplan.methods.structured.settings import StructuredSettings
from saplan.planning import Graph, Outcome, Route, search

DIMENSIONS = 4
SIDES = {"1 k": 6, "5 k": 8, "50 k": 15, "200 k": 21}
"""Values per coordinate, by the resulting number of nodes."""
GOAL = "50 k"
GOAL_SECONDS = 0.2
"""Target for a graph of 50,000 nodes and 400,000 edges on two cores."""
WHOLE = PlannerSettings(floor=0.0, max_nodes=1_000_000)
"""No bound is active: the whole graph is searched."""
SPREAD = 10.0
"""Factor of the random detector's last layer: its prices then range from about 0.2 to 2 nats."""


@dataclass(frozen=True)
class Cube:
    """A world without states: planning needs only the space of a game."""

    side: int
    middle: bool = False
    """Whether the goal is the middle of the cube instead of its far corner."""

    @property
    def space(self) -> Product:
        """ℕ^4; the last bin of every coordinate stands for values beyond the cube."""
        return Product(tuple("abcd"), (Natural(bins=self.side + 1),) * DIMENSIONS)

    @property
    def start(self) -> np.ndarray:
        """One corner."""
        return np.zeros((1, DIMENSIONS), np.float32)

    @property
    def goal(self) -> np.ndarray:
        """The opposite one, or the middle."""
        return np.full((1, DIMENSIONS), (self.side - 1) // (2 if self.middle else 1), np.float32)


@dataclass
class Measured:
    """One size of world and the seconds measured so far."""

    label: str
    agent: StructuredAgent
    nodes: int = 0
    edges: int = 0
    transitions: int = 0
    """Length of the path."""
    batches: int = 0
    """Calls of the edge function per plan."""
    first: float = 0.0
    """The first plan, compilation included."""
    total: list[float] = field(default_factory=list)
    scoring: list[float] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)

    def median(self, what: str) -> float:
        """The median of one of the lists of seconds."""
        return float(statistics.median(getattr(self, what)))


def make_agent(world: Cube, key: jax.Array) -> StructuredAgent:
    """An agent whose memory holds the eight transitions and all values of the cube."""
    detector = EdgeDetector.init(key, world.space, StructuredSettings().edge_hidden)
    detector = eqx.tree_at(lambda d: d.network.head.outputs.weight, detector, replace_fn=lambda w: SPREAD * w)
    settings = StructuredSettings(capacity=2 * DIMENSIONS)
    # Planning needs neither the policy nor the rules of the game.
    return StructuredAgent(None, detector, *condense(full_memory(world)), no_evidence(world.space), world, settings)  # type: ignore[arg-type]


def full_memory(world: Cube) -> Memory:
    """±1 in every coordinate, every value of the cube visited."""
    unit = jnp.eye(DIMENSIONS)
    delta = jnp.concatenate([unit, -unit])
    visited = jnp.ones((DIMENSIONS, world.side + 1), jnp.int32).at[:, world.side].set(0)
    memory = empty_memory(world.space, len(delta), 8)
    size = jnp.array(len(delta), jnp.int32)
    full: Memory = eqx.tree_at(lambda m: (m.key, m.delta, m.size, m.explored), memory, (delta, delta, size, visited))
    return full


class Stopwatch:
    """An edge function that records its time and calls."""

    def __init__(self, edges: Callable[[np.ndarray], Any]) -> None:
        """Starts at zero."""
        self.edges, self.seconds, self.calls = edges, 0.0, 0

    def __call__(self, nodes: np.ndarray) -> Any:
        """The edges from a batch of nodes."""
        begin = time.perf_counter()
        result = self.edges(nodes)
        self.seconds += time.perf_counter() - begin
        self.calls += 1
        return result


def plan_once(entry: Measured) -> tuple[float, Stopwatch, Route]:
    """Seconds, scoring time and route of one plan, made as `Agent.plan` makes it."""
    world: Any = entry.agent.game
    scoring = Stopwatch(lambda nodes: entry.agent.edges(nodes, WHOLE))
    begin = time.perf_counter()
    grain = np.asarray(world.space.grain, np.float32)
    bounds = WHOLE.max_nodes, WHOLE.max_seconds
    route = search(world.start, world.goal, world.goal, grain, scoring, *bounds)[0]
    plan = route.plan(world.start[0])
    seconds = time.perf_counter() - begin
    if plan.outcome is not Outcome.FOUND:
        raise SystemExit(f"no plan in the cube of {entry.label} nodes: {plan.outcome.value}")
    entry.transitions = len(plan.transitions)
    return seconds, scoring, route


def matrix_of(graph: Graph) -> scipy.sparse.csr_matrix:
    """The finished graph as a sparse matrix."""
    ends, cost = np.asarray(graph.ends), np.asarray(graph.cost)
    real = ends >= 0
    start = np.repeat(np.arange(len(graph)), real.sum(axis=1))
    return scipy.sparse.csr_matrix((cost[real].astype(np.float64), (start, ends[real])), shape=(len(graph),) * 2)


def measure(entry: Measured, repetitions: int) -> None:
    """Plans several times, each followed by SciPy's search on the same graph."""
    entry.first, _, route = plan_once(entry)
    matrix = matrix_of(route.graph)
    entry.nodes, entry.edges = len(route.graph), matrix.nnz
    for _ in range(repetitions):
        seconds, scoring, _ = plan_once(entry)
        entry.total.append(seconds)
        entry.scoring.append(scoring.seconds)
        entry.batches = scoring.calls
        begin = time.perf_counter()
        dijkstra(matrix, indices=0)
        entry.floor.append(time.perf_counter() - begin)


def milliseconds(seconds: float) -> str:
    """Seconds as `123 ms`."""
    return f"{1000 * seconds:.1f} ms" if seconds < 0.01 else f"{1000 * seconds:.0f} ms"


def main() -> None:
    """Measures all sizes and prints the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=7, help="plans per size")
    parser.add_argument("--sizes", nargs="+", choices=SIDES, default=list(SIDES))
    options = parser.parse_args()

    facts = setting()
    print(describe(facts), flush=True)
    key = jax.random.key(0)
    entries = [Measured(label, make_agent(Cube(SIDES[label]), key)) for label in options.sizes]
    if GOAL in options.sizes:
        entries.append(Measured(f"{GOAL}, goal in the middle", make_agent(Cube(SIDES[GOAL], middle=True), key)))
    for entry in entries:
        measure(entry, options.repetitions)
        progress(
            f"{entry.label} nodes: {milliseconds(entry.median('total'))} (the first {entry.first:.1f} s: compiled)"
        )

    rows, records = [], []
    for entry in entries:
        total, scoring, floor = (entry.median(what) for what in ("total", "scoring", "floor"))
        times = milliseconds(total), milliseconds(scoring), milliseconds(total - scoring), milliseconds(floor)
        per_node = f"{1e6 * total / entry.nodes:.1f} µs"
        sizes = quantity(entry.nodes), quantity(entry.edges), str(entry.batches)
        rows.append((entry.label, *sizes, *times, f"{total / floor:.1f}×", per_node))
        records.append({
            "world": entry.label, "nodes": entry.nodes, "edges": entry.edges, "path": entry.transitions,
            "batches": entry.batches, "first": entry.first, "total": entry.total, "scoring": entry.scoring,
            "floor": entry.floor, "median": {"total": total, "scoring": scoring, "floor": floor},
        })  # fmt: skip
    print(f"\nTime to plan, medians of {options.repetitions}; without compilation\n")
    head = ("world", "nodes", "edges", "batches", "plan", "scoring", "the rest", "Dijkstra alone", "ratio",
            "per node")  # fmt: skip
    print(text_table(head, rows))
    for entry in entries:
        if entry.label == GOAL:
            verdict = "met" if entry.median("total") <= GOAL_SECONDS else "missed"
            print(f"\nGoal: {milliseconds(GOAL_SECONDS)} for 50 k nodes and 400 k edges on two cores: {verdict}")
    write_result(options.json, {"setting": facts, "goal_seconds": GOAL_SECONDS, "entries": records})


if __name__ == "__main__":
    main()
