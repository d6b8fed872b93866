"""The structured agent: finds a path to any goal written in attributes, and carries it out."""

from collections.abc import Sequence
from dataclasses import replace
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
from saplan.methods.encoders import DropoutEncoder
from saplan.methods.executor import choose_actions
from saplan.methods.plan_executor import FirstEdges, PlanExecutor, RouteFinder
from saplan.methods.policy import Policy
from saplan.methods.structured.action_mask import ActionEffects
from saplan.methods.structured.edge_detector import EdgeDetector
from saplan.methods.structured.evidence import Evidence, Familiar
from saplan.methods.structured.expected_search import ExpectedSearch
from saplan.methods.structured.guided_search import GuidedSearch
from saplan.methods.structured.memory import Memory, Visited
from saplan.methods.structured.outcomes import ActionOutcomes, OutcomeExecutor
from saplan.methods.structured.pricing import in_batches, price_edges, price_first
from saplan.methods.structured.settings import StructuredSettings
from saplan.methods.structured.suspicion import BoundarySearch, refuted
from saplan.planning import Edges, Plan, Raised
from saplan.rl.repeated_actions import empty_history


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
    effects: ActionEffects | None = None
    """What every action has led to; None where execution may take all of them."""
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
        mask, policy = self.action_mask, self.in_use.policy
        masked = None if mask is None else jnp.asarray(mask[label])
        action, _ = choose_actions(policy, self.game, self.settings, key, states, subgoal, label, history, masked)
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
        familiar = Familiar(self.evidence, hides=isinstance(self.policy.encoder, DropoutEncoder))
        return replace(self, policy=replace(self.policy, shown=familiar))

    @property
    def familiar(self) -> Familiar:
        """Shows networks the nearest ρ inside the range of training."""
        return Familiar(self.evidence)

    def route_finder(self, planner: PlannerSettings) -> RouteFinder:
        """The agent's search, which takes failures beyond the range of training for a boundary."""
        return BoundarySearch(self, planner)

    def plain_finder(self, planner: PlannerSettings) -> RouteFinder:
        """The search along mean changes, or in expectation where changes are uncertain."""
        return (ExpectedSearch if planner.outcomes > 1 and self.uncertain else GuidedSearch)(self, planner)

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

    @property
    def action_mask(self) -> Bool[np.ndarray, "C actions"] | None:
        """Actions that execution does not take while it attempts each entry of 𝓑."""
        return None if self.effects is None else np.asarray(_mask(self.effects))[: len(self.memory.key)]

    def after_success(self, raised: Raised, rho: Float[np.ndarray, "K"], transition: int) -> Raised:
        """The added costs that remain after a success: it refutes suspicions of a boundary."""
        return refuted(np.asarray(self.evidence.met), np.asarray(self.memory.delta), raised, rho, transition)


@interpretable
@jax.jit
def _mask(effects: ActionEffects) -> Bool[Array, "C actions"]:
    return effects.mask()


@interpretable
@jax.jit
def _was_visited(agent: "StructuredAgent", rho: Float[Array, "n K"]) -> Bool[Array, "n"]:
    return agent.visited(agent.game.space, rho)


@interpretable
@jax.jit
def _trust(agent: "StructuredAgent") -> tuple[Bool[Array, "C"], Bool[Array, ""]]:
    """Which entries of 𝓑 are used in plans, and whether the change of any of them varies."""
    varies = agent.memory.spread > jnp.array(agent.game.space.grain)
    return agent.trusted, jnp.any(varies & agent.trusted[:, None])
