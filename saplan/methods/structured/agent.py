"""The structured agent: finds a path to any goal written in attributes, and carries it out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from saplan.games import Game
from saplan.games.game import uncertain_attributes
from saplan.goals import Goal, parse_goal
from saplan.interpreter.program import interpretable
from saplan.methods.agent import DEFAULT_PLANNER, PlannerSettings, first_action, in_words, one_goal
from saplan.methods.executor import choose_actions
from saplan.methods.plan_executor import FirstEdges, PlanExecutor, RouteFinder
from saplan.methods.policy import Policy
from saplan.methods.structured.edge_detector import EdgeDetector
from saplan.methods.structured.evidence import Evidence, Familiar
from saplan.methods.structured.guided import GuidedSearch
from saplan.methods.structured.memory import Memory, Visited, marginals
from saplan.methods.structured.outcomes import ActionOutcomes, OutcomeExecutor
from saplan.methods.structured.settings import StructuredSettings
from saplan.methods.structured.suspicion import boundaries, refuted
from saplan.planning import AnyRoute, Edges, ExpectedRoute, Landscape, Outcome, Plan, Raised, SpreadEdges
from saplan.rl.repeated_actions import empty_history

BATCHES = (64, 512)
"""Batch sizes for scoring edges: few, so that few programs are compiled; small, so that they stay in cache."""
SURE = 0.9
"""Probability from which on a change may lead to a combination of values that training never visited."""
CELL = 2
"""Grains per cell of the grid for plans in expectation."""
REACH = 8
"""Cells of that grid within which a failure counts for its surroundings too: a boundary is no single point."""


class StructuredAgent(eqx.Module):
    """Policy, edge detector and memory of a game, trained or not."""

    policy: Policy
    detector: EdgeDetector
    memory: Memory
    visited: Visited
    evidence: Evidence
    game: Game[Any] = eqx.field(static=True)
    settings: StructuredSettings = eqx.field(static=True)
    outcomes: ActionOutcomes | None = None
    """What every action leads to, where moves are random."""
    bounds: Float[Array, "2 C K"] | None = None
    """Values of ρ below and above which a transition is not planned, because it failed there; None without any."""
    transition_model: ClassVar[str | None] = "edge detector"

    def goal(self, text: str) -> Goal:
        """Goal of a text such as `"red=2 blue=1"`."""
        return parse_goal(self.game.space, text)

    def plan(self, state: Any, goal: Goal | str, planner: PlannerSettings = DEFAULT_PLANNER) -> Plan:
        """Cheapest path of transitions from a state's attributes to a goal."""
        rho = np.asarray(self.game.attributes(state))
        (route,) = self.route_finder(planner)(rho[None], one_goal(self.game.space, goal), planner)
        plan, unsure = route.plan(rho), uncertain_attributes(self.game, state)
        beyond = self.beyond(plan.rho or (tuple(map(float, rho)),))
        return in_words(self.game, replace(plan, uncertain_attributes=unsure, beyond=beyond))

    def beyond(self, path: Sequence[Sequence[float]]) -> tuple[str, ...]:
        """Values on a path that training never met, each in a sentence, or the first combination of them."""
        space, rho = self.game.space, np.asarray(path, np.float32)
        found = self.evidence.sentences(space, rho)
        least, greatest = np.asarray(self.evidence.met)
        if found or not (least <= greatest).any() or not self.uncertain:
            return found
        fresh = rho[~np.asarray(_was_visited(self, rho))]
        return (f"{space.format(fresh[0])}: training never met these values together",) if len(fresh) else ()

    def act(self, key: PRNGKeyArray, state: Any, goal: Goal | str, planner: PlannerSettings = DEFAULT_PLANNER) -> int:
        """Next action from a state towards a goal. An executor is faster over several steps: it keeps its search."""
        return first_action(self, key, state, goal, planner)

    def execute(self, key: PRNGKeyArray, state: Any, transition: int) -> int:
        """An action towards one transition of 𝓑, by the present state alone; an executor also uses its history."""
        states, label = jax.tree.map(lambda x: x[None], state), jnp.array([transition])
        subgoal, history = self.memory.delta[label], empty_history(1, 1)
        action, _ = choose_actions(self.in_use.policy, self.game, self.settings, key, states, subgoal, label, history)
        return int(action[0])

    def executor(
        self, state: Any, goals: Goal, planner: PlannerSettings = DEFAULT_PLANNER
    ) -> PlanExecutor | OutcomeExecutor:
        """Executor of several tasks side by side, one state and one goal each."""
        planner = planner.stretched(self.game)
        if self.outcomes is not None and planner.outcomes > 1:
            return OutcomeExecutor(self, state, goals, planner)
        compact = replace(self.in_use, memory=self.memory.compact())
        return PlanExecutor(compact, compact.route_finder(planner), state, goals, planner)

    @property
    def in_use(self) -> "StructuredAgent":
        """The agent with a policy that is shown values beyond the range of training by the nearest ones inside."""
        return replace(self, policy=replace(self.policy, shown=self.familiar))

    @property
    def familiar(self) -> Familiar:
        """Shows networks the nearest ρ inside the range of training."""
        return Familiar(self.evidence)

    def route_finder(self, planner: PlannerSettings) -> RouteFinder:
        """The agent's search, which takes failures beyond the range of training for a boundary."""
        return Wary(self, planner)

    def plain_finder(self, planner: PlannerSettings) -> RouteFinder:
        """The search along mean changes, or in expectation where changes are uncertain."""
        return (InExpectation if planner.outcomes > 1 and self.uncertain else GuidedSearch)(self, planner)

    @property
    def uncertain(self) -> bool:
        """Whether some change in 𝓑 varies."""
        return bool(_trust(self)[1])

    @property
    def trusted(self) -> Bool[Array, "C"]:
        """Whether each entry of 𝓑 is used in plans."""
        return self.memory.trusted(self.game.space, self.settings.rare, self.settings.double)

    @property
    def planned(self) -> Bool[np.ndarray, "C"]:
        """`trusted` on the host, without a compilation where programs are interpreted."""
        return np.asarray(_trust(self)[0])

    @property
    def perceived(self) -> Game[Any]:
        """The game as this agent perceives it: as it is."""
        return self.game

    def first_edges(self, state: Any, planner: PlannerSettings) -> FirstEdges:
        """Cost and expected steps of every first transition, by the policy's value of the present states."""
        cost, steps = price_first(self, state, planner)
        return FirstEdges(np.asarray(cost) if planner.critic else None, np.asarray(steps))

    def known(self, rho: Float[np.ndarray, "K"]) -> Float[np.ndarray, "C"]:
        """One for every trusted entry of 𝓑."""
        return np.asarray(_trust(self)[0], float)

    def change(
        self, rho: Float[np.ndarray, "*n K"], transition: int | Int[np.ndarray, "*n"]
    ) -> Float[np.ndarray, "*n K"]:
        """The change of an entry of 𝓑, the same at every ρ: this is the use of an algebra."""
        change: Float[np.ndarray, "*n K"] = np.asarray(self.memory.delta)[transition]
        return change

    def subgoal(
        self, rho: Float[np.ndarray, "*n K"], transition: int | Int[np.ndarray, "*n"]
    ) -> Float[np.ndarray, "*n K"]:
        """The change itself: the policy is conditioned on it."""
        return self.change(rho, transition)

    def edges(self, rho: Float[np.ndarray, "n K"], planner: PlannerSettings) -> Edges:
        """All transitions from a batch of nodes."""
        return Edges(*in_batches(rho, lambda batch: price_edges(self, batch, planner)))

    def after_success(self, raised: Raised, rho: Float[np.ndarray, "K"], transition: int) -> Raised:
        """The added costs that remain after a success: it refutes suspicions of a boundary."""
        return refuted(np.asarray(self.evidence.met), np.asarray(self.memory.delta), raised, rho, transition)


