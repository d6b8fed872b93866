"""Reinforcement learning with a curriculum: one policy, told the goal itself, practising ever more distant goals.

It has no graph, no plan and no attempts: a game is one try at one goal. Network, rollout and learner are the structured
model's; hindsight is too: a game also teaches about what it happened to reach.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int32, PRNGKeyArray

from saplan.algebra import Product, Rho
from saplan.algebra.base import Features
from saplan.errors import InputError
from saplan.games import GAMES, Game
from saplan.goals import HAIR, Goal
from saplan.methods.base import ADAM, Report, descend, learning_rate, report_on, select, shuffle
from saplan.methods.encoders import Encoder
from saplan.methods.executor import DEFAULT_PLANNER, PlannerSettings, PolicyExecutor
from saplan.methods.policy import Policy, sample_actions
from saplan.methods.targets import Targets, flat, own_subgoal_loss, review
from saplan.rl.rollout import Judge, RolloutState, StepOutcome, Trajectory, begin, fresh_maps, roll_out, usable
from saplan.rl.settings import Settings, settings_for


@dataclass(frozen=True)
class CurriculumSettings(Settings):
    """Numbers of the curriculum; those of 𝓑, of the edge detector and of exploration have no meaning here."""

    advance_at: float = 0.8
    """Success at the present distance from which the next is practised."""
    measured_on: int = 1024
    """Games that such a success is measured on."""
    farthest_share: float = 0.5
    """Share of games at the present distance; the others are nearer ones, so that these are not forgotten."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.advance_at <= 1 or not 0 < self.farthest_share <= 1 or self.measured_on < 1:
            raise InputError("advance-at and farthest-share must lie in (0, 1], measured-on must be at least 1")


def curriculum_settings(game: Game[Any], faithful: bool = False) -> CurriculumSettings:
    """The defaults for a game: one goal per game, and a horizon as far as the game lasts."""
    if not game.farthest_goal:
        known = ", ".join(name for name, each in GAMES.items() if each.farthest_goal)
        raise InputError(f"the curriculum does not fit {game.name}: its goals have no distances (known: {known})")
    settings = replace(
        settings_for(game, faithful), discount=0.97, temperature=0.02, attempt_steps=150, restart=1.0, explores=False
    )
    return CurriculumSettings(**vars(settings))


@dataclass(frozen=True)
class GoalEncoder(Encoder):
    """ρ by its algebra; a wish is a goal, the values asked for and which attributes are asked for at all."""

    space: Product

    @property
    def subgoal_size(self) -> int:  # type: ignore[override]
        return 2 * self.space.size

    @property
    def state_width(self) -> int:  # type: ignore[override]
        return self.space.width

    @property
    def subgoal_width(self) -> int:  # type: ignore[override]
        return self.space.width + self.space.size

    def state(self, rho: Rho) -> Features:
        return self.space.encode(rho)

    def subgoal(self, subgoal: Float[Array, "... W"]) -> Features:
        value, asked = jnp.split(subgoal, 2, axis=-1)
        return jnp.concatenate([self.space.encode(value * asked), asked], axis=-1)


class CurriculumLearner(eqx.Module):
    """Everything that training changes."""

    policy: Policy
    policy_moments: Any
    stage: Int32[Array, ""]
    """The distance being practised."""
    games: Int32[Array, ""]
    wins: Int32[Array, ""]
    """Games played and won at this distance since it was last judged."""
    distance: Int32[Array, "lanes"]
    """How far the goal of every lane's game was at its start."""
    fresh: Bool[Array, "lanes"]
    """Whether every lane's game is the first on its map: only those are judged."""
    lanes: RolloutState
    key: PRNGKeyArray
    updates: Int32[Array, ""]


