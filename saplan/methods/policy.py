"""The two policies: one network, conditioned on a subgoal or on one more goal, "explore".

Its first outputs are logits of Q(s, a, subgoal), which for a change δρ is E[γ^(steps - 1) · 1(the first change is δρ)],
the value of trying it; its last outputs are the value of exploring.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from saplan.games.game import Game, State
from saplan.methods.encoders import Encoder
from saplan.rl.networks import GoalNetwork, Head
from saplan.rl.repeated_actions import History, repeats
from saplan.rl.rollout import RolloutState
from saplan.rl.settings import ExploringSettings, Settings

Features = Float[Array, "... features"]
Subgoal = Float[Array, "... W"]


class Policy(eqx.Module):
    """Both policies on one trunk."""

    network: GoalNetwork
    encoder: Encoder = eqx.field(static=True)
    shown: Callable[[Float[Array, "n K"]], Float[Array, "n K"]] | None = None
    """How ρ is shown to the network: a module that knows which values it has met; None for ρ as it is."""

    @classmethod
    def init(cls, key: PRNGKeyArray, game: Game[Any], encoder: Encoder, hidden: int) -> "Policy":
        """An untrained policy."""
        actions = len(game.actions)
        network = GoalNetwork.init(
            key,
            vocabulary=game.vocabulary,
            numbers=0 if game.vocabulary else game.slots,
            picture=game.picture,
            state_width=encoder.state_width,
            goal_width=encoder.subgoal_width + 1,
            hidden=hidden,
            outputs=2 * actions,
        )
        # All values start low: optimism would have to be unlearnt, one step of bootstrapping at a time.
        bias = jnp.concatenate([jnp.full(actions, -4.0), jnp.zeros(actions)])
        return cls(eqx.tree_at(lambda n: n.head.outputs.bias, network, bias), encoder)

    def trunk(self, observation: Shaped[Array, "n slots"], rho: Float[Array, "n K"]) -> Features:
        """Features of a state, independent of the goal."""
        if self.shown is not None:
            rho = self.shown(rho)
        return self.network.trunk(observation, self.encoder.state(rho))

    def execution(self, trunk: Features, subgoal: Subgoal) -> Float[Array, "... actions"]:
        """Logits of Q(s, a, subgoal)."""
        return execution_logits(self.network.head, self.encoder, trunk, subgoal)

    def exploration(self, trunk: Features) -> Float[Array, "... actions"]:
        """The value of every action for exploring."""
        head = self.network.head
        goal = jnp.zeros(self.encoder.subgoal_width + 1).at[-1].set(1.0)
        return head(trunk, goal, slice(len(head.outputs.bias) // 2, None))


def execution_logits(head: Head, encoder: Encoder, trunk: Features, subgoal: Subgoal) -> Float[Array, "... actions"]:
    """Logits of Q(s, a, subgoal) by a policy's head."""
    goal = encoder.subgoal(subgoal)
    goal = jnp.concatenate([goal, jnp.zeros((*goal.shape[:-1], 1))], axis=-1)
    return head(trunk, goal, slice(len(head.outputs.bias) // 2))


def execution_preference(
    policy: Policy,
    settings: Settings,
    place: Shaped[Array, "n signs"],
    trunk: Features,
    subgoal: Float[Array, "n W"],
    label: Int[Array, "n"] | int,
    history: History,
) -> Float[Array, "n actions"]:
    """Logits by which the execution policy draws its actions; `label` separates subgoals that share a history."""
    logits = policy.execution(trunk, subgoal)
    stale = settings.repeat_cost * repeats(history, place, label, logits.shape[-1])
    return (logits - stale) / settings.temperature


def sample_actions(
    policy: Policy,
    settings: Settings,
    key: PRNGKeyArray,
    observation: Shaped[Array, "n slots"],
    place: Shaped[Array, "n signs"],
    lanes: RolloutState[State],
) -> Int[Array, "n"]:
    """An action per lane, by the policy that plays there."""
    trunk = policy.trunk(observation, lanes.rho)
    logits = execution_preference(policy, settings, place, trunk, lanes.subgoal, 0, lanes.history)
    if isinstance(settings, ExploringSettings):
        explore = exploration_preference(policy, settings, trunk)
        logits = jnp.where(lanes.explores[:, None], explore, logits)
    return jax.random.categorical(key, logits, axis=-1)


def exploration_preference(policy: Policy, settings: ExploringSettings, trunk: Features) -> Float[Array, "n actions"]:
    """Logits by which the exploration policy draws its actions: softmax of values, mixed with uniform noise."""
    explore = jax.nn.softmax(policy.exploration(trunk) / settings.explore_temperature)
    random = settings.explore_random
    return jnp.log((1 - random) * explore + random / explore.shape[-1])
