"""Reinforcement learning with a curriculum: one policy, told the goal itself, practising ever more distant goals.

It has no graph, no plan and no attempts: a game is one try at one goal. Network, rollout and learner are the structured
model's; hindsight is too: a game also teaches about what it happened to reach.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int32, PRNGKeyArray

from saplan.algebra import Product, Rho
from saplan.errors import InputError
from saplan.games import GAMES
from saplan.games.game import Game, State
from saplan.goals import HAIR, Goal
from saplan.methods.agent import DEFAULT_PLANNER, PlannerSettings, first_action
from saplan.methods.decision import Decision
from saplan.methods.encoders import GoalEncoder
from saplan.methods.executor import PolicyExecutor
from saplan.methods.policy import Policy
from saplan.methods.targets import Rollout, Subgoals, Targets, ValuedRollout, by_step
from saplan.methods.update import KnowledgeUpdate, Learner, Method
from saplan.planning import Outcome, Plan
from saplan.rl.rollout import Change, Judge, Proposal, Propose, RolloutState, StepOutcome, Trajectory
from saplan.rl.settings import GRADIENT_SETTINGS, Settings


@dataclass(frozen=True)
class CurriculumSettings(Settings):
    """Numbers of the curriculum."""

    attempt_steps: int = 150
    """Steps of a game: it has one attempt, at one goal."""
    discount: float = 0.97
    """Discount per step, for a horizon as long as a game."""
    temperature: float = 0.02
    """Temperature of the policy, on the scale of its logits."""
    advance_at: float = 0.8
    """Success at the current distance from which the next one is practised."""
    measured_on: int = 1024
    """Games that this success is measured on."""
    farthest_share: float = 0.5
    """Share of games at the current distance; the others have nearer goals, so that these are not forgotten."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.advance_at <= 1 or not 0 < self.farthest_share <= 1 or self.measured_on < 1:
            raise InputError("advance-at and farthest-share must lie in (0, 1], measured-on must be at least 1")


class CurriculumProgress(eqx.Module):
    """How far the curriculum has got."""

    stage: Int32[Array, ""]
    """The distance being practised."""
    games: Int32[Array, ""]
    wins: Int32[Array, ""]
    """Games played and won at this distance since it was last judged."""
    fresh: Bool[Array, "lanes"]
    """Whether every lane's game is the first on its map: only those are judged."""


