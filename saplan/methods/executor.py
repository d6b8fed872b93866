"""Tasks being carried out side by side: steps and attempts are booked here, what to do next is the method's to say."""

import abc
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from saplan.games import Game
from saplan.goals import Goal
from saplan.methods.policy import Policy, execution_preference
from saplan.planning import ExpectedRoute, Outcome, Raised, Route
from saplan.rl.history import History, empty_history, extend
from saplan.rl.settings import Settings

TRAIL = 80
"""Steps that are remembered, so that a circle is noticed; a change of ρ makes a new start."""
GRACE = 5
"""Steps that an attempt may always take longer than expected."""
AnyRoute = Route | ExpectedRoute
GROUP = 16
"""Tasks whose searches share a graph: enough to fill batches, few enough to fit in memory."""


@dataclass(frozen=True)
class PlannerSettings:
    """How plans are priced and bounded."""

    time_weight: float = 0.03
    """Price of one expected step, in nats of success probability (paper: 0, the likeliest path however long)."""
    calibrated: bool = True
    """Whether edges are priced by the calibrated head of the detector (paper: it has but one)."""
    critic: float = 0.3
    """Among first edges whose paths cost at most this much more than the best, the policy's own value of the present
    state decides: it sees where things lie, the edge detector does not (paper: 0)."""
    floor: float = 0.1
    """Edges that succeed less often are cut."""
    penalty: float = 2.0
    """Added to the cost of an edge each time it fails from this very ρ, in nats."""
    attempt_steps: int = 40
    """Steps after which an attempt has failed and the agent plans anew, at the latest."""
    patience: float = 1.5
    """It has failed already after this many times the steps that the policy expected of it, and a few more: on mining
    a refused blow stays refused (paper: infinite)."""
    temperature: float | None = 0.02
    """Sharpness of the execution policy in use; None for that of its training, which has to try things out."""
    outcomes: int = 5
    """Ends that an uncertain change is thought to have; plans are then made in expectation (paper: 1, the mean)."""
    max_nodes: int = 100_000
    """Nodes of a search, for each task."""
    max_seconds: float = math.inf
    """Seconds of a search, for where a person waits: what is found then depends on how busy the machine is, and a plan
    that was cut short says so."""


DEFAULT_PLANNER = PlannerSettings()
PAPER_PLANNER = PlannerSettings(
    time_weight=0.0, calibrated=False, critic=0.0, temperature=None, patience=np.inf, outcomes=1
)
"""The paper's way to plan: the likeliest path by the one probability its detector gives."""


def planner_settings_for(settings: Settings) -> PlannerSettings:
    """The paper's way for agents that were trained as the paper does, else ours."""
    return PAPER_PLANNER if not settings.relabel and not settings.repeat_cost else DEFAULT_PLANNER


@dataclass(frozen=True)
class Attempt:
    """One try at one change while carrying out a task."""

    task: int
    rho: tuple[float, ...]
    delta: tuple[float, ...]
    success: bool
    steps: int


@dataclass
class EvalResult:
    """How the tasks of an evaluation went."""

    success: Bool[np.ndarray, "tasks"]
    steps: Int[np.ndarray, "tasks"]
    """Steps until success, or the whole budget."""
    attempts: list[Attempt] = field(default_factory=list)