def begin_curriculum(game: Game[Any], settings: CurriculumSettings, key: PRNGKeyArray) -> CurriculumLearner:
    """Nothing learnt yet, goals at distance one."""
    policy_key, lanes_key, goal_key, key = jax.random.split(key, 4)
    encoder = GoalEncoder(game.space)
    policy = Policy.init(policy_key, game, encoder, settings.hidden)
    stage = jnp.ones((), jnp.int32)
    lanes = begin(game, settings, lanes_key, encoder.subgoal_size)
    subgoal, distance = draw_goals(game, settings, goal_key, lanes.rho, stage)
    lanes = eqx.tree_at(lambda x: (x.subgoal, x.explores), lanes, (subgoal, jnp.zeros(settings.lanes, bool)))
    zero = jnp.zeros((), jnp.int32)
    first = jnp.ones(settings.lanes, bool)
    return CurriculumLearner(policy, ADAM.init(policy), stage, zero, zero, distance, first, lanes, key, zero)


def update_curriculum(
    game: Game[Any], settings: CurriculumSettings, total: int, learner: CurriculumLearner
) -> tuple[CurriculumLearner, Report]:
    """One rollout and all that is learnt from it."""
    key, play_key, map_key, goal_key, policy_key = jax.random.split(learner.key, 5)
    fresh = fresh_maps(game, map_key, settings.lanes)
    # A game has one goal, so a new goal always belongs to a new map: both are drawn once per rollout.
    subgoal, distance = draw_goals(game, settings, goal_key, jax.vmap(game.attributes)(fresh), learner.stage)
    lanes, steps = roll_out(
        game, settings, play_key, learner.lanes, fresh, partial(sample_actions, learner.policy, settings),
        lambda key, rho: subgoal, by_goal(game),
    )  # fmt: skip
    taught = make_targets(game, settings, learner.policy, steps, lanes)
    policy, policy_moments, losses = descend(
        lambda policy, rows: own_subgoal_loss(policy, 3, select(taught, rows)),
        learner.policy, learner.policy_moments, learning_rate(settings, learner.updates, total),
        shuffle(settings, policy_key),
    )  # fmt: skip

    # Of the games that a lane ends in one rollout all but the first are the same map and goal again: a task won quickly
    # must not count more often than one that fails slowly.
    first = jnp.cumsum(steps.game_over, axis=0) - steps.game_over == 0
    judged_now = first & (learner.distance == learner.stage) & learner.fresh
    games = learner.games + jnp.sum(steps.game_over & judged_now, dtype=jnp.int32)
    wins = learner.wins + jnp.sum(steps.success & judged_now, dtype=jnp.int32)
    ends = jnp.sum(steps.game_over, axis=0)
    fresh_next = jnp.where(ends == 0, learner.fresh, ends == 1)
    judged = games >= settings.measured_on
    farther = judged & (wins >= settings.advance_at * games)
    stage = jnp.minimum(learner.stage + farther, game.farthest_goal)
    learner = CurriculumLearner(
        policy, policy_moments, stage, jnp.where(judged, 0, games), jnp.where(judged, 0, wins),
        jnp.where(ends > 0, distance, learner.distance), fresh_next, lanes, key, learner.updates + 1,
    )  # fmt: skip
    every: Trajectory = jax.tree.map(flat, steps)
    return learner, report_on(every, stage, jnp.zeros((), jnp.int32), jnp.zeros(1), losses, jnp.zeros(1))


def reached(game: Game[Any], rho: Rho, subgoal: Float[Array, "... W"]) -> Bool[Array, "..."]:
    """Whether ρ satisfies a goal, as tasks of the game judge it."""
    value, asked = jnp.split(subgoal, 2, axis=-1)
    tolerances = [game.tolerance if block.tolerance else 0.0 for block in game.space.blocks]
    tolerance = jnp.array(tolerances) * HAIR
    return jnp.all((jnp.abs(rho - value) <= tolerance) | (asked == 0), axis=-1)


def by_goal(game: Game[Any]) -> Judge:
    """An attempt lasts until the goal holds, and the game with it."""

    def judge(before: Rho, after: Rho, subgoal: Float[Array, "lanes W"]) -> StepOutcome:
        hit = reached(game, after, subgoal)
        return StepOutcome(hit, hit, hit)

    return judge


