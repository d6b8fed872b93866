"""The one training loop of all methods. A method says how it proposes, what it remembers and what it learns about.

One update plays a rollout in all lanes, lets the method learn from it (memory and edge detector, a table, or the stage
of a curriculum), and trains the policy on the method's targets. It trains without any task.
"""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int32, PRNGKeyArray

from saplan.algebra import Product
from saplan.games.game import Game, State
from saplan.methods.encoders import Encoder
from saplan.methods.policy import Policy, sample_actions
from saplan.methods.policy_gradient import clipped_loss, judged_steps
from saplan.methods.targets import Rollout, Subgoals, Targets, ValuedRollout, policy_loss, value_rollout
from saplan.rl.finite import NO_FAULT, first_fault
from saplan.rl.optim import ADAM, SEEDS, bucketed, descend, largest_of_all, learning_rate, shuffle, take_rows
from saplan.rl.returns import masked_mean
from saplan.rl.rollout import Behaviour, Judge, Propose, RolloutState, Trajectory, begin_rollout, fresh_maps, roll_out
from saplan.rl.settings import Settings

Knowledge = TypeVar("Knowledge", bound=eqx.Module)
"""What a method knows besides its policy."""
Result = TypeVar("Result")


class Learner(eqx.Module, Generic[Knowledge]):
    """Everything that training changes."""

    policy: Policy
    policy_moments: optax.OptState
    knowledge: Knowledge
    reward_scale: Float[Array, ""]
    """Running mean of the exploration reward, by which it is divided."""
    lanes: RolloutState[Any]
    key: PRNGKeyArray
    updates: Int32[Array, ""]


class Report(eqx.Module):
    """Measurements of one update."""

    attempts: Int32[Array, ""]
    successes: Int32[Array, ""]
    success_steps: Float[Array, ""]
    """Mean steps of a success."""
    found: Int32[Array, ""]
    """Transitions that exploration made: positive examples."""
    failed: Int32[Array, ""]
    """Attempts that execution failed at: negative examples."""
    known: Int32[Array, ""]
    """Transitions in 𝓑; for other methods, see `Method.counts`."""
    overflow: Int32[Array, ""]
    """Transitions that found no room there."""
    largest_attribute: Float[Array, ""]
    largest_reward: Float[Array, ""]
    """In magnitude, and not finite if any was not."""
    policy_loss: Float[Array, ""]
    edge_loss: Float[Array, ""]
    fault: Int32[Array, ""]
    """Which of the numbers that must be finite was not: see `rl.finite`."""


TargetMaker = Callable[[ValuedRollout, Float[Array, "time lanes"] | None], tuple[Targets, Subgoals]]
"""(values of a rollout, scaled exploration reward) → the policy's targets for it."""


@dataclass(frozen=True)
class KnowledgeUpdate(Generic[Knowledge]):
    """What a method learnt from a rollout, apart from its policy."""

    knowledge: Knowledge
    targets: TargetMaker
    reward: Float[Array, "time lanes"] | None = None
    """Exploration reward of every step that the policy learns from; None for a method that does not explore."""
    rollout: Rollout | None = None
    """What the policy learns from; None for the new rollout alone."""
    edge_losses: Float[Array, "batches"] | None = None
    """Losses of the edge detector, where there is one."""


