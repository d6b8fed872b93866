"""Learning targets of the policy: what its heads should have said about a rollout, and the loss towards that.

Every step can teach the execution policy about many subgoals at once. If the step changed ρ, the value of the
transition it made is one and that of all others is zero; if not, the value is that of the next state. So the execution
policy learns from everything an explorer finds, and a failed attempt at one subgoal is practice for another. With
`relabel=False`, the paper's way, a step teaches only about the subgoal it was taken for.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Int32, Shaped

from saplan.games import Game
from saplan.methods.encoders import Encoder
from saplan.methods.policy import Policy, execution_outputs, taken_head
from saplan.rl.goal_loss import Wanted, goals_loss
from saplan.rl.networks import Head
from saplan.rl.optim import accumulate_loss, in_buckets
from saplan.rl.returns import agreement, lambda_returns, masked_mean
from saplan.rl.rollout import RolloutState, Trajectory, flatten_steps
from saplan.rl.settings import ExploringSettings, Settings

TimeLanes = Float[Array, "time lanes"]
Items = TypeVar("Items")


class Rollout(NamedTuple):
    """A rollout as the learner uses it."""

    trajectory: Trajectory
    """Leading axes (time, lanes)."""
    flat: Trajectory
    """The same steps in one row."""
    lanes: RolloutState[Any]
    """Where the lanes stand after it."""
    last: tuple[Shaped[Array, "lanes slots"], Float[Array, "lanes K"]] | None = None
    """Observation and ρ after the last steps; None where the lanes show them."""
    trunk: Float[Array, "time lanes features"] | None = None
    """The policy's trunk before every step, where it was computed to act and is still valid."""

    @classmethod
    def of(
        cls,
        trajectory: Trajectory,
        lanes: RolloutState[Any],
        trunk: Float[Array, "time lanes features"] | None = None,
    ) -> "Rollout":
        """A trajectory together with its flattened form."""
        return cls(trajectory, flatten_steps(trajectory), lanes, trunk=trunk)


class Targets(eqx.Module):
    """Targets of all steps of a rollout, about each of C subgoals."""

    observation: Shaped[Array, "n slots"]
    rho: Float[Array, "n K"]
    action: Int[Array, "n"]
    subgoal: Float[Array, "n C W"] | None
    """The subgoals of every step; None where all steps share them."""
    execution: Float[Array, "n C"]
    execution_weight: Bool[Array, "n C"]
    exploration: Float[Array, "n"] | None = None
    """Value of exploring; None for a method that does not explore."""
    exploration_weight: Bool[Array, "n"] | None = None


class Subgoals(NamedTuple):
    """Which subgoals a method learns about."""

    shared: Float[Array, "C W"] | None
    """Those that all steps share; None where each step has its own in `Targets.subgoal`."""
    used: Int32[Array, ""] | int
    """How many of the C are in use; they come first."""


class ValuedRollout(eqx.Module):
    """A trajectory with the policy's values of its states, from which returns are computed."""

    trajectory: Trajectory
    following: Float[Array, "time lanes features"]
    """The policy's trunk at the state after every step."""
    unharmed: TimeLanes
    """Factor on the value of every step's consequences: one, or less where the step cost something vital."""
    policy: Policy
    settings: Settings = eqx.field(static=True)

    def execution(
        self, subgoal: Float[Array, "*step W"], hit: Bool[Array, "time lanes"], stops: Bool[Array, "time lanes"]
    ) -> TimeLanes:
        """Targets of Q(s, a, subgoal): a hit is worth one, and returns end at a stop or a death."""
        logits = self.policy.execution(self.following, subgoal)
        value = jax.nn.sigmoid(jnp.max(logits, axis=-1))
        trace = self._trace(logits, self.settings.temperature)
        continues = ~(stops | self.trajectory.lost) * self.unharmed
        return lambda_returns(hit * self.unharmed, self.settings.discount * continues, value, trace)

    def exploration(self, reward: TimeLanes) -> TimeLanes:
        """Targets of the value of exploring."""
        steps, settings = self.trajectory, self.settings
        assert isinstance(settings, ExploringSettings)
        values = self.policy.exploration(self.following)
        continues = ~steps.game_over & (settings.credit_to_game | ~steps.changed)
        trace = self._trace(values, settings.explore_temperature)
        discount = settings.explore_discount * continues * self.unharmed
        return lambda_returns(reward * self.unharmed, discount, jnp.max(values, axis=-1), trace)

    def _trace(self, logits: Float[Array, "time lanes actions"], temperature: float) -> TimeLanes:
        """λ where the next step is known and took the action that these logits, of the next state, prefer."""
        next_action = jnp.roll(self.trajectory.action, -1, axis=0)
        next_known = jnp.roll(self.trajectory.usable, -1, axis=0).at[-1].set(False)
        return self.settings.trace * next_known * agreement(logits, next_action, temperature)