class Curriculum(Method[CurriculumProgress]):
    """The subgoal is the goal of the whole game. A proposal's `choice` is the distance of the goal."""

    name = "curriculum"
    counts = "stage"
    settings = CurriculumSettings

    def settings_for(self, game: Game[Any], paper: bool = False) -> CurriculumSettings:
        if not game.farthest_goal:
            known = ", ".join(name for name, each in GAMES.items() if each().farthest_goal)
            raise InputError(f"the curriculum does not fit {game.name}: its goals have no distances (known: {known})")
        return CurriculumSettings(**GRADIENT_SETTINGS) if paper else CurriculumSettings()

    def encoder(self, space: Product, settings: Any) -> GoalEncoder:
        return GoalEncoder(space)

    def judge(self, game: Game[Any]) -> Judge:
        return by_goal(game)

    def first_knowledge(
        self, game: Game[State], settings: CurriculumSettings, key: PRNGKeyArray, lanes: RolloutState[State]
    ) -> tuple[CurriculumProgress, RolloutState[State]]:
        zero = jnp.zeros((), jnp.int32)
        knowledge = CurriculumProgress(zero + 1, zero, zero, jnp.ones(settings.lanes, bool))
        subgoal, distance = draw_goals(game, settings, key, lanes.rho, knowledge.stage)
        return knowledge, eqx.tree_at(lambda x: (x.subgoal, x.choice), lanes, (subgoal, distance))

    def proposer(
        self,
        game: Game[Any],
        settings: CurriculumSettings,
        knowledge: CurriculumProgress,
        key: PRNGKeyArray,
        fresh: Float[Array, "lanes K"],
    ) -> Propose:
        # A game has one goal, so a new goal always belongs to a new map: both are drawn once per rollout.
        proposal = Proposal(*draw_goals(game, settings, key, fresh, knowledge.stage))
        return lambda key, rho, wanted: proposal

    def learn(
        self,
        game: Game[Any],
        settings: CurriculumSettings,
        learner: Learner[CurriculumProgress],
        rollout: Rollout,
        key: PRNGKeyArray,
    ) -> KnowledgeUpdate[CurriculumProgress]:
        steps, before = rollout.trajectory, learner.knowledge
        # Of the games that a lane ends in one rollout all but the first repeat one map and goal: a task won quickly
        # must not count more often than one that fails slowly.
        first = jnp.cumsum(steps.game_over, axis=0) - steps.game_over == 0
        counts = first & (steps.choice == before.stage) & before.fresh
        games = before.games + jnp.sum(steps.game_over & counts, dtype=jnp.int32)
        wins = before.wins + jnp.sum(steps.success & counts, dtype=jnp.int32)
        ends = jnp.sum(steps.game_over, axis=0)
        judged = games >= settings.measured_on
        farther = judged & (wins >= settings.advance_at * games)
        stage = jnp.minimum(before.stage + farther, game.farthest_goal)
        fresh = jnp.where(ends == 0, before.fresh, ends == 1)
        progress = CurriculumProgress(stage, jnp.where(judged, 0, games), jnp.where(judged, 0, wins), fresh)
        return KnowledgeUpdate(progress, partial(goal_targets, game, settings, rollout))

    def known(self, knowledge: CurriculumProgress) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
        return knowledge.stage, jnp.zeros((), jnp.int32)

    def agent_of(
        self, learner: Learner[CurriculumProgress], game: Game[Any], settings: CurriculumSettings
    ) -> "CurriculumAgent":
        return CurriculumAgent(learner.policy, learner.knowledge.stage, game, settings)


def reached(game: Game[Any], rho: Rho, subgoal: Float[Array, "... W"]) -> Bool[Array, "..."]:
    """Whether ρ satisfies a goal, as tasks of the game judge it."""
    value, asked = jnp.split(subgoal, 2, axis=-1)
    tolerances = [game.tolerance if block.tolerance else 0.0 for block in game.space.blocks]
    tolerance = jnp.array(tolerances) * HAIR
    apart = jnp.abs(rho - value)
    apart = jnp.minimum(apart, jnp.array([block.period for block in game.space.blocks]) - apart)
    return jnp.all((apart <= tolerance) | (asked == 0), axis=-1)


def by_goal(game: Game[Any]) -> Judge:
    """An attempt lasts until the goal holds, and so does the game."""

    def judge(step: Change, subgoal: Float[Array, "lanes W"]) -> StepOutcome:
        hit = reached(game, step.after, subgoal)
        return StepOutcome(hit, hit, hit)

    return judge


def goal_targets(
    game: Game[Any],
    settings: CurriculumSettings,
    rollout: Rollout,
    values: ValuedRollout,
    reward: Float[Array, "time lanes"] | None,
) -> tuple[Targets, Subgoals]:
    """Targets about the game's goal, about the next ρ that it reached, and about the last one."""
    steps, flat = rollout.trajectory, rollout.flat
    asked = steps.subgoal[..., game.space.size :]
    next_rho, next_known = ahead(steps, steps.changed)
    last_rho, last_known = ahead(steps, steps.game_over.at[-1].set(True))
    moved = jnp.any(last_rho != steps.rho, axis=-1)
    relabelled = [jnp.concatenate([rho * asked, asked], axis=-1) for rho in (next_rho, last_rho)]
    subgoals = jnp.stack([steps.subgoal, *relabelled])
    weight = jnp.stack([jnp.ones_like(moved), next_known, last_known & moved])
    if not settings.relabel:
        weight = weight.at[1:].set(False)
    # A goal that already holds would teach the policy to stand still.
    weight &= steps.usable & ~jax.vmap(lambda subgoal: reached(game, steps.rho, subgoal))(subgoals)

    def execution(subgoal: Float[Array, "time lanes W"]) -> Float[Array, "time lanes"]:
        hit = reached(game, steps.after, subgoal)
        return values.execution(subgoal, hit, hit | steps.game_over)

    each = jax.lax.map(execution, subgoals)
    made = Targets(flat.observation, flat.rho, flat.action, by_step(subgoals), by_step(each), by_step(weight))
    return made, Subgoals(None, len(subgoals))