class Executor(abc.ABC):
    """Tasks being carried out side by side."""

    def __init__(self, game: Game[Any], state: Any, goals: Goal, seen: Game[Any] | None = None) -> None:
        """Everybody at the start. `seen` is the game as the agent perceives it, if its ρ is not the true one."""
        self.game, self.seen, self.state = game, seen or game, state
        self.low, self.high = np.asarray(goals.low), np.asarray(goals.high)
        true, seen_rho = attributes_of(self.game, self.seen, state)
        self.rho = np.asarray(seen_rho)
        """ρ of every task as the agent perceives it."""
        self.delta = np.zeros_like(self.rho)
        """The change that every task is trying to make."""
        self.clock = np.zeros(len(self.rho), np.int32)
        self.moved = np.ones(len(self.rho), bool)
        """Where the last step changed ρ, and before the first step everywhere."""
        self.undecided = np.ones(len(self.rho), bool)
        """Whose last attempt has ended, with nothing decided since."""
        self.done = self._reached(np.asarray(true))
        self.lost = np.zeros(len(self.rho), bool)
        """Who has died: nothing is decided there any more."""
        self.result = EvalResult(self.done, np.zeros(len(self.rho), int))

    @abc.abstractmethod
    def decide(self, tasks: Int[np.ndarray, "m"]) -> None:
        """Chooses what these tasks try next: their last attempt has ended."""

    @abc.abstractmethod
    def act(self, key: PRNGKeyArray) -> Int[Array, "tasks"]:
        """An action for every task."""

    @abc.abstractmethod
    def late(self) -> Bool[np.ndarray, "tasks"]:
        """Whose attempt has lasted too long."""

    def ended(self, task: int, success: bool) -> None:
        """Books an attempt that has ended."""
        rho, delta = tuple(map(float, self.rho[task])), tuple(map(float, self.delta[task]))
        self.result.attempts.append(Attempt(task, rho, delta, success, int(self.clock[task])))

    def walk(self, budget: int, seed: int) -> EvalResult:
        """Steps until all goals are reached or the budget is spent."""
        for _ in self.moves(budget, seed):
            pass
        return self.result

    def moves(self, budget: int, seed: int) -> Iterator[Bool[np.ndarray, "tasks"]]:
        """The same, one step at a time: says where an attempt has just ended."""
        self.result.steps[:] = np.where(self.done, 0, budget)
        for time, key in enumerate(jax.random.split(jax.random.key(seed), budget)):
            if (self.done | self.lost).all():
                break
            late = self.settle()
            reached = self._step(key) & ~self.done
            self.result.steps[reached] = time + 1
            self.done |= reached
            yield self.moved | late

    def settle(self) -> Bool[np.ndarray, "tasks"]:
        """Ends attempts that last too long, and decides what is tried next; says whose attempt that ended.

        Every step begins with it. To know beforehand what will be tried, call it sooner: it decides only once.
        """
        late = ~self.done & ~self.lost & self.late()
        for k in np.flatnonzero(late):
            self.ended(int(k), False)
        self.clock[late] = 0
        self.decide(np.flatnonzero(~self.done & ~self.lost & (self.undecided | late)))
        self.undecided[:] = False
        return late

    def _reached(self, rho: Float[np.ndarray, "tasks K"]) -> Bool[np.ndarray, "tasks"]:
        return np.all((rho >= self.low) & (rho <= self.high), axis=1)

    def _step(self, key: PRNGKeyArray) -> Bool[np.ndarray, "tasks"]:
        """One action everywhere; says where the goal holds. A change of ρ ends an attempt."""
        act_key, step_key = jax.random.split(key)
        action = self.act(act_key)
        self.state, *seen = advance(self.game, self.seen, step_key, self.state, action, jnp.asarray(self.delta))
        true, after, hit, lost = (np.asarray(x) for x in seen)
        self.clock += 1
        self.moved = np.any((after != self.rho) & ~self.game.space.exogenous, axis=1)
        self.undecided = self.moved.copy()
        dies = lost & ~self.lost & ~self.moved
        for k in np.flatnonzero((self.moved | dies) & ~self.done):
            self.ended(int(k), bool(hit[k]))
        self.lost = lost
        self.clock[self.moved] = 0
        self.rho = after
        return self._reached(true)


@eqx.filter_jit
def attributes_of(game: Game[Any], seen: Game[Any], state: Any) -> tuple[Float[Array, "n K"], Float[Array, "n K"]]:
    """ρ of every state, the true one and the perceived one."""
    return jax.vmap(game.truth)(state), jax.vmap(seen.attributes)(state)


