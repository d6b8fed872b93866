"""The predecessor, an attribute planner without algebra (Zhang et al., Composable Planning with Attributes, 2018).

Attributes are a set: knowledge about one ρ says nothing about another. A table counts how often each pair (ρ_i, ρ_j)
was seen and how often an attempt to get from one to the other succeeded; the policy is given the target ρ_j; plans are
shortest paths by -log of the table's ratio. Reals are rounded to integers. Network, rollout, update and search are
those of the structured planner; as there, every step teaches about every known neighbour of its ρ.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Int32, PRNGKeyArray

from saplan.algebra import Product, Rho
from saplan.games.game import Game, State
from saplan.methods.encoders import OneHotEncoder
from saplan.methods.targets import Rollout, Subgoals, Targets, ValuedRollout, by_step, for_each_used
from saplan.methods.unstructured.agent import UnstructuredAgent
from saplan.methods.unstructured.rounding import rounded
from saplan.methods.unstructured.settings import UnstructuredSettings, unstructured_settings
from saplan.methods.unstructured.table import NONE, Table, count_changes, count_tries, empty_table
from saplan.methods.update import KnowledgeUpdate, Learner, Method
from saplan.rl.rollout import Change, Judge, Proposal, Propose, RolloutState, StepOutcome


class Unstructured(Method[Table]):
    """Subgoals are known neighbours of ρ."""

    name = "unstructured"
    counts = "pairs"
    settings = UnstructuredSettings

    def settings_for(self, game: Game[Any], paper: bool = False) -> UnstructuredSettings:
        return unstructured_settings(game, paper)

    def perceived(self, game: Game[State]) -> Game[State]:
        return rounded(game)

    def encoder(self, space: Product, settings: Any) -> OneHotEncoder:
        return OneHotEncoder(space)

    def judge(self, game: Game[Any]) -> Judge:
        return arrival

    def first_knowledge(
        self, game: Game[State], settings: UnstructuredSettings, key: PRNGKeyArray, lanes: RolloutState[State]
    ) -> tuple[Table, RolloutState[State]]:
        return empty_table(settings.nodes, settings.degree, game.space.size), lanes

    def proposer(
        self,
        game: Game[Any],
        settings: UnstructuredSettings,
        knowledge: Table,
        key: PRNGKeyArray,
        fresh: Float[Array, "lanes K"],
    ) -> Propose:
        return lambda key, rho, wanted: draw_neighbour(knowledge, key, rho)

    def learn(
        self,
        game: Game[Any],
        settings: UnstructuredSettings,
        learner: Learner[Table],
        rollout: Rollout,
        key: PRNGKeyArray,
    ) -> KnowledgeUpdate[Table]:
        steps, flat = rollout.trajectory, rollout.flat
        table, made = count_changes(learner.knowledge, flat.rho, flat.after, flat.changed)
        node = table.find(flat.rho)
        decay = jnp.where(learner.updates % settings.epoch == settings.epoch - 1, settings.decay, 1.0)
        table = count_tries(table, node, flat.choice, flat.tried, flat.success, decay)
        rare = rare_pairs(table, node, made, settings.share_floor)
        reward = jnp.where(steps.changed, rare.reshape(steps.changed.shape), 0.0)
        return KnowledgeUpdate(table, partial(neighbour_targets, settings, table, node, rollout), reward)

    def known(self, knowledge: Table) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
        return knowledge.pairs, knowledge.overflow

    def agent_of(self, learner: Learner[Table], game: Game[Any], settings: UnstructuredSettings) -> UnstructuredAgent:
        return UnstructuredAgent(learner.policy, learner.knowledge, game, settings)


def arrival(step: Change, subgoal: Rho) -> StepOutcome:
    """Any change ends an attempt; arriving at the target is a hit."""
    return StepOutcome(step.changed & jnp.all(step.after == subgoal, axis=-1), step.changed)


def draw_neighbour(table: Table, key: PRNGKeyArray, rho: Float[Array, "lanes K"]) -> Proposal:
    """A known neighbour of every ρ, drawn by how often it was seen; ρ itself where no neighbour is known."""
    node = table.find(rho)
    targets, there = table.targets(node)
    weights = jnp.where(there, jnp.log(table.explored[node].astype(jnp.float32)), -jnp.inf)
    known = there.any(1)
    column = jax.random.categorical(key, jnp.where(known[:, None], weights, 0.0), axis=-1)
    drawn = jnp.take_along_axis(targets, column[:, None, None], axis=1)[:, 0]
    choice = jnp.where(known, column, NONE).astype(jnp.int32)
    return Proposal(jnp.where(known[:, None], drawn, rho), choice)


def rare_pairs(table: Table, node: Int[Array, "n"], column: Int[Array, "n"], floor: float) -> Float[Array, "n"]:
    """The exploration bonus (share + floor)^-0.5; a pair's share is its count over the mean count of all pairs."""
    mean = jnp.sum(table.explored.astype(jnp.float32)) / jnp.maximum(table.pairs, 1)
    share = table.explored[node, column] / jnp.maximum(mean, 1.0)
    # A pair that found no room in the table must not look new for ever.
    return jnp.where(column >= 0, (share + floor) ** -0.5, 0.0)


def neighbour_targets(
    settings: UnstructuredSettings,
    table: Table,
    node: Int[Array, "n"],
    rollout: Rollout,
    values: ValuedRollout,
    reward: Float[Array, "time lanes"] | None,
) -> tuple[Targets, Subgoals]:
    """Targets about all known neighbours of every step's ρ; `node` is where the table has that ρ."""
    steps, flat = rollout.trajectory, rollout.flat
    shape = steps.action.shape
    assert reward is not None
    targets, there = table.targets(node)
    subgoals = jnp.moveaxis(targets.reshape(*shape, *targets.shape[1:]), 2, 0)

    def execution(subgoal: Float[Array, "time lanes K"]) -> Float[Array, "time lanes"]:
        return values.execution(subgoal, steps.changed & jnp.all(steps.after == subgoal, axis=-1), steps.changed)

    columns = jnp.max(jnp.sum(there.reshape(*shape, -1), axis=-1))
    each = for_each_used(jnp.arange(len(subgoals)) < columns, subgoals, execution, jnp.zeros(shape))
    weight, explored = there & flat.usable[:, None], flat.usable
    if not settings.relabel:
        weight &= (flat.choice[:, None] == jnp.arange(there.shape[1])) & ~flat.explores[:, None]
        explored &= flat.explores
    made = Targets(
        flat.observation, flat.rho, flat.action, targets, by_step(each), weight,
        values.exploration(reward).reshape(-1), explored,
    )  # fmt: skip
    return made, Subgoals(None, columns)