def make_targets(
    game: Game[Any], settings: CurriculumSettings, policy: Policy, steps: Trajectory, lanes: RolloutState
) -> Targets:
    """Targets about the game's goal, about the next ρ it came to, and about the last one it came to."""
    rollout, asked = review(game, settings, policy, steps, lanes), steps.subgoal[..., game.space.size :]
    next_rho, next_known = ahead(steps, steps.changed)
    last_rho, last_known = ahead(steps, steps.game_over.at[-1].set(True))
    moved = jnp.any(last_rho != steps.rho, axis=-1)
    goal = lambda rho: jnp.concatenate([rho * asked, asked], axis=-1)  # noqa: E731
    subgoals = jnp.stack([steps.subgoal, goal(next_rho), goal(last_rho)])
    weight = jnp.stack([jnp.ones_like(moved), next_known, last_known & moved])
    if not settings.relabel:
        weight = weight.at[1:].set(False)
    # What already holds cannot be wished for: its steps would teach to stand still.
    weight &= usable(steps) & ~jax.vmap(lambda subgoal: reached(game, steps.rho, subgoal))(subgoals)

    def about(subgoal: Float[Array, "time lanes W"]) -> Float[Array, "time lanes"]:
        hit = reached(game, steps.after, subgoal)
        return rollout.execution(subgoal, hit, hit | steps.game_over)

    execution = jax.lax.map(about, subgoals)
    by_step = lambda x: jnp.moveaxis(x.reshape(x.shape[0], -1, *x.shape[3:]), 0, 1)  # noqa: E731
    nothing = jnp.zeros(steps.action.size)
    return Targets(
        flat(steps.sight), flat(steps.rho), flat(steps.action), by_step(subgoals), by_step(execution), by_step(weight),
        nothing, nothing > 0,
    )  # fmt: skip


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
    """A policy that is told the goal."""

    policy: Policy
    stage: Int32[Array, ""]
    """How far training got."""
    game: Game[Any] = eqx.field(static=True)
    settings: CurriculumSettings = eqx.field(static=True)

    @property
    def seen(self) -> Game[Any]:
        """The game as this agent perceives it: as it is."""
        return self.game

    def executor(self, state: Any, goals: Goal, planning: PlannerSettings = DEFAULT_PLANNER) -> "GoalExecutor":
        """Several tasks, ready to be carried out side by side."""
        return GoalExecutor(self, state, goals)


class GoalExecutor(PolicyExecutor):
    """Walks straight for the goal."""

    def __init__(self, agent: CurriculumAgent, state: Any, goals: Goal) -> None:
        """Everybody is told the goal, once."""
        super().__init__(agent.policy, agent.settings, agent.game, agent.seen, state, goals)
        asked = np.isfinite(self.low) | np.isfinite(self.high)
        self.subgoal = np.concatenate([np.where(asked, goals.centre, 0.0), asked], axis=1).astype(np.float32)

    def decide(self, tasks: Int[np.ndarray, "m"]) -> None:
        """There is nothing to decide."""

    def late(self) -> Bool[np.ndarray, "tasks"]:
        return np.zeros(len(self.rho), bool)

    def ended(self, task: int, success: bool) -> None:
        """A change of ρ ends nothing: there is one attempt, at the goal itself."""


def agent_of(learner: CurriculumLearner, game: Game[Any], settings: CurriculumSettings) -> CurriculumAgent:
    """What of a learner is used after training."""
    return CurriculumAgent(learner.policy, learner.stage, game, settings)


def untrained(game: Game[Any], settings: CurriculumSettings) -> CurriculumAgent:
    """An agent of the right shape, to be filled."""
    policy = Policy.init(jax.random.key(0), game, GoalEncoder(game.space), settings.hidden)
    return CurriculumAgent(policy, jnp.ones((), jnp.int32), game, settings)
