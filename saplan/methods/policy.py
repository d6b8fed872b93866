"""The two policies: one network, one goal per wish, and one more goal, "explore".

Its first outputs are logits of Q(s, a, wish), which for a change δρ is E[γ^(steps - 1) · 1(the first change is δρ)],
the value of trying it; its last outputs are the value of exploring.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from saplan.games import Game
from saplan.methods.encoders import Encoder
from saplan.rl.history import History, repeats
from saplan.rl.networks import GoalNetwork, Head
from saplan.rl.rollout import RolloutState
from saplan.rl.settings import Settings

Features = Float[Array, "... features"]
Wish = Float[Array, "... W"]


class Policy(eqx.Module):
    """Both policies on one trunk."""

    network: GoalNetwork
    encoder: Encoder = eqx.field(static=True)

    @classmethod
    def init(cls, key: PRNGKeyArray, game: Game[Any], encoder: Encoder, hidden: int) -> "Policy":
        """A policy that has learnt nothing."""
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
        # Nothing is thought likely at first: hope would only have to be unlearnt, one step of bootstrapping at a time.
        bias = jnp.concatenate([jnp.full(actions, -4.0), jnp.zeros(actions)])
        return cls(eqx.tree_at(lambda n: n.head.outputs.bias, network, bias), encoder)

    def trunk(self, sight: Shaped[Array, "n slots"], rho: Float[Array, "n K"]) -> Features:
        """What is known of a state, whatever the goal."""
        return self.network.trunk(sight, self.encoder.state(rho))

    def execution(self, trunk: Features, subgoal: Wish) -> Float[Array, "... actions"]:
        """Logits of Q(s, a, wish)."""
        return execution_logits(self.network.head, self.encoder, trunk, subgoal)

    def exploration(self, trunk: Features) -> Float[Array, "... actions"]:
        """The value of every action for exploring."""
        head = self.network.head
        goal = jnp.zeros(self.encoder.subgoal_width + 1).at[-1].set(1.0)
        return head(trunk, goal, slice(len(head.outputs.bias) // 2, None))


def execution_logits(head: Head, encoder: Encoder, trunk: Features, subgoal: Wish) -> Float[Array, "... actions"]:
    """Logits of Q(s, a, wish) by a policy's head."""
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
    """Logits by which the execution policy draws its actions; `label` tells apart the wishes that share a trail."""
    logits = policy.execution(trunk, subgoal)
    stale = settings.repeat_cost * repeats(history, place, label, logits.shape[-1])
    return (logits - stale) / settings.temperature


def sample_actions(
    policy: Policy,
    settings: Settings,
    key: PRNGKeyArray,
    sight: Shaped[Array, "n slots"],
    place: Shaped[Array, "n signs"],
    lanes: RolloutState,
) -> Int[Array, "n"]:
    """An action per lane, by whichever policy plays there."""
    trunk = policy.trunk(sight, lanes.rho)
    execute = execution_preference(policy, settings, place, trunk, lanes.subgoal, 0, lanes.history)
    explore = jax.nn.softmax(policy.exploration(trunk) / settings.explore_temperature)
    random = settings.explore_random
    explore = jnp.log((1 - random) * explore + random / explore.shape[-1])
    return jax.random.categorical(key, jnp.where(lanes.explores[:, None], explore, execute), axis=-1)