class Method(abc.ABC, Generic[Knowledge]):
    """A way to train an agent. Instances have no state and are static under `jax.jit`."""

    name: str
    counts: str
    """What `Report.known` counts."""
    settings: type[Settings]

    @abc.abstractmethod
    def settings_for(self, game: Game[Any], paper: bool = False) -> Settings:
        """Defaults for a game; with `paper`, the variant nearest to the paper."""

    @abc.abstractmethod
    def encoder(self, space: Product, settings: Any) -> Encoder:
        """How the policy is shown attributes and subgoals."""

    @abc.abstractmethod
    def judge(self, game: Game[Any]) -> Judge:
        """What ends an attempt, and what is a success."""

    @abc.abstractmethod
    def first_knowledge(
        self, game: Game[State], settings: Any, key: PRNGKeyArray, lanes: RolloutState[State]
    ) -> tuple[Knowledge, RolloutState[State]]:
        """Knowledge before the first step, and the lanes with their first subgoals."""

    @abc.abstractmethod
    def proposer(
        self, game: Game[Any], settings: Any, knowledge: Knowledge, key: PRNGKeyArray, fresh: Float[Array, "lanes K"]
    ) -> Propose:
        """How subgoals are drawn during a rollout; `fresh` is ρ of the fresh maps."""

    @abc.abstractmethod
    def learn(
        self, game: Game[Any], settings: Any, learner: Learner[Knowledge], rollout: Rollout, key: PRNGKeyArray
    ) -> KnowledgeUpdate[Knowledge]:
        """Knowledge, exploration rewards and targets after a rollout."""

    @abc.abstractmethod
    def known(self, knowledge: Knowledge) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
        """How much the method knows, and how much found no room."""

    @abc.abstractmethod
    def agent_of(self, learner: Learner[Knowledge], game: Game[Any], settings: Any) -> Any:
        """The trained agent inside a learner."""

    def action_mask(self, knowledge: Knowledge) -> Bool[Array, "C actions"] | None:
        """Actions that execution does not take, for each candidate of the proposals; None for no mask."""
        return None

    def perceived(self, game: Game[State]) -> Game[State]:
        """The game as this method perceives it."""
        return game

    def untrained(self, game: Game[Any], settings: Any) -> Any:
        """An agent of the right shape, to be filled."""
        return self.agent_of(self.begin(game, settings, jax.random.key(0)), game, settings)

    def begin(self, game: Game[Any], settings: Any, key: PRNGKeyArray) -> Learner[Knowledge]:
        """A learner before its first step, all lanes at the start of a game."""
        game = self.perceived(game)
        policy_key, knowledge_key, lanes_key, key = jax.random.split(key, 4)
        encoder = self.encoder(game.space, settings)
        policy = Policy.init(policy_key, game, encoder, settings)
        lanes = begin_rollout(game, settings, lanes_key, encoder.subgoal_size)
        knowledge, lanes = self.first_knowledge(game, settings, knowledge_key, lanes)
        zero = jnp.zeros((), jnp.int32)
        return Learner(policy, ADAM.init(policy), knowledge, jnp.ones(()), lanes, key, zero)

    def update(
        self, game: Game[Any], settings: Any, total: int, learner: Learner[Knowledge]
    ) -> tuple[Learner[Knowledge], Report]:
        """One rollout and everything learnt from it; `total` is the number of updates of the whole training."""
        game = self.perceived(game)
        key, play_key, knowledge_key, policy_key = jax.random.split(learner.key, 4)
        rollout = self.play(game, settings, learner, play_key)
        learnt = self.learn(game, settings, learner, rollout, knowledge_key)
        lesson = learnt.rollout or rollout
        reward, scale = scaled_reward(learner, lesson.trajectory, learnt.reward)
        values = value_rollout(game, settings, learner.policy, lesson)
        rate = learning_rate(settings, learner.updates, total)
        batches = shuffle(settings, policy_key, len(lesson.flat.action))

        def improve(loss: PolicyLoss) -> tuple[Policy, optax.OptState, Float[Array, "batches"]]:
            return descend(loss, learner.policy, learner.policy_moments, rate, batches)

        if settings.policy_gradient:
            policy, policy_moments, losses = improve(gradient_loss(values, lesson, reward))
        else:
            policy, policy_moments, losses = improve_q(improve, *learnt.targets(values, reward))
        report = report_on(rollout.flat, *self.known(learnt.knowledge), learnt, losses)
        updates = learner.updates + 1
        return Learner(policy, policy_moments, learnt.knowledge, scale, rollout.lanes, key, updates), report

    def play(self, game: Game[Any], settings: Any, learner: Learner[Knowledge], key: PRNGKeyArray) -> Rollout:
        """A rollout by the learner as it is."""
        map_key, key = jax.random.split(key)
        fresh = fresh_maps(game, map_key, settings.lanes)
        fresh_rho = jax.vmap(game.attributes)(fresh)
        proposer_key = jax.random.fold_in(map_key, 1)
        propose = self.proposer(game, settings, learner.knowledge, proposer_key, fresh_rho)
        act = partial(sample_actions, learner.policy, settings, mask=self.action_mask(learner.knowledge))
        behaviour = Behaviour(act, propose, self.judge(game), fresh, fresh_rho)
        lanes, trajectory, trunk = roll_out(game, settings, key, learner.lanes, behaviour)
        return Rollout.of(trajectory, lanes, trunk)


PolicyLoss = Callable[[Policy, Int32[Array, "size"]], Float[Array, ""]]
"""(policy, rows of a minibatch) → its loss there."""


def improve_q(improve: Callable[[PolicyLoss], Result], targets: Targets, subgoals: Subgoals) -> Result:
    """`improve` with the loss towards the method's targets, which teach about many subgoals at once.

    On platforms other than a CPU, one branch for all gradient steps chooses how many subgoals they compute.
    """
    if subgoals.shared is None:
        return improve(q_loss(targets, subgoals))
    shared = subgoals.shared

    def with_first(n: int) -> Result:
        parts = (targets.execution[:, :n], targets.execution_weight[:, :n])
        first = eqx.tree_at(lambda x: (x.execution, x.execution_weight), targets, parts)
        return improve(q_loss(first, subgoals._replace(shared=shared[:n])))

    improved: Result = jax.lax.platform_dependent(
        cpu=lambda: with_first(len(shared)),
        default=lambda: bucketed(with_first, len(shared), jnp.asarray(subgoals.used)),
    )
    return improved


