"""The predecessor, an attribute planner without algebra (Zhang et al., Composable Planning with Attributes, 2018).

Attributes are a set: what is known of one ρ says nothing of another. A table counts how often each pair (ρ_i, ρ_j) was
seen and how often an attempt to get from one to the other succeeded; the policy is told the target ρ_j; plans are
shortest paths by -log of the table's ratio. Reals are rounded to integers. Network, rollout, learner and search are the
structured model's; as there, every step teaches about every known neighbour of its ρ.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32, PRNGKeyArray

from saplan.algebra import Product, Rho
from saplan.algebra.base import Features
from saplan.errors import InputError
from saplan.games import Game
from saplan.goals import Goal, parse_goal
from saplan.methods.base import ADAM, Report, descend, learning_rate, report_on, select, shuffle
from saplan.methods.encoders import Encoder
from saplan.methods.executor import DEFAULT_PLANNER, FirstEdges, PlanExecutor, PlannerSettings
from saplan.methods.policy import Policy, sample_actions
from saplan.methods.targets import Targets, flat, for_each_used, own_subgoal_loss, review
from saplan.methods.unstructured.rounding import rounded
from saplan.methods.unstructured.table import Table, count_attempts, count_changes, empty_table
from saplan.planning import Plan, Raised, Route, search
from saplan.planning.search import FREE
from saplan.rl.returns import masked_mean
from saplan.rl.rollout import Judge, RolloutState, StepOutcome, Trajectory, begin, fresh_maps, roll_out, usable
from saplan.rl.settings import Settings, settings_for

LARGEST = 2**24
"""Pairs that a table can be given room for; such an agent takes 280 MiB on disk."""


@dataclass(frozen=True)
class UnstructuredSettings(Settings):
    """Numbers of the unstructured planner; those of 𝓑 and of the edge detector have no meaning here."""

    nodes: int = 2**18
    """Attribute sets that the table can hold."""
    degree: int = 16
    """Neighbours that it can hold of each."""
    decay: float = 0.9
    """What is left of attempts and successes after an epoch."""
    epoch: int = 64
    """Updates per epoch."""
    share_floor: float = 0.001
    """Added to a pair's share in the exploration bonus, (share + this)^-0.5."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nodes < 16 or self.degree < 1 or self.epoch < 1:
            raise InputError("nodes must be at least 16, degree and epoch at least 1")
        if self.nodes * self.degree > LARGEST:
            raise InputError(f"nodes × degree must be at most {LARGEST}, got {self.nodes * self.degree}")
        if not 0 < self.decay <= 1 or not self.share_floor > 0:
            raise InputError("decay must lie in (0, 1], share-floor above 0")


def unstructured_settings(game: Game[Any], faithful: bool = False) -> UnstructuredSettings:
    """The defaults for a game."""
    return UnstructuredSettings(**vars(settings_for(game, faithful)))


@dataclass(frozen=True)
class OneHotEncoder(Encoder):
    """One flag per value of every attribute, for ρ and for the target alike: no value is near any other."""

    space: Product

    @property
    def subgoal_size(self) -> int:  # type: ignore[override]
        return self.space.size

    @property
    def state_width(self) -> int:  # type: ignore[override]
        return sum(self.space.bins)

    @property
    def subgoal_width(self) -> int:  # type: ignore[override]
        return sum(self.space.bins)

    def state(self, rho: Rho) -> Features:
        cells = self.space.bin(rho)
        flags = [jax.nn.one_hot(cells[..., k], size) for k, size in enumerate(self.space.bins)]
        return jnp.concatenate(flags, axis=-1)

    def subgoal(self, subgoal: Rho) -> Features:
        return self.state(subgoal)


class UnstructuredLearner(eqx.Module):
    """Everything that training changes."""

    policy: Policy
    table: Table
    policy_moments: Any
    reward_scale: Float[Array, ""]
    lanes: RolloutState
    key: PRNGKeyArray
    updates: Int32[Array, ""]


