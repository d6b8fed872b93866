"""Tasks carried out side by side: the executor counts steps and attempts, the method decides what to try next."""

import abc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, Shaped, UInt32

from saplan.games import Game
from saplan.games.game import State
from saplan.goals import Goal, meets
from saplan.interpreter.program import AnyKey, interpretable, key_of
from saplan.methods.decision import Decision
from saplan.methods.policy import Policy, execution_preference
from saplan.planning import Outcome
from saplan.planning.printing import html_table
from saplan.rl.repeated_actions import History, extend
from saplan.rl.settings import Settings

HISTORY = 80
"""Steps kept in the history, by which a policy notices a circle; a change of ρ clears it."""


@dataclass(frozen=True)
class Attempt:
    """One attempt at one change while carrying out a task."""

    task: int
    rho: tuple[float, ...]
    delta: tuple[float, ...]
    success: bool
    steps: int


@dataclass(repr=False)
class EvalResult:
    """How the tasks of an evaluation went. It prints as a summary."""

    success: Bool[np.ndarray, "tasks"]
    steps: Int[np.ndarray, "tasks"]
    """Steps until success, or the whole budget."""
    attempts: list[Attempt] = field(default_factory=list)

    def rows(self) -> list[tuple[str, str]]:
        """What a summary says, with its figures."""
        done, made = int(self.success.sum()), sum(attempt.success for attempt in self.attempts)
        rows = [("success", f"{self.success.mean():.1%} ({done} of {len(self.success)} tasks)")]
        if done:
            rows.append(("steps per success", f"{self.steps[self.success].mean():.1f}"))
        if self.attempts:
            rows.append(("attempts", f"{len(self.attempts)}, {made / len(self.attempts):.1%} of them successful"))
        return rows

    def __repr__(self) -> str:
        return "\n".join(f"{name:<18} {figure}" for name, figure in self.rows())

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        return html_table("evaluation", ["", ""], self.rows())


class Executor(abc.ABC, Generic[State]):
    """Tasks carried out side by side."""

    def __init__(self, game: Game[State], state: State, goals: Goal, perceived: Game[State] | None = None) -> None:
        """Start every task. `perceived` is the game as the agent perceives it, if its ρ is not the true one."""
        self.game, self.perceived, self.state = game, perceived or game, state
        self.low, self.high = np.asarray(goals.low), np.asarray(goals.high)
        true, rho = attributes_of(self.game, self.perceived, state)
        self.rho = np.asarray(rho)
        """ρ of every task as the agent perceives it."""
        self.delta = np.zeros_like(self.rho)
        """The change that every task attempts."""
        self.clock = np.zeros(len(self.rho), np.int32)
        """Steps of every task's present attempt."""
        self.moved = np.ones(len(self.rho), bool)
        """Whether the last step changed ρ; true before the first step."""
        self.undecided = np.ones(len(self.rho), bool)
        """Whether the last attempt has ended and no decision has followed yet."""
        self.decisions = [Decision(Outcome.HOLDS)] * len(self.rho)
        """The last decision of every task."""
        self.done = self._reached(np.asarray(true))
        self.lost = np.zeros(len(self.rho), bool)
        """Whether the agent has died or the game has ended: such a task makes no more decisions."""
        self.result = EvalResult(self.done, np.zeros(len(self.rho), int))

    @abc.abstractmethod
    def decide(self, tasks: Int[np.ndarray, "m"]) -> Sequence[Decision]:
        """Choose what each of these tasks tries next, now that its last attempt has ended."""

    @abc.abstractmethod
    def act(self, key: AnyKey) -> Int[Array | np.ndarray, "tasks"]:
        """An action for every task."""

    @abc.abstractmethod
    def late(self) -> Bool[np.ndarray, "tasks"]:
        """Whether each attempt has lasted too long."""

    def ended(self, task: int, success: bool) -> None:
        """Record an attempt that has ended."""
        rho, delta = tuple(map(float, self.rho[task])), tuple(map(float, self.delta[task]))
        self.result.attempts.append(Attempt(task, rho, delta, success, int(self.clock[task])))

    def run(self, budget: int, seed: int, show: Callable[[int, int], None] | None = None) -> EvalResult:
        """Step until all goals are reached or the budget is spent; `show` gets the steps and the tasks solved."""
        for step, _ in enumerate(self.moves(budget, seed), start=1):
            if show is not None:
                show(step, int(self.done.sum()))
        return self.result

    def moves(self, budget: int, seed: int) -> Iterator[Bool[np.ndarray, "tasks"]]:
        """The same, one step at a time; yields whether each task's attempt has just ended."""
        self.result.steps[:] = np.where(self.done, 0, budget)
        for time, keys in enumerate(one_by_one(step_keys(key_of(seed), budget))):
            if (self.done | self.lost).all():
                break
            late = self.settle()
            reached = self._step(*keys) & ~self.done
            self.result.steps[reached] = time + 1
            self.done |= reached
            yield self.moved | late

    def settle(self) -> Bool[np.ndarray, "tasks"]:
        """End the attempts that last too long, and decide what to try next; returns whose attempt ended so.

        Every step begins with it. Call it sooner to see the next decision: it decides only once.
        """
        active = ~self.done & ~self.lost
        late: Bool[np.ndarray, "tasks"] = active & self.late()
        for k in np.flatnonzero(late):
            self.ended(int(k), False)
        self.clock[late] = 0
        tasks = np.flatnonzero(active & (self.undecided | late))
        for k, decision in zip(tasks, self.decide(tasks), strict=True):
            self.decisions[k] = decision
        self.undecided[:] = False
        return late

    def _reached(self, rho: Float[np.ndarray, "tasks K"]) -> Bool[np.ndarray, "tasks"]:
        reached: Bool[np.ndarray, "tasks"] = np.all(meets(self.low, self.high, rho), axis=1)
        return reached

    def _step(self, act_key: AnyKey, step_key: AnyKey) -> Bool[np.ndarray, "tasks"]:
        """Take one action in every task; returns where the goal holds. A change of ρ ends an attempt."""
        action = self.act(act_key)
        self.state, *judged = advance(self.game, self.perceived, step_key, self.state, action, self.delta)
        true, after, hit, lost = (np.asarray(x) for x in judged)
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


