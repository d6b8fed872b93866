"""The two policies: one network, conditioned on a subgoal or on one more goal, "explore".

Its first outputs are logits of Q(s, a, subgoal), which for a change δρ is E[γ^(steps - 1) · 1(the first change is δρ)],
the value of trying it; its last outputs are the value of exploring. Trained by policy gradients, as in the paper, both
halves are an actor's logits followed by a critic's value, and exploration has a network of its own.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from saplan.games.game import Game, State
from saplan.methods.encoders import Encoder
from saplan.rl.goal_loss import TakenHead
from saplan.rl.networks import GoalNetwork, Head
from saplan.rl.repeated_actions import History, repeats
from saplan.rl.rollout import RolloutState
from saplan.rl.settings import ExploringSettings, Settings

Features = Float[Array, "... features"]
Subgoal = Float[Array, "... W"]
NEVER = -1e9
"""The logit of an action that is not drawn."""
LEAST_VALUE = 1e-3
"""Values of a critic below this count as this: a regression has no sign of its own."""


class Policy(eqx.Module):
    """Both policies, on one trunk or on two."""

    network: GoalNetwork
    encoder: Encoder = eqx.field(static=True)
    explorer: GoalNetwork | None = None
    """Exploration's own network (the paper has two policies); None where it shares the other."""
    critic: bool = eqx.field(static=True, default=False)
    """Whether outputs are an actor's logits and a critic's value, as policy gradients need; otherwise values."""
    shown: Callable[[Float[Array, "n K"]], Float[Array, "n K"]] | None = None
    """How ρ is shown to the network: a module that knows which values it has met; None for ρ as it is."""

    @classmethod
    def init(cls, key: PRNGKeyArray, game: Game[Any], encoder: Encoder, settings: Settings) -> "Policy":
        """An untrained policy."""
        critic, actions = settings.policy_gradient, len(game.actions)
        # All values start low: optimism would have to be unlearnt, one step of bootstrapping at a time.
        bias = jnp.zeros(2 * (actions + 1)) if critic else jnp.repeat(jnp.array([-4.0, 0.0]), actions)

        def network(key: PRNGKeyArray) -> GoalNetwork:
            made = GoalNetwork.init(
                key,
                vocabulary=game.vocabulary,
                numbers=0 if game.vocabulary else game.slots,
                picture=game.picture,
                cell=game.cell,
                state_width=encoder.state_width,
                goal_width=encoder.subgoal_width + 1,
                hidden=settings.hidden,
                outputs=len(bias),
            )
            biased: GoalNetwork = eqx.tree_at(lambda n: n.head.outputs.bias, made, bias)
            return biased

        apart = critic and settings.schedule.explores
        return cls(network(key), encoder, network(jax.random.fold_in(key, 1)) if apart else None, critic)

    def trunk(self, observation: Shaped[Array, "n slots"], rho: Float[Array, "n K"]) -> Features:
        """Features of a state, independent of the goal; where there are two networks, those of both."""
        state = self.encoder.state(rho if self.shown is None else self.shown(rho))
        own = self.network.trunk(observation, state)
        if self.explorer is None:
            return own
        return jnp.concatenate([own, self.explorer.trunk(observation, state)], axis=-1)

    def execution(self, trunk: Features, subgoal: Subgoal) -> Float[Array, "... actions"]:
        """Logits of Q(s, a, subgoal), or the actor's."""
        outputs = execution_outputs(self.network.head, self.encoder, self._part(trunk, 0), subgoal)
        return outputs[..., :-1] if self.critic else outputs

    def execution_value(self, trunk: Features, subgoal: Subgoal) -> Float[Array, "..."]:
        """Value of trying a subgoal: the discounted probability of success."""
        outputs = execution_outputs(self.network.head, self.encoder, self._part(trunk, 0), subgoal)
        return outputs[..., -1] if self.critic else jax.nn.sigmoid(jnp.max(outputs, axis=-1))

    def execution_log_value(self, trunk: Features, subgoal: Subgoal) -> Float[Array, "..."]:
        """Logarithm of that value, exact however small a sigmoid is."""
        if self.critic:
            return jnp.log(jnp.clip(self.execution_value(trunk, subgoal), LEAST_VALUE, 1.0))
        return jax.nn.log_sigmoid(jnp.max(self.execution(trunk, subgoal), axis=-1))

    def exploration(self, trunk: Features) -> Float[Array, "... actions"]:
        """The value of every action for exploring, or the actor's logits."""
        outputs = self._exploration_outputs(trunk)
        return outputs[..., :-1] if self.critic else outputs

    def exploration_of(self, trunk: Float[Array, "n features"], action: Int[Array, "n"]) -> Float[Array, "n"]:
        """The value of one action per row for exploring, without the values of the others."""
        head, actions = (self.explorer or self.network).head, len(self.network.head.outputs.bias) // 2
        hidden = head.hidden(self._part(trunk, 1), self._exploring)
        weight, bias = outputs_taken(head, slice(actions, None), action)
        return jnp.sum(hidden * weight, axis=-1) + bias

    def exploration_value(self, trunk: Features) -> Float[Array, "..."]:
        """The value of exploring."""
        outputs = self._exploration_outputs(trunk)
        return outputs[..., -1] if self.critic else jnp.max(outputs, axis=-1)

    def _exploration_outputs(self, trunk: Features) -> Float[Array, "... outputs"]:
        head = (self.explorer or self.network).head
        return head(self._part(trunk, 1), self._exploring, slice(len(head.outputs.bias) // 2, None))

    @property
    def _exploring(self) -> Float[Array, "goal"]:
        """Features of the goal "explore"."""
        return jnp.zeros(self.encoder.subgoal_width + 1).at[-1].set(1.0)

    def _part(self, trunk: Features, number: int) -> Float[Array, "... part"]:
        """The part of a trunk that belongs to one of two networks; all of it where there is one."""
        return trunk if self.explorer is None else jnp.split(trunk, 2, axis=-1)[number]


def execution_outputs(head: Head, encoder: Encoder, trunk: Features, subgoal: Subgoal) -> Float[Array, "... outputs"]:
    """What a policy's head says about a subgoal: by default, logits of Q(s, a, subgoal)."""
    return head(trunk, subgoal_features(encoder, subgoal), slice(len(head.outputs.bias) // 2))


def subgoal_features(encoder: Encoder, subgoal: Subgoal) -> Float[Array, "... goal"]:
    """Features of a subgoal as a policy's head is shown them: the last one would say "explore"."""
    goal = encoder.subgoal(subgoal)
    return jnp.concatenate([goal, jnp.zeros((*goal.shape[:-1], 1))], axis=-1)


def taken_head(policy: "Policy", trunk: Features, subgoals: Float[Array, "C W"], action: Int[Array, "n"]) -> TakenHead:
    """The execution head, reduced to the actions taken and to some subgoals."""
    head = policy.network.head
    goal = subgoal_features(policy.encoder, subgoals)
    taken = outputs_taken(head, slice(len(head.outputs.bias) // 2), action)
    return TakenHead(trunk, 1 + head.gain(goal), head.shift(goal), *taken)


def outputs_taken(
    head: Head, part: slice, action: Int[Array, "n"]
) -> tuple[Float[Array, "n hidden"], Float[Array, "n"]]:
    """Weights and bias of the output that belongs to every action taken.

    A product with flags, not a gather: on a GPU the gradient of a gather adds many rows to few, one after another.
    """
    weight, bias = head.outputs.weight[:, part], head.outputs.bias[part]
    flags = jax.nn.one_hot(action, len(bias))
    exact = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)
    return exact(flags, weight.T), exact(flags, bias)


def execution_preference(
    policy: Policy,
    settings: Settings,
    place: Shaped[Array, "n signs"],
    trunk: Features,
    subgoal: Float[Array, "n W"],
    label: Int[Array, "n"] | int,
    history: History,
    masked: Bool[Array, "n actions"] | None = None,
) -> Float[Array, "n actions"]:
    """Logits by which the execution policy draws its actions, none of the `masked` ones.

    `label` separates subgoals that share a history.
    """
    logits = policy.execution(trunk, subgoal)
    stale = settings.repeat_cost * repeats(history, place, label, logits.shape[-1])
    preference = (logits - stale) / settings.temperature
    return preference if masked is None else jnp.where(masked, NEVER, preference)


def sample_actions(
    policy: Policy,
    settings: Settings,
    noise: Float[Array, "n actions"],
    observation: Shaped[Array, "n slots"],
    place: Shaped[Array, "n signs"],
    lanes: RolloutState[State],
    mask: Bool[Array, "C actions"] | None = None,
) -> tuple[Int[Array, "n"], Features]:
    """An action per lane, by the policy that plays there, and the policy's trunk. The `noise` follows Gumbel's law.

    The `mask` names the actions that execution does not take for each of the method's candidates.
    """
    trunk = policy.trunk(observation, lanes.rho)
    masked = None if mask is None else mask[lanes.choice] & (lanes.choice >= 0)[:, None]
    logits = execution_preference(policy, settings, place, trunk, lanes.subgoal, 0, lanes.history, masked)
    if isinstance(settings, ExploringSettings):
        explore = exploration_preference(policy, settings, trunk)
        logits = jnp.where(lanes.explores[:, None], explore, logits)
    # The noise must not be drawn, nor logarithms be taken, element by element inside the search for the maximum.
    return jnp.argmax(jax.lax.optimization_barrier(logits + noise), axis=-1), trunk


def exploration_preference(policy: Policy, settings: ExploringSettings, trunk: Features) -> Float[Array, "... actions"]:
    """Logits by which the exploration policy draws its actions: softmax of values, mixed with uniform noise."""
    explore = jax.nn.softmax(policy.exploration(trunk) / settings.explore_temperature)
    random = settings.explore_random
    return jnp.log((1 - random) * explore + random / explore.shape[-1])