def begin_unstructured(game: Game[Any], settings: UnstructuredSettings, key: PRNGKeyArray) -> UnstructuredLearner:
    """Nothing learnt yet."""
    policy_key, lanes_key, key = jax.random.split(key, 3)
    seen = rounded(game)
    encoder = OneHotEncoder(seen.space)
    policy = Policy.init(policy_key, seen, encoder, settings.hidden)
    return UnstructuredLearner(
        policy=policy,
        table=empty_table(settings.nodes, settings.degree, seen.space.size),
        policy_moments=ADAM.init(policy),
        reward_scale=jnp.ones(()),
        lanes=begin(seen, settings, lanes_key, encoder.subgoal_size),
        key=key,
        updates=jnp.zeros((), jnp.int32),
    )


def update_unstructured(
    game: Game[Any], settings: UnstructuredSettings, total: int, learner: UnstructuredLearner
) -> tuple[UnstructuredLearner, Report]:
    """One rollout and all that is learnt from it."""
    seen = rounded(game)
    key, play_key, map_key, policy_key = jax.random.split(learner.key, 4)
    lanes, steps = roll_out(
        seen, settings, play_key, learner.lanes, fresh_maps(seen, map_key, settings.lanes),
        partial(sample_actions, learner.policy, settings), partial(draw_neighbour, learner.table), by_arrival(),
    )  # fmt: skip
    every: Trajectory = jax.tree.map(flat, steps)
    tried = (every.success | every.failure) & ~every.explores
    table = count_changes(learner.table, every.rho, every.after, every.changed)
    decay = jnp.where(learner.updates % settings.epoch == settings.epoch - 1, settings.decay, 1.0)
    table = count_attempts(table, every.rho, every.subgoal, tried, every.success, decay)

    rare = rare_pairs(table, every.rho, every.after, settings.share_floor)
    reward = jnp.where(steps.changed, rare.reshape(steps.changed.shape), 0.0)
    mean = masked_mean(reward, steps.changed)
    scale = jnp.where(learner.updates == 0, mean, 0.99 * learner.reward_scale + 0.01 * mean)
    taught, columns = make_targets(
        seen, settings, learner.policy, table, steps, lanes, reward / jnp.maximum(scale, 1e-3)
    )
    policy, policy_moments, losses = descend(
        lambda policy, rows: own_subgoal_loss(policy, columns, select(taught, rows)),
        learner.policy, learner.policy_moments, learning_rate(settings, learner.updates, total),
        shuffle(settings, policy_key),
    )  # fmt: skip
    learner = UnstructuredLearner(policy, table, policy_moments, scale, lanes, key, learner.updates + 1)
    return learner, report_on(every, table.pairs, table.overflow, reward, losses, jnp.zeros(1))


def by_arrival() -> Judge:
    """Any change ends an attempt; to stand at the target is a hit."""

    def judge(before: Rho, after: Rho, subgoal: Rho) -> StepOutcome:
        changed = jnp.any(after != before, axis=-1)
        return StepOutcome(changed & jnp.all(after == subgoal, axis=-1), changed)

    return judge


def draw_neighbour(table: Table, key: PRNGKeyArray, rho: Float[Array, "lanes K"]) -> Float[Array, "lanes K"]:
    """A known neighbour of every ρ, drawn by how often it was seen; ρ itself, a wish in vain, where none is known."""
    node = table.find(rho)
    targets, there = table.targets(node)
    weights = jnp.where(there, jnp.log(table.explored[node].astype(jnp.float32)), -jnp.inf)
    column = jax.random.categorical(key, jnp.where(there.any(1, keepdims=True), weights, 0.0), axis=-1)
    drawn = jnp.take_along_axis(targets, column[:, None, None], axis=1)[:, 0]
    return jnp.where(there.any(1)[:, None], drawn, rho)