def q_loss(targets: Targets, subgoals: Subgoals) -> PolicyLoss:
    """Loss of a minibatch towards its targets."""
    return lambda policy, rows: policy_loss(policy, subgoals, take_rows(targets, rows))


def gradient_loss(values: ValuedRollout, rollout: Rollout, reward: Float[Array, "time lanes"] | None) -> PolicyLoss:
    """Loss of the policy gradient, as in the paper: a step teaches only about its own subgoal."""
    steps = judged_steps(values, rollout, reward)
    return lambda policy, rows: clipped_loss(policy, values.settings, take_rows(steps, rows))


def scaled_reward(
    learner: Learner[Any], steps: Trajectory, reward: Float[Array, "time lanes"] | None
) -> tuple[Float[Array, "time lanes"] | None, Float[Array, ""]]:
    """The reward divided by its running mean, and that mean."""
    if reward is None:
        return None, learner.reward_scale
    mean = masked_mean(reward, steps.changed)
    scale = jnp.where(learner.updates == 0, mean, 0.99 * learner.reward_scale + 0.01 * mean)
    return reward / jnp.maximum(scale, 1e-3), scale


def report_on(
    flat: Trajectory, known: Array, overflow: Array, learnt: KnowledgeUpdate[Any], policy_losses: Array
) -> Report:
    """The report on a flattened rollout."""
    tried = flat.tried
    zero = jnp.zeros(1)
    reward = zero if learnt.reward is None else learnt.reward
    edge_losses = zero if learnt.edge_losses is None else learnt.edge_losses
    return Report(
        attempts=jnp.sum(tried, dtype=jnp.int32),
        successes=jnp.sum(flat.success, dtype=jnp.int32),
        success_steps=masked_mean(flat.clock.astype(jnp.float32), flat.success),
        found=jnp.sum(flat.changed & flat.explores, dtype=jnp.int32),
        failed=jnp.sum(tried & ~flat.success, dtype=jnp.int32),
        known=known,
        overflow=overflow,
        largest_attribute=jnp.maximum(jnp.max(jnp.abs(flat.rho)), jnp.max(jnp.abs(flat.after))),
        largest_reward=jnp.max(jnp.abs(reward)),
        policy_loss=jnp.mean(policy_losses),
        edge_loss=jnp.mean(edge_losses),
        fault=jnp.int32(NO_FAULT),
    )


@eqx.filter_jit
def train_chunk(
    method: Method[Knowledge],
    game: Game[Any],
    settings: Settings,
    total: int,
    size: int,
    count: Int32[Array, ""] | int,
    learner: Learner[Knowledge],
) -> tuple[Learner[Knowledge], Report]:
    """`count` updates, at most `size`, in one compiled program: the last chunk needs no program of its own.

    Reports are stacked; the first `count` are valid. After a number that is not finite learning stops, and the reports
    from there on name it.
    """
    step = partial(method.update, game, settings, total)
    shapes = jax.eval_shape(lambda x: step(x)[1], learner)
    blank = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    reports: Report = jax.tree.map(lambda x: jnp.zeros((size, *x.shape), x.dtype), shapes)

    def continues(done: Array, fault: Array) -> Array:
        return (done < jnp.minimum(count, size)) & (largest_of_all(fault) == NO_FAULT)

    def one(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        _, done, fault, learner, reports = carry
        learner, report = step(learner)
        fault = first_fault(report, learner)
        reports = jax.tree.map(lambda rows, row: rows.at[done].set(row), reports, report)
        return continues(done + 1, fault), done + 1, fault, learner, reports

    # A loop that ends, and not a branch in each of its turns: a branch would copy the learner. The learner is checked
    # before the loop too: what is bad already must be named before an update spreads it.
    nothing, fault = jnp.int32(0), first_fault(blank, learner)
    start = (continues(nothing, fault), nothing, fault, learner, reports)
    _, done, fault, learner, reports = jax.lax.while_loop(lambda carry: carry[0], one, start)
    faults = jnp.where(jnp.arange(size) >= done - (fault != NO_FAULT), fault, NO_FAULT)
    return learner, eqx.tree_at(lambda r: r.fault, reports, faults)


@eqx.filter_jit
def train_chunk_of_each(
    method: Method[Knowledge],
    game: Game[Any],
    settings: Settings,
    total: int,
    size: int,
    count: Int32[Array, ""] | int,
    learners: Learner[Knowledge],
) -> tuple[Learner[Knowledge], Report]:
    """`train_chunk` for several stacked learners: on a GPU a few of them cost little more than one."""
    one = partial(train_chunk, method, game, settings, total, size, count)
    return jax.vmap(one, axis_name=SEEDS)(learners)