def value_rollout(game: Game[Any], settings: Settings, policy: Policy, rollout: Rollout) -> ValuedRollout:
    """Adds the policy's trunk at the states after every step, computed where acting did not compute it."""
    steps, lanes = rollout.trajectory, rollout.lanes
    seen, last_rho = rollout.last or (jax.vmap(game.observe)(lanes.state), lanes.rho)
    if rollout.trunk is not None:
        following = jnp.concatenate([rollout.trunk[1:], policy.trunk(seen, last_rho)[None]])
        return ValuedRollout(steps, following, unharmed(game, settings, steps), policy, settings)
    observation = jnp.concatenate([steps.observation[1:], seen[None]])
    rho = jnp.concatenate([steps.rho[1:], last_rho[None]])
    following = policy.trunk(observation.reshape(-1, *observation.shape[2:]), rho.reshape(-1, rho.shape[-1]))
    following = following.reshape(*steps.action.shape, -1)
    return ValuedRollout(steps, following, unharmed(game, settings, steps), policy, settings)


def unharmed(game: Game[Any], settings: Settings, steps: Trajectory) -> TimeLanes:
    """Share of the vital attributes that every step preserves, to the power `harm`; gains do not offset losses."""
    if not game.vital or not settings.harm:
        return jnp.ones(steps.action.shape)
    vital = jnp.array([game.space.names.index(name) for name in game.vital])
    before, after = steps.rho[..., vital], steps.after[..., vital]
    left = jnp.where(before > 0, after / jnp.maximum(before, 1e-6), 1.0)
    return jnp.prod(jnp.clip(left, 0.0, 1.0), axis=-1) ** settings.harm


def for_each_used(
    used: Bool[Array, "C"], items: Items, target: Callable[[Items], TimeLanes], unused: TimeLanes
) -> Float[Array, "C time lanes"]:
    """`target` of every stacked item in use, without work for the others, which come last."""

    def in_turn(used: Bool[Array, "C"], items: Items) -> Any:
        return jax.lax.map(lambda entry: jax.lax.cond(entry[0], target, lambda _: unused, entry[1]), (used, items))

    def at_once(used: Bool[Array, "C"], items: Items) -> Array:
        # On a GPU every branch synchronises with the host: one branch in all, not one per item.
        def first(items: Items, _: Array) -> Array:
            found = jax.vmap(target)(items)
            return jnp.concatenate([found, jnp.broadcast_to(unused, (len(used) - len(found), *unused.shape))])

        return in_buckets(first, items, jnp.sum(used))

    found: Array = jax.lax.platform_dependent(used, items, cpu=in_turn, default=at_once)
    return found


def by_step(x: Shaped[Array, "C time lanes ..."]) -> Shaped[Array, "n C ..."]:
    """Values per subgoal, rearranged into one row per step."""
    return jnp.moveaxis(x.reshape(x.shape[0], -1, *x.shape[3:]), 0, 1)


def policy_loss(policy: Policy, subgoals: Subgoals, batch: Targets) -> Float[Array, ""]:
    """Cross-entropy of the execution logits summed over the subgoals, plus half the Huber loss of exploration."""
    trunk = policy.trunk(batch.observation, policy.encoder.drop(batch.rho))
    used, wanted = jnp.asarray(subgoals.used), Wanted(batch.execution.T, batch.execution_weight.T)
    if batch.subgoal is None:
        assert subgoals.shared is not None
        execute = goals_loss(taken_head(policy, trunk, subgoals.shared, batch.action), wanted, used)
    else:
        items, learnt = (jnp.swapaxes(batch.subgoal, 0, 1), *wanted), (policy.network.head, trunk)
        execute = accumulate_loss(partial(subgoal_loss, policy.encoder), learnt, batch.action, items, used)
    if batch.exploration is None or batch.exploration_weight is None:
        return execute
    explored = policy.exploration_of(trunk, batch.action)
    explore = masked_mean(optax.huber_loss(explored, batch.exploration), batch.exploration_weight)
    return execute + 0.5 * explore


def subgoal_loss(
    encoder: Encoder,
    learnt: tuple[Head, Float[Array, "n features"]],
    action: Int[Array, "n"],
    item: tuple[Float[Array, "*n W"], Float[Array, "n"], Bool[Array, "n"]],
) -> Float[Array, ""]:
    """Cross-entropy of the logits of one subgoal."""
    (head, trunk), (subgoal, target, weight) = learnt, item
    logits = taken(execution_outputs(head, encoder, trunk, subgoal), action)
    return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, target) * weight)


def taken(values: Float[Array, "n actions"], action: Int[Array, "n"]) -> Float[Array, "n"]:
    """Value of the action taken, per row."""
    return jnp.take_along_axis(values, action[:, None], axis=1)[:, 0]