def rare_pairs(table: Table, before: Rho, after: Rho, floor: float) -> Float[Array, "n"]:
    """The exploration bonus (share + floor)^-0.5; a pair's share is its count by the mean count of all pairs."""
    node = table.find(before)
    column = table.column(node, table.find(after))
    mean = jnp.sum(table.explored.astype(jnp.float32)) / jnp.maximum(table.pairs, 1)
    share = table.explored[node, column] / jnp.maximum(mean, 1.0)
    # What found no room in the table must not look new for ever.
    return jnp.where(column >= 0, (share + floor) ** -0.5, 0.0)


def make_targets(
    game: Game[Any],
    settings: UnstructuredSettings,
    policy: Policy,
    table: Table,
    steps: Trajectory,
    lanes: RolloutState,
    reward: Float[Array, "time lanes"],
) -> tuple[Targets, Int32[Array, ""]]:
    """Targets about all known neighbours of every step's ρ, and how many of their columns are in use."""
    rollout, shape = review(game, settings, policy, steps, lanes), steps.action.shape
    targets, there = table.targets(table.find(flat(steps.rho)))
    subgoals = jnp.moveaxis(targets.reshape(*shape, *targets.shape[1:]), 2, 0)
    there = jnp.moveaxis(there.reshape(*shape, -1), 2, 0)

    def about(subgoal: Float[Array, "time lanes K"]) -> Float[Array, "time lanes"]:
        return rollout.execution(subgoal, steps.changed & jnp.all(steps.after == subgoal, axis=-1), steps.changed)

    columns = jnp.max(jnp.sum(there, axis=0))
    execution = for_each_used(jnp.arange(len(subgoals)) < columns, subgoals, about, jnp.zeros(shape))
    weight, explored = there & usable(steps), usable(steps)
    if not settings.relabel:
        weight &= jnp.all(steps.subgoal[None] == subgoals, axis=-1) & ~steps.explores
        explored &= steps.explores
    by_step = lambda x: jnp.moveaxis(x.reshape(x.shape[0], -1, *x.shape[3:]), 0, 1)  # noqa: E731
    taught = Targets(
        flat(steps.sight), flat(steps.rho), flat(steps.action), by_step(subgoals), by_step(execution), by_step(weight),
        flat(rollout.exploration(reward)), flat(explored),
    )  # fmt: skip
    return taught, columns


class UnstructuredAgent(eqx.Module):
    """Policy and table of a game."""

    policy: Policy
    table: Table
    game: Game[Any] = eqx.field(static=True)
    settings: UnstructuredSettings = eqx.field(static=True)

    @property
    def seen(self) -> Game[Any]:
        """The game as this agent perceives it: in whole numbers."""
        return rounded(self.game)

    def executor(self, state: Any, goals: Goal, planning: PlannerSettings = DEFAULT_PLANNER) -> PlanExecutor:
        """Several tasks, ready to be carried out side by side."""
        return PlanExecutor(TablePlanner(self), state, goals, planning)

    def plan(self, state: Any, goal: Goal | str, planning: PlannerSettings = DEFAULT_PLANNER) -> Plan:
        """The likeliest path of attribute sets, by the table."""
        goal = parse_goal(self.game.space, goal) if isinstance(goal, str) else goal
        rho = np.asarray(self.seen.attributes(state))[None]
        one = Goal(np.asarray(goal.low)[None], np.asarray(goal.high)[None])
        return TablePlanner(self).routes(rho, one, planning)[0].plan(rho[0])


