"""The protocol of an agent, whatever its method, and the settings of its planner."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from saplan.algebra import Product
from saplan.games import Game
from saplan.games.game import change_between
from saplan.games.rule_cards import changed_text, name_of
from saplan.games.sight import LimitedSight
from saplan.goals import Goal, parse_goal
from saplan.planning import Plan
from saplan.rl.settings import Settings

if TYPE_CHECKING:
    from saplan.methods.executor import Executor


@dataclass(frozen=True)
class PlannerSettings:
    """How plans are priced and bounded."""

    time_weight: float = 0.03
    """Price of one expected step, in nats of success probability (paper: 0, the likeliest path however long)."""
    calibrated: bool = True
    """Whether the calibrated head of the detector prices the edges (the paper's detector has one head)."""
    critic: float = 0.3
    """Among first edges whose paths cost at most this much more than the best, the policy's own value of the present
    state decides: it sees where the objects lie, the edge detector does not (paper: 0)."""
    floor: float = 0.1
    """Edges with a lower probability of success are cut."""
    penalty: float = 2.0
    """Added to the cost of an edge each time it fails from the same ρ, in nats."""
    attempt_steps: int = 40
    """Steps after which an attempt has failed at the latest, and the agent plans again."""
    patience: float = 1.5
    """An attempt has failed after this many times the steps that the policy expected of it, plus a few: on mining a
    refused blow stays refused (paper: infinite)."""
    temperature: float | None = 0.02
    """Temperature of the execution policy in use; None for that of its training, where it has to explore."""
    outcomes: int = 5
    """Ends of an uncertain change in a plan in expectation (paper: 1, the mean)."""
    max_nodes: int = 100_000
    """Nodes of a search, for each task."""
    beyond: bool = True
    """Whether plans may pass values that training never met, where tests say that the detector's opinions carry over
    (paper: no)."""
    algebra: bool = True
    """Whether the equation of changes takes over from a search that reached its bound of nodes (paper: no)."""
    max_seconds: float = math.inf
    """Seconds of a search, where a person waits: its result then depends on the load of the machine, and a plan that
    was cut short says so."""

    def stretched(self, game: Game[Any]) -> "PlannerSettings":
        """The settings for a world whose maps are larger than those of training: attempts may take longer there.

        Ways are longer, and an item at the rim is farther away than it seems, so the policy expects too few steps:
        patience grows with the square.
        """
        if not isinstance(game, LimitedSight) or game.stretch <= 1:
            return self
        return replace(
            self, patience=self.patience * game.stretch**2, attempt_steps=round(self.attempt_steps * game.stretch)
        )


DEFAULT_PLANNER = PlannerSettings()
PAPER_PLANNER = PlannerSettings(
    time_weight=0.0,
    calibrated=False,
    critic=0.0,
    floor=0.0,
    penalty=0.0,
    patience=np.inf,
    temperature=None,
    outcomes=1,
    algebra=False,
    beyond=False,
)
"""The paper's planner: the likeliest path by the one probability of its detector."""


def planner_settings_for(settings: Settings) -> PlannerSettings:
    """The paper's planner for agents trained as in the paper, else the default."""
    return PAPER_PLANNER if not settings.relabel and not settings.repeat_cost else DEFAULT_PLANNER


@runtime_checkable
class Agent(Protocol):
    """A trained agent, or the oracle: plans to a goal and acts towards it."""

    transition_model: ClassVar[str | None]
    """The part that predicts which transitions are feasible, as reports name it; None for agents without one."""

    @property
    def game(self) -> Game[Any]:
        """The game as it is."""

    @property
    def perceived(self) -> Game[Any]:
        """The game as the agent perceives it."""

    def plan(self, state: Any, goal: Goal | str, planner: PlannerSettings = ...) -> Plan:
        """Path from a state to a goal, with the probability and the expected steps of every transition."""

    def act(self, key: PRNGKeyArray, state: Any, goal: Goal | str, planner: PlannerSettings = ...) -> int:
        """Next action from a state towards a goal. An executor is faster over several steps: it keeps its search."""

    def executor(self, state: Any, goals: Goal, planner: PlannerSettings = ...) -> "Executor[Any]":
        """Executor of several tasks side by side, one state and one goal each."""


def first_action(agent: Agent, key: PRNGKeyArray, state: Any, goal: Goal | str, planner: PlannerSettings) -> int:
    """First action of an agent's executor: it plans, chooses a transition, and draws an action towards it."""
    states = jax.tree.map(lambda x: x[None], state)
    executor = agent.executor(states, one_goal(agent.game.space, goal), planner)
    executor.settle()
    return int(executor.act(key)[0])


def in_words(game: Game[Any], plan: Plan) -> Plan:
    """The plan with every transition named by the rules of the game."""
    if not plan.path:
        return plan
    rho = np.array(plan.rho, np.float32)
    deltas = np.asarray(change_between(game.space, rho[:-1], rho[1:]))
    named = [
        replace(step, words=name_of(game, delta), result=changed_text(game.space, before, step.rho))
        for before, step, delta in zip(plan.rho, plan.path, deltas, strict=False)
    ]
    return replace(plan, path=tuple(named))


def one_goal(space: Product, goal: Goal | str) -> Goal:
    """A goal, or the text of one, as a batch of one."""
    goal = parse_goal(space, goal) if isinstance(goal, str) else goal
    return Goal(np.asarray(goal.low)[None], np.asarray(goal.high)[None])