@eqx.filter_jit
def advance(
    game: Game[Any],
    seen: Game[Any],
    key: PRNGKeyArray,
    state: Any,
    action: Int[Array, "n"],
    wanted: Float[Array, "n K"],
) -> tuple[Any, Float[Array, "n K"], Float[Array, "n K"], Bool[Array, "n"], Bool[Array, "n"]]:
    """One step of every task: the new states, their true and perceived ρ, where the wish came true, who has died."""
    following = jax.vmap(game.step)(jax.random.split(key, action.shape[0]), state, action)
    before, after = jax.vmap(seen.attributes)(state), jax.vmap(seen.attributes)(following)
    hit = seen.space.same_change(seen.space.difference(after, before), wanted)
    return following, jax.vmap(game.truth)(following), after, hit, jax.vmap(game.lost)(following)


FirstEdges = tuple[Float[np.ndarray, "n C"] | None, Float[np.ndarray, "n C"]]
"""Costs (None: not asked) and steps of all transitions from several states."""


@runtime_checkable
class Planner(Protocol):
    """What an agent must offer so that its plans can be walked."""

    policy: Policy

    @property
    def settings(self) -> Settings:
        """Those of the agent's training."""

    @property
    def game(self) -> Game[Any]:
        """The game as it is."""

    @property
    def seen(self) -> Game[Any]:
        """The game as the agent perceives it."""

    def routes(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planning: PlannerSettings, raised: Raised = ()
    ) -> Sequence[AnyRoute]:
        """Searches from several ρ to a goal each; `raised` names edges whose cost is higher than it seems."""

    def first_edges(self, state: Any, planning: PlannerSettings) -> FirstEdges:
        """What every first transition costs, and how many steps it takes, by what is seen of the present states."""

    def known(self, rho: Float[np.ndarray, "K"]) -> Float[np.ndarray, "C"]:
        """How much each transition is worth a try from ρ where no plan is known; zero where it is none at all."""

    def change(self, rho: Float[np.ndarray, "K"], transition: int) -> Float[np.ndarray, "K"]:
        """The change that a transition means at ρ."""

    def subgoal(self, rho: Float[np.ndarray, "K"], transition: int) -> Float[np.ndarray, "W"]:
        """What the policy is told to bring it about."""


class PolicyExecutor(Executor):
    """Acts by an execution policy that is told a wish, and keeps the trail."""

    def __init__(
        self, policy: Policy, settings: Settings, game: Game[Any], seen: Game[Any], state: Any, goals: Goal
    ) -> None:
        """Nothing wished for yet."""
        super().__init__(game, state, goals, seen)
        self.policy, self.settings = policy, settings
        tasks = len(self.rho)
        self.subgoal = np.zeros((tasks, policy.encoder.subgoal_size), np.float32)
        self.transition = np.zeros(tasks, np.int32)
        """Tells wishes apart on the trail; a walker that wishes for one thing alone leaves it at zero."""
        self.history = empty_history(tasks, TRAIL)

    def act(self, key: PRNGKeyArray) -> Int[Array, "tasks"]:
        subgoal, label = jnp.asarray(self.subgoal), jnp.asarray(self.transition)
        history = jnp.where(jnp.asarray(self.moved)[:, None], 0, self.history)
        action, self.history = choose_actions(
            self.policy, self.seen, self.settings, key, self.state, subgoal, label, history
        )
        return action