class TablePlanner:
    """The table on the host, sorted, for planning."""

    def __init__(self, agent: UnstructuredAgent) -> None:
        """Takes the nodes that are in use."""
        self.agent, self.policy, self.game, self.seen = agent, agent.policy, agent.game, agent.seen
        self.settings: Settings = agent.settings
        table = jax.tree.map(np.asarray, agent.table)
        used = np.flatnonzero(table.tag)
        hashes = _hash(table.rho[used])
        order = np.argsort(hashes)
        self.hashes, self.place = hashes[order], used[order]
        self.rho, self.edge, self.explored = table.rho, table.edge, table.explored
        with np.errstate(divide="ignore", invalid="ignore"):
            self.cost = np.where(table.tried > 0, -np.log(table.won / table.tried), np.inf).astype(np.float32)

    def find(self, rho: Float[np.ndarray, "n K"]) -> np.ndarray:
        """The places of ρ in the table, -1 where it was never seen."""
        hashes = _hash(np.asarray(rho, np.float32))
        if not len(self.hashes):
            return np.full(len(hashes), -1)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, self.place[at], -1)

    def edges(self, rho: Float[np.ndarray, "n K"], planning: PlannerSettings) -> tuple[np.ndarray, np.ndarray]:
        """Ends and costs of all edges of a batch of nodes."""
        place = self.find(rho)
        edge = self.edge[place]
        there = (edge > 0) & (place >= 0)[:, None]
        cost = np.where(there & (self.cost[place] < -np.log(planning.floor)), self.cost[place] + FREE, np.inf)
        return self.rho[edge - 1], cost.astype(np.float32)

    def routes(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planning: PlannerSettings, raised: Raised = ()
    ) -> list[Route]:
        """Searches from several ρ to a goal each; `raised` names edges whose cost is higher than it seems."""
        grain = np.asarray(self.seen.space.grain, np.float32)
        low, high, edges = np.asarray(goals.low), np.asarray(goals.high), lambda nodes: self.edges(nodes, planning)
        bounds = planning.max_nodes, planning.max_seconds
        return search(np.asarray(rho, np.float32), low, high, grain, edges, *bounds, raised)

    def first_edges(self, state: Any, planning: PlannerSettings) -> FirstEdges:
        """The table alone decides; how long an attempt may take is the policy's to say."""
        return None, np.asarray(expected_steps(self.agent, state))

    def known(self, rho: Float[np.ndarray, "K"]) -> Float[np.ndarray, "D"]:
        """How often every change from ρ was seen."""
        place = int(self.find(rho[None])[0])
        return self.explored[place].astype(float) if place >= 0 else np.zeros(self.edge.shape[1])

    def subgoal(self, rho: Float[np.ndarray, "K"], transition: int) -> Float[np.ndarray, "K"]:
        """The target of an edge."""
        place = int(self.find(rho[None])[0])
        return self.rho[self.edge[place, transition] - 1] if place >= 0 and self.edge[place, transition] else rho

    def change(self, rho: Float[np.ndarray, "K"], transition: int) -> Float[np.ndarray, "K"]:
        """The change towards the target of an edge."""
        target = jnp.asarray(self.subgoal(rho, transition))
        return np.asarray(self.seen.space.difference(target, jnp.asarray(rho)))


@eqx.filter_jit
def expected_steps(agent: UnstructuredAgent, state: Any) -> Float[Array, "n D"]:
    """How long every change from the present states should take, by the policy's value of it."""
    game, settings = agent.seen, agent.settings
    rho = jax.vmap(game.attributes)(state)
    trunk = agent.policy.trunk(jax.vmap(game.observe)(state), rho)
    targets, _ = agent.table.targets(agent.table.find(rho))
    logits = jax.vmap(lambda subgoal: agent.policy.execution(trunk, subgoal), in_axes=1, out_axes=1)(targets)
    value = jax.nn.log_sigmoid(jnp.max(logits, axis=-1))
    return jnp.clip(1 + value / jnp.log(settings.discount), 1.0, settings.attempt_steps)


def _hash(rho: Float[np.ndarray, "n K"]) -> np.ndarray:
    mixed = np.zeros(len(rho), np.uint64)
    with np.errstate(over="ignore"):
        for part in np.rint(rho).astype(np.int64).astype(np.uint64).T:
            mixed = (mixed ^ part) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
    return mixed


def agent_of(learner: UnstructuredLearner, game: Game[Any], settings: UnstructuredSettings) -> UnstructuredAgent:
    """What of a learner is used after training."""
    return UnstructuredAgent(learner.policy, learner.table, game, settings)


def untrained(game: Game[Any], settings: UnstructuredSettings) -> UnstructuredAgent:
    """An agent of the right shape, to be filled."""
    return agent_of(begin_unstructured(game, replace(settings, lanes=2), jax.random.key(0)), game, settings)