class Wary:
    """The search of an agent that suspects boundaries where changes keep failing beyond the range of training."""

    def __init__(self, agent: StructuredAgent, planner: PlannerSettings) -> None:
        """Start without suspicions."""
        self.agent, self.planner = agent, planner
        self.finders: dict[bytes, RouteFinder] = {}

    def __call__(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planner: PlannerSettings, raised: Sequence[Raised] = ()
    ) -> Sequence[AnyRoute]:
        """Routes from several ρ to a goal each, on this side of the boundaries that failures in `raised` suggest."""
        raised = raised or [()] * len(rho)
        low, high = np.asarray(goals.low), np.asarray(goals.high)
        groups: dict[bytes, list[int]] = {}
        for task, failures in enumerate(raised):
            groups.setdefault(self._bounds(failures), []).append(task)
        found: dict[int, AnyRoute] = {}

        def search(finder: RouteFinder, tasks: list[int]) -> None:
            part = Goal(low[tasks], high[tasks])
            found.update(zip(tasks, finder(rho[tasks], part, planner, [raised[task] for task in tasks]), strict=True))

        for bounds, tasks in groups.items():
            search(self._finder(bounds), tasks)
        # Where no path is left, the suspicion may be wrong: some attempts fail by bad luck. To try again is better than
        # to give up.
        lost = [task for task in found if self._suspects(raised[task]) and found[task].outcome is not Outcome.FOUND]
        if lost:
            search(self._finder(self._bounds(())), lost)
        return [found[task] for task in range(len(rho))]

    def _suspects(self, failures: Raised) -> bool:
        return self._bounds(failures) != self._bounds(())

    def _bounds(self, failures: Raised) -> bytes:
        agent = self.agent
        return boundaries(np.asarray(agent.evidence.met), np.asarray(agent.memory.delta), failures).tobytes()

    def _finder(self, name: bytes) -> RouteFinder:
        """The search on this side of some boundaries, made once."""
        if name not in self.finders:
            bounds = np.frombuffer(name, np.float32).reshape(2, *self.agent.memory.delta.shape)
            on_this_side = replace(self.agent, bounds=jnp.asarray(bounds) if np.isfinite(bounds).any() else None)
            self.finders[name] = on_this_side.plain_finder(self.planner)
        return self.finders[name]


