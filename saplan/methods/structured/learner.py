"""The structured attribute planner as a method: the boxes of the paper's block diagram, wired.

Its knowledge is the memory 𝓑 and the edge detector. The edge detector learns that every change was feasible where it
was seen, and that a change was not feasible where execution failed at it.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Int32, PRNGKeyArray

from saplan.algebra import Product
from saplan.games.game import Game, State
from saplan.methods.encoders import AlgebraEncoder, ChangeEncoder, DropoutEncoder
from saplan.methods.structured.action_mask import ActionEffects, count_effects, no_effects
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.edge_detector import EdgeDetector, Replay, edge_loss, empty_replay, push
from saplan.methods.structured.evidence import gather_evidence
from saplan.methods.structured.exploration import exploration_reward
from saplan.methods.structured.memory import (
    NO_ENTRY,
    Memory,
    condense,
    count_attempts,
    count_visits,
    empty_memory,
    remember,
)
from saplan.methods.structured.outcomes import ActionOutcomes, count_outcomes, no_outcomes
from saplan.methods.structured.past_rollouts import PastRollouts, no_rollouts, with_past
from saplan.methods.structured.proposals import proposal_weights
from saplan.methods.structured.settings import StructuredSettings, structured_settings
from saplan.methods.targets import Rollout, Subgoals, Targets, ValuedRollout, by_step, for_each_used
from saplan.methods.update import KnowledgeUpdate, Learner, Method
from saplan.rl.few_lanes import where_wanted
from saplan.rl.optim import ADAM, descend
from saplan.rl.rollout import Judge, Proposal, Propose, RolloutState, Trajectory, by_first_change


class StructuredKnowledge(eqx.Module):
    """𝓑, the edge detector, and the examples that it learns from."""

    memory: Memory
    detector: EdgeDetector
    detector_moments: optax.OptState
    positives: Replay
    outcomes: Replay
    action_outcomes: ActionOutcomes | None = None
    """Counted where moves are random."""
    past: PastRollouts | None = None
    """Earlier rollouts; None where the policy learns from the new one alone."""
    effects: ActionEffects | None = None
    """What every action led to; None where execution may take all of them."""


class Structured(Method[StructuredKnowledge]):
    """Subgoals are changes δρ from 𝓑, feasible by the edge detector."""

    name = "structured"
    counts = "|𝓑|"
    settings = StructuredSettings

    def settings_for(self, game: Game[Any], paper: bool = False) -> StructuredSettings:
        return structured_settings(game, paper)

    def encoder(self, space: Product, settings: Any) -> AlgebraEncoder:
        if not settings.sees_rho:
            return ChangeEncoder(space)
        return DropoutEncoder(space, settings.rho_dropout) if settings.rho_dropout else AlgebraEncoder(space)

    def judge(self, game: Game[Any]) -> Judge:
        return by_first_change(game.space)

    def first_knowledge(
        self, game: Game[State], settings: StructuredSettings, key: PRNGKeyArray, lanes: RolloutState[State]
    ) -> tuple[StructuredKnowledge, RolloutState[State]]:
        detector = EdgeDetector.init(key, game.space, settings.edge_hidden)
        knowledge = StructuredKnowledge(
            memory=empty_memory(game.space, settings.capacity, settings.cells),
            detector=detector,
            detector_moments=ADAM.init(detector),
            positives=empty_replay(game.space, settings.capacity, settings.positives),
            outcomes=empty_replay(game.space, settings.capacity, settings.outcomes),
            action_outcomes=no_outcomes(len(game.actions), settings.capacity) if settings.random_moves else None,
            past=no_rollouts(game, settings, lanes) if settings.replay else None,
            effects=no_effects(len(game.actions), settings.capacity) if settings.mask_actions else None,
        )
        return knowledge, lanes

    def action_mask(self, knowledge: StructuredKnowledge) -> Bool[Array, "C actions"] | None:
        return None if knowledge.effects is None else knowledge.effects.mask()

    def proposer(
        self,
        game: Game[Any],
        settings: StructuredSettings,
        knowledge: StructuredKnowledge,
        key: PRNGKeyArray,
        fresh: Float[Array, "lanes K"],
    ) -> Propose:
        memory = knowledge.memory

        def draw(rho: Float[Array, "n K"], key: PRNGKeyArray) -> Int[Array, "n"]:
            weights = proposal_weights(memory, knowledge.detector, game.space, settings, rho)
            return jax.random.categorical(key, jnp.log(weights), axis=-1)

        def propose(key: PRNGKeyArray, rho: Float[Array, "lanes K"], wanted: Bool[Array, "lanes"]) -> Proposal:
            choice = where_wanted(draw, wanted, rho, key)
            return Proposal(memory.delta[choice], jnp.where(memory.used[choice], choice, NO_ENTRY).astype(jnp.int32))

        return propose

    def learn(
        self,
        game: Game[Any],
        settings: StructuredSettings,
        learner: Learner[StructuredKnowledge],
        rollout: Rollout,
        key: PRNGKeyArray,
    ) -> KnowledgeUpdate[StructuredKnowledge]:
        space, before, flat = game.space, learner.knowledge, rollout.flat
        memory, entry = remember(before.memory, space, flat.delta, flat.changed)
        memory = count_visits(memory, space, flat.after, flat.changed & flat.explores, flat.changed & ~flat.explores)
        memory = count_attempts(memory, flat.choice, flat.tried, flat.success)
        positives, outcomes = write_replays(before, entry, flat, settings.explored_positives)

        def loss(detector: EdgeDetector, key: PRNGKeyArray) -> Float[Array, ""]:
            examples = memory.delta, positives, outcomes
            return edge_loss(detector, space, key, *examples, settings.edge_batch, settings.calibrated)

        keys = jax.random.split(key, settings.edge_steps)
        detector, moments, losses = descend(loss, before.detector, before.detector_moments, settings.edge_rate, keys)
        past, lesson = before.past, rollout
        effects = before.effects
        if effects is not None:
            effects = count_effects(effects, rollout.trajectory, entry.reshape(rollout.trajectory.action.shape))
        counts = before.action_outcomes
        counts = None if counts is None else count_outcomes(counts, space, flat, entry)
        if past is not None:
            past, lesson = with_past(game, past, rollout, jax.random.fold_in(key, settings.edge_steps), settings.replay)
            entry = jnp.where(lesson.flat.changed, memory.index(space, lesson.flat.delta), NO_ENTRY)
        reward = exploration_reward(memory, detector, space, lesson.trajectory, settings)
        knowledge = StructuredKnowledge(memory, detector, moments, positives, outcomes, counts, past, effects)
        targets = partial(transition_targets, space, settings, memory, entry, lesson)
        return KnowledgeUpdate(knowledge, targets, reward, lesson, losses)

    def known(self, knowledge: StructuredKnowledge) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
        return knowledge.memory.size, knowledge.memory.overflow

    def agent_of(
        self, learner: Learner[StructuredKnowledge], game: Game[Any], settings: StructuredSettings
    ) -> StructuredAgent:
        knowledge = learner.knowledge
        evidence = gather_evidence(knowledge.detector, game.space, knowledge.memory.delta, knowledge.outcomes)
        known = (*condense(knowledge.memory), evidence, game, settings, knowledge.action_outcomes)
        return StructuredAgent(learner.policy, knowledge.detector, *known, effects=knowledge.effects)


def write_replays(
    knowledge: StructuredKnowledge, entry: Int[Array, "n"], flat: Trajectory, explored: bool
) -> tuple[Replay, Replay]:
    """Feasible: every change, or only those that were `explored`. Outcomes: every execution attempt."""
    clock = flat.clock.astype(jnp.float32)
    feasible = flat.changed & flat.explores if explored else flat.changed
    positives = push(knowledge.positives, entry, flat.rho, flat.changed, clock, feasible)
    outcomes = push(knowledge.outcomes, flat.choice, flat.rho, flat.success, clock, flat.tried)
    return positives, outcomes


def transition_targets(
    space: Product,
    settings: StructuredSettings,
    memory: Memory,
    entry: Int[Array, "n"],
    rollout: Rollout,
    values: ValuedRollout,
    reward: Float[Array, "time lanes"] | None,
) -> tuple[Targets, Subgoals]:
    """Targets about every transition of 𝓑; `entry` is the one that each step made."""
    steps, flat = rollout.trajectory, rollout.flat
    made, entries = entry.reshape(steps.action.shape), jnp.arange(len(memory.key))
    assert reward is not None
    # Rare changes come last and are not learnt about: each would cost as much as one that plans use.
    trusted = memory.trusted(space, settings.rare, settings.double)
    order = jnp.argsort(~trusted, stable=True) if settings.rare or settings.double else entries

    def execution(transition: tuple[Array, Array]) -> Float[Array, "time lanes"]:
        number, delta = transition
        return values.execution(delta, steps.changed & (made == number), steps.changed)

    subgoals = Subgoals(memory.delta[order], jnp.sum(trusted, dtype=jnp.int32))
    each = for_each_used(trusted[order], (order, memory.delta[order]), execution, jnp.zeros(steps.action.shape))
    weight = (learnable(space, settings, memory, flat) & trusted)[:, order]
    explored = flat.usable if settings.relabel else flat.usable & flat.explores
    targets = Targets(
        flat.observation, flat.rho, flat.action, None, by_step(each), weight,
        values.exploration(reward).reshape(-1), explored,
    )  # fmt: skip
    return targets, subgoals


def learnable(space: Product, settings: StructuredSettings, memory: Memory, flat: Trajectory) -> Bool[Array, "n C"]:
    """Which transitions every step teaches about: those with an end inside the space or, in the paper, its own."""
    inside = space.contains(space.compose(flat.rho[:, None], memory.delta)) & flat.usable[:, None]
    weight = inside & memory.used
    if not settings.relabel:
        weight &= (flat.choice[:, None] == jnp.arange(len(memory.key))) & ~flat.explores[:, None]
    return weight