class PlanExecutor(PolicyExecutor):
    """Walks along plans: a transition at a time, replanning by look-up, pricing up what failed."""

    def __init__(self, agent: Planner, state: Any, goals: Goal, planning: PlannerSettings) -> None:
        """Nothing planned yet."""
        settings = replace(agent.settings, temperature=planning.temperature or agent.settings.temperature)
        super().__init__(agent.policy, settings, agent.game, agent.seen, state, goals)
        self.agent, self.planning = agent, planning
        tasks = len(self.rho)
        self.routes: list[AnyRoute | None] = [None] * tasks
        self.raised: list[list[tuple[np.ndarray, int, float]]] = [[] for _ in range(tasks)]
        """What failed so far, and how much dearer that made it."""
        self.limit = np.full(tasks, float(planning.attempt_steps))
        """Steps after which the present attempt of every task has failed."""
        self.random = np.random.default_rng(0)

    def late(self) -> Bool[np.ndarray, "tasks"]:
        return self.clock >= self.limit

    def ended(self, task: int, success: bool) -> None:
        """Books the attempt, and prices up the edge if it failed."""
        super().ended(task, success)
        if not success:
            # What failed once costs more from now on, and the search has to look beyond what it has seen. Where it
            # found nothing, higher costs change nothing.
            self.raised[task].append((self.rho[task], int(self.transition[task]), self.planning.penalty))
            route = self.routes[task]
            if route is not None and route.outcome is Outcome.FOUND:
                self.routes[task] = None

    def _needs_search(self, task: int) -> bool:
        """Whether the route of a task does not say how to continue from where it is, and a new search may."""
        route, rho = self.routes[task], self.rho[task]
        return route is None or not route.knows(rho) or route.stale(rho)

    def decide(self, tasks: Int[np.ndarray, "m"]) -> None:
        """Chooses the next transition of these tasks; searches only where the last search does not cover ρ."""
        unrouted = [k for k in map(int, tasks) if self._needs_search(k)]
        alike = [k for k in unrouted if not self.raised[k]]
        groups = [alike[start : start + GROUP] for start in range(0, len(alike), GROUP)]
        for group in [*groups, *([k] for k in unrouted if self.raised[k])]:
            goals = Goal(self.low[group], self.high[group])
            found = self.agent.routes(self.rho[group], goals, self.planning, self.raised[group[0]])
            for k, route in zip(group, found, strict=True):
                self.routes[k] = route
        if not len(tasks):
            return
        cost, steps = self.agent.first_edges(self.state, self.planning)
        for k in tasks:
            choice = self._choose(self.routes[k], self.rho[k], None if cost is None else cost[k])
            self.transition[k] = choice
            self.limit[k] = min(GRACE + self.planning.patience * steps[k, choice], self.planning.attempt_steps)
            self.delta[k] = self.agent.change(self.rho[k], choice)
            self.subgoal[k] = self.agent.subgoal(self.rho[k], choice)

    def _choose(self, route: AnyRoute | None, rho: Float[np.ndarray, "K"], first: Float[np.ndarray, "C"] | None) -> int:
        assert route is not None
        ways = route.ways(rho)
        if ways is None:  # the search was spent before it began, or the goal seems to hold and does not
            return self._draw(self.agent.known(rho))
        best = ways.total.min()
        if np.isfinite(best):
            if first is None:
                return int(np.argmin(ways.total))
            # Only what leads nearer to the goal: else the present, seen as it is, would always look worse than the
            # average future, and the agent would put off what it has to do.
            close = (ways.total <= best + self.planning.critic) & ways.nearer
            beyond = np.where(close, ways.total, 0) - np.where(close, ways.cost, 0)
            return int(np.argmin(np.where(close, beyond + first + ways.raised, np.inf)))
        # No known way leads there. Any change that can be made may open one: on ℝ the next draw differs.
        weights = np.exp(-ways.cost)
        return self._draw(weights if weights.sum() > 0 else self.agent.known(rho))

    def _draw(self, weights: Float[np.ndarray, "C"]) -> int:
        """One of the transitions, all alike where nothing is known of any."""
        weights = weights if weights.sum() > 0 else np.ones(len(weights))
        return int(self.random.choice(len(weights), p=weights / weights.sum()))


@eqx.filter_jit
def choose_actions(
    policy: Policy,
    game: Game[Any],
    settings: Settings,
    key: PRNGKeyArray,
    state: Any,
    subgoal: Float[Array, "n W"],
    label: Int[Array, "n"],
    history: History,
) -> tuple[Int[Array, "n"], History]:
    """One action per state towards its wish, drawn from the execution policy, and the trail with it."""
    place = jax.vmap(game.place)(state)
    trunk = policy.trunk(jax.vmap(game.observe)(state), jax.vmap(game.attributes)(state))
    preference = execution_preference(policy, settings, place, trunk, subgoal, label, history)
    action = jax.random.categorical(key, preference, axis=-1)
    return action, extend(history, place, label, action)