Pair = tuple[Array, Array]


def ahead(
    steps: Trajectory, marks: Bool[Array, "time lanes"]
) -> tuple[Float[Array, "time lanes K"], Bool[Array, "..."]]:
    """ρ after the next marked step of the same game, and whether there is one within the rollout."""

    def back(carry: Pair, step: tuple[Array, Array, Array]) -> tuple[Pair, Pair]:
        rho, there = carry
        after, mark, over = step
        there = mark | (there & ~over)
        rho = jnp.where(mark[:, None], after, rho)
        return (rho, there), (rho, there)

    start = (steps.after[-1], jnp.zeros(steps.action.shape[1], bool))
    return jax.lax.scan(back, start, (steps.after, marks, steps.game_over), reverse=True)[1]


def draw_goals(
    game: Game[Any], settings: CurriculumSettings, key: PRNGKeyArray, rho: Float[Array, "lanes K"], stage: Array
) -> tuple[Float[Array, "lanes W"], Int32[Array, "lanes"]]:
    """Goals for every first ρ of a game, at the distance of the stage or nearer, and their distances."""
    far_key, near_key, goal_key = jax.random.split(key, 3)
    lanes = len(rho)
    nearer = jax.random.randint(near_key, (lanes,), 1, stage + 1)
    distance = jnp.where(jax.random.uniform(far_key, (lanes,)) < settings.farthest_share, stage, nearer)
    keys = jax.random.split(goal_key, lanes)
    value, asked = jax.lax.map(lambda x: game.goal_at(*x), (keys, rho, distance), batch_size=min(32, lanes))
    return jnp.concatenate([value * asked, asked.astype(jnp.float32)], axis=-1), distance


class CurriculumAgent(eqx.Module):
    """A policy that is conditioned on the goal."""

    policy: Policy
    stage: Int32[Array, ""]
    """The distance that training reached."""
    game: Game[Any] = eqx.field(static=True)
    settings: CurriculumSettings = eqx.field(static=True)
    transition_model: ClassVar[str | None] = None

    @property
    def perceived(self) -> Game[Any]:
        """The game as this agent perceives it: as it is."""
        return self.game

    def plan(self, state: Any, goal: Goal | str, planner: PlannerSettings = DEFAULT_PLANNER) -> Plan:
        """No path: this method makes no plan, and the outcome says so."""
        return Plan(Outcome.NONE)

    def act(self, key: PRNGKeyArray, state: Any, goal: Goal | str, planner: PlannerSettings = DEFAULT_PLANNER) -> int:
        """Next action from a state towards a goal."""
        return first_action(self, key, state, goal, planner)

    def executor(self, state: Any, goals: Goal, planner: PlannerSettings = DEFAULT_PLANNER) -> "GoalExecutor":
        """Executor of several tasks side by side, one state and one goal each."""
        return GoalExecutor(self, state, goals)


class GoalExecutor(PolicyExecutor[Any]):
    """Heads straight for the goal."""

    def __init__(self, agent: CurriculumAgent, state: Any, goals: Goal) -> None:
        """Give every task its goal as its only subgoal."""
        super().__init__(agent.policy, agent.settings, agent.game, agent.perceived, state, goals)
        asked = np.isfinite(self.low) | np.isfinite(self.high)
        self.subgoal = np.concatenate([np.where(asked, goals.centre(self.game.space), 0.0), asked], axis=1).astype(
            np.float32
        )

    def decide(self, tasks: Int[np.ndarray, "m"]) -> list[Decision]:
        """Decisions without alternatives: the goal stays the subgoal."""
        return [Decision(Outcome.NONE)] * len(tasks)

    def late(self) -> Bool[np.ndarray, "tasks"]:
        return np.zeros(len(self.rho), bool)

    def ended(self, task: int, success: bool) -> None:
        """Record nothing: a change of ρ does not end the one attempt, at the goal itself."""