@interpretable
@jax.jit
def _spread(memory: Memory) -> Float[Array, "C K"]:
    return memory.spread


class InExpectation:
    """The search of an agent whose changes are uncertain. Its landscape serves all tasks."""

    def __init__(self, agent: StructuredAgent, planner: PlannerSettings) -> None:
        """Start with an empty landscape."""
        discrete = np.asarray(_spread(agent.memory)).max(axis=0) <= np.asarray(agent.game.space.grain)
        cells = np.asarray(agent.game.space.grain, np.float32) * np.where(discrete, 1, CELL)
        reach = (cells * np.where(discrete, 0, REACH)).astype(np.float32)
        # Without its policy, which planning does not ask: every call of a compiled program looks through all arrays.
        price = partial(spread_edges, eqx.tree_at(lambda a: a.policy, agent, None), planner)
        bounds = planner.max_nodes, planner.max_seconds
        self.begin = partial(Landscape, cells.astype(np.float32), price, *bounds, reach)
        self.landscape = self.begin()

    def __call__(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planner: PlannerSettings, raised: Sequence[Raised] = ()
    ) -> list[ExpectedRoute]:
        """Routes in expectation from several ρ to a goal each."""
        if self.landscape.full and not self.landscape.complete:
            self.landscape = self.begin()  # the surroundings of these ρ have no room in the old one
        return self.landscape.routes(rho, np.asarray(goals.low), np.asarray(goals.high), raised)


def spread_edges(agent: StructuredAgent, planner: PlannerSettings, rho: Float[np.ndarray, "n K"]) -> SpreadEdges:
    """All uncertain transitions from a batch of nodes."""
    return SpreadEdges(*in_batches(rho, lambda batch: price_spread(agent, batch, planner)))


def in_batches(rho: Float[np.ndarray, "n K"], price: Callable[[np.ndarray], Any]) -> list[np.ndarray]:
    """Arrays that `price` returns for many ρ, computed in batches of few sizes; only the last batch is padded."""
    parts = []
    for start in range(0, len(rho), BATCHES[-1]):
        part = rho[start : start + BATCHES[-1]]
        size = next(b for b in BATCHES if b >= len(part))
        parts.append(price(np.concatenate([part, np.repeat(part[:1], size - len(part), axis=0)])))
    # All batches have been dispatched before the first result is waited for.
    return [np.concatenate([np.asarray(x) for x in column])[: len(rho)] for column in zip(*parts, strict=True)]


@interpretable
@partial(jax.jit, static_argnames="planner")
def price_spread(agent: StructuredAgent, rho: Float[Array, "n K"], planner: PlannerSettings) -> tuple[Array, ...]:
    """The fields of `SpreadEdges`. A change is spread evenly, as wide as its standard deviation says."""
    space, memory = agent.game.space, agent.memory
    places = (2 * jnp.arange(planner.outcomes) + 1) / planner.outcomes - 1
    # Rounding leaves a trace of spread in certain changes as well; without this, a used hammer would nearly exist.
    spread = jnp.where(memory.spread > jnp.array(space.grain), memory.spread, 0.0)
    changes = memory.delta[:, None] + jnp.sqrt(3.0) * places[:, None] * spread[:, None]
    ends = space.compose(rho[:, None, None], changes)
    log_success, steps = edge_outlook(agent, rho, planner)
    cost = -log_success + planner.time_weight * steps
    # Places that training never visited are trusted only as far as the evidence goes.
    carried, known = carry_over(agent, ends, planner)
    # Inside the range, an unvisited combination is trusted where the detector is sure of the change that leads there:
    # at a boundary that training has probed, it is not.
    sure = (log_success > jnp.log(SURE)) & jnp.any(agent.evidence.present) & planner.beyond
    met = agent.visited(space, carried) | sure[:, :, None]
    real = agent.trusted[:, None] & space.contains(ends) & known & met
    likely = agent.trusted & (log_success > jnp.log(planner.floor)) & this_side(agent, rho)
    probability = jnp.where(agent.trusted, jnp.exp(log_success), jnp.nan)
    return ends, real & likely[:, :, None], jnp.where(likely, cost, jnp.inf), probability, steps