@interpretable
@partial(jax.jit, static_argnums=1)
def step_keys(key: PRNGKeyArray, budget: int) -> Key[Array, "budget 2"]:
    """Two random keys for every step: one draws the action, one is the world's."""
    return jax.vmap(jax.random.split)(jax.random.split(key, budget))


def one_by_one(keys: Key[Array, "n 2"] | Shaped[np.ndarray, "n 2"]) -> Iterator[tuple[AnyKey, AnyKey]]:
    """Pairs of keys. Iterating over an array of JAX would compile a program that takes it apart, for seconds."""
    if isinstance(keys, np.ndarray):
        yield from keys
        return
    for pair in np.asarray(jax.random.key_data(keys)):
        yield jax.random.wrap_key_data(pair[0]), jax.random.wrap_key_data(pair[1])


@interpretable
@eqx.filter_jit
def attributes_of(
    game: Game[State], perceived: Game[State], state: State
) -> tuple[Float[Array, "n K"], Float[Array, "n K"]]:
    """ρ of every state, the true one and the perceived one."""
    return jax.vmap(game.truth)(state), jax.vmap(perceived.attributes)(state)


@interpretable
@eqx.filter_jit
def advance(
    game: Game[State],
    perceived: Game[State],
    key: PRNGKeyArray,
    state: State,
    action: Int[Array, "n"],
    delta: Float[Array, "n K"],
) -> tuple[State, Float[Array, "n K"], Float[Array, "n K"], Bool[Array, "n"], Bool[Array, "n"]]:
    """One step of every task: new states, their true and perceived ρ, if `delta` was made, if the game ended."""
    following = jax.vmap(game.step)(jax.random.split(key, action.shape[0]), state, action)
    before, after = jax.vmap(perceived.attributes)(state), jax.vmap(perceived.attributes)(following)
    hit = perceived.space.same_change(perceived.space.difference(after, before), delta)
    ended = jax.vmap(game.lost)(following) | jax.vmap(game.over)(following)
    return following, jax.vmap(game.truth)(following), after, hit, ended


class PolicyExecutor(Executor[State]):
    """Acts by an execution policy that is given a subgoal, and keeps the history."""

    def __init__(
        self,
        policy: Policy,
        settings: Settings,
        game: Game[State],
        perceived: Game[State],
        state: State,
        goals: Goal,
    ) -> None:
        """Start without subgoals."""
        super().__init__(game, state, goals, perceived)
        self.policy, self.settings = policy, settings
        tasks = len(self.rho)
        self.subgoal = np.zeros((tasks, policy.encoder.subgoal_size), np.float32)
        self.transition = np.zeros(tasks, np.int32)
        """Distinguishes subgoals in the history; zero for an executor with one subgoal only."""
        self.mask: Bool[np.ndarray, "C actions"] | None = None
        """Actions that are not taken for each transition."""
        self.history: History | UInt32[np.ndarray, "tasks length"] = np.zeros((tasks, HISTORY), np.uint32)

    def act(self, key: AnyKey) -> Int[Array | np.ndarray, "tasks"]:
        history = np.where(self.moved[:, None], np.uint32(0), self.history)
        masked = None if self.mask is None else self.mask[self.transition]
        action, self.history = choose_actions(
            self.policy, self.perceived, self.settings, key, self.state, self.subgoal, self.transition, history, masked
        )
        return action


@interpretable
@eqx.filter_jit
def choose_actions(
    policy: Policy,
    game: Game[State],
    settings: Settings,
    key: PRNGKeyArray,
    state: State,
    subgoal: Float[Array, "n W"],
    label: Int[Array, "n"],
    history: History,
    masked: Bool[Array, "n actions"] | None = None,
) -> tuple[Int[Array, "n"], History]:
    """One action per state towards its subgoal, drawn from the execution policy, and the history with it."""
    place = jax.vmap(game.place)(state)
    trunk = policy.trunk(jax.vmap(game.observe)(state), jax.vmap(game.attributes)(state))
    preference = execution_preference(policy, settings, place, trunk, subgoal, label, history, masked)
    action = jax.random.categorical(key, preference, axis=-1)
    return action, extend(history, place, label, action)