@interpretable
@partial(jax.jit, static_argnames="planner")  # a third of the overhead of `filter_jit`, paid per batch
def price_edges(agent: StructuredAgent, rho: Float[Array, "n K"], planner: PlannerSettings) -> tuple[Array, ...]:
    """The fields of `Edges`. An edge costs -log of its success plus the price of its time; infinite where cut."""
    space, memory = agent.game.space, agent.memory
    # Changes are rounded to the grain of the graph: two that nearly cancel would else create ever new nodes.
    grain = jnp.array(space.grain)
    ends = space.compose(rho[:, None], jnp.round(memory.delta / grain) * grain)
    log_success, steps = edge_outlook(agent, rho, planner)
    cost = -log_success + planner.time_weight * steps
    # A value that training never met is trusted only as far as the evidence goes.
    known = carry_over(agent, ends, planner)[1]
    likely = (log_success > jnp.log(planner.floor)) & this_side(agent, rho)
    real = agent.trusted & space.contains(ends) & known & likely
    probability = jnp.where(agent.trusted, jnp.exp(log_success), jnp.nan)
    return ends, jnp.where(real, cost, jnp.inf), probability, steps


def carry_over(
    agent: StructuredAgent, rho: Float[Array, "... K"], planner: PlannerSettings
) -> tuple[Float[Array, "... K"], Bool[Array, "..."]]:
    """ρ moved into the range that training met where opinions carry over, and whether each of its values is trusted."""
    evidence, space = agent.evidence, agent.game.space
    counts = agent.memory.explored + agent.memory.executed
    beyond = evidence.beyond(rho)
    # The outermost bins hold all values beyond them, so they say nothing about a value outside the range.
    outermost = (space.bin(rho) == 0) | (space.bin(rho) == jnp.array(space.bins) - 1)
    visited = (marginals(counts, space, rho) > 0) & ~(outermost & jnp.any(beyond, axis=-2))
    carries = jnp.any(beyond & evidence.carries & planner.beyond, axis=-2) & ~visited
    carried = jnp.where(carries, jnp.clip(rho, evidence.met[0], evidence.met[1]), rho)
    return carried, jnp.all(visited | carries, axis=-1)


def this_side(agent: StructuredAgent, rho: Float[Array, "n K"]) -> Bool[Array, "n C"]:
    """Whether each ρ lies on this side of all boundaries that are suspected for a transition."""
    if agent.bounds is None:
        return jnp.ones((len(rho), len(agent.memory.delta)), bool)
    return ~jnp.any((rho[:, None] <= agent.bounds[0]) | (rho[:, None] >= agent.bounds[1]), axis=-1)


def edge_outlook(
    agent: StructuredAgent, rho: Float[Array, "n K"], planner: PlannerSettings
) -> tuple[Float[Array, "n C"], Float[Array, "n C"]]:
    """Logarithm of the success probability, and expected steps, of every transition at every ρ."""
    scores = agent.detector(agent.game.space, agent.familiar(rho)[:, None], agent.memory.delta[None])
    logit = scores.success if planner.calibrated else scores.feasible
    return jax.nn.log_sigmoid(logit), jnp.exp(jnp.clip(scores.log_steps, 0.0, 5.0))


@interpretable
@jax.jit
def _was_visited(agent: StructuredAgent, rho: Float[Array, "n K"]) -> Bool[Array, "n"]:
    return agent.visited(agent.game.space, rho)


@interpretable
@jax.jit
def _trust(agent: StructuredAgent) -> tuple[Bool[Array, "C"], Bool[Array, ""]]:
    """Which entries of 𝓑 are used in plans, and whether the change of any of them varies."""
    varies = agent.memory.spread > jnp.array(agent.game.space.grain)
    return agent.trusted, jnp.any(varies & agent.trusted[:, None])


@interpretable
@eqx.filter_jit
def price_first(
    agent: StructuredAgent, state: Any, planner: PlannerSettings
) -> tuple[Float[Array, "n C"], Float[Array, "n C"]]:
    """Cost and expected steps of every first transition, by the policy's value: it sees how far the objects are."""
    settings = agent.settings
    rho = jax.vmap(agent.game.attributes)(state)
    log_success, _ = edge_outlook(agent, rho, planner)
    trunk = agent.in_use.policy.trunk(jax.vmap(agent.game.observe)(state), rho)
    value = jax.vmap(lambda d: agent.policy.execution_log_value(trunk, d), out_axes=1)(agent.memory.delta)
    steps = jnp.clip(1 + (value - log_success) / jnp.log(settings.discount), 1.0, settings.attempt_steps)
    return -log_success + planner.time_weight * steps, steps
