"""The two policies: one network, one goal per transition in 𝓑, and one more goal, "explore".

Its first outputs are logits of Q(s, a, δρ) = E[γ^(steps - 1) · 1(the first change is δρ)], the value of trying δρ;
its last outputs are the value of exploring.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Int16, PRNGKeyArray

from saplan.algebra import Delta, Product
from saplan.games import Game
from saplan.learning.networks import GoalNetwork
from saplan.model.attempt import Lanes
from saplan.model.settings import Settings

Features = Float[Array, "... features"]


class Policy(eqx.Module):
    """Both policies on one trunk."""

    network: GoalNetwork

    @classmethod
    def init(cls, key: PRNGKeyArray, game: Game[Any], hidden: int) -> "Policy":
        """A policy that has learnt nothing."""
        space, actions = game.space, len(game.actions)
        network = GoalNetwork.init(
            key,
            vocabulary=game.vocabulary,
            state_width=space.width,
            goal_width=space.delta_width + 1,
            hidden=hidden,
            outputs=2 * actions,
        )
        # Nothing is thought likely at first: hope would only have to be unlearnt, one step of bootstrapping at a time.
        bias = jnp.concatenate([jnp.full(actions, -4.0), jnp.zeros(actions)])
        return cls(eqx.tree_at(lambda n: n.outputs.bias, network, bias))

    def trunk(self, space: Product, words: Int16[Array, "n slots"], rho: Float[Array, "n K"]) -> Features:
        """What is known of a state, whatever the goal."""
        return self.network.trunk(words, space.encode(rho))

    def execution(self, space: Product, trunk: Features, wish: Delta) -> Float[Array, "... actions"]:
        """Logits of Q(s, a, δρ)."""
        goal = space.encode_delta(wish)
        out = self.network.head(trunk, jnp.concatenate([goal, jnp.zeros((*goal.shape[:-1], 1))], axis=-1))
        return out[..., : out.shape[-1] // 2]

    def exploration(self, space: Product, trunk: Features) -> Float[Array, "... actions"]:
        """The value of every action for exploring."""
        out = self.network.head(trunk, jnp.zeros(space.delta_width + 1).at[-1].set(1.0))
        return out[..., out.shape[-1] // 2 :]


def heating(settings: Settings, clock: Int[Array, "n"]) -> Float[Array, "n"]:
    """The temperature of an attempt, rising with its length: who walks in circles should waver."""
    return settings.temperature * (1 + jnp.maximum(clock - settings.patience, 0) / settings.patience)


def sample_actions(
    policy: Policy, space: Product, settings: Settings, key: PRNGKeyArray, words: Int16[Array, "n slots"], lanes: Lanes
) -> Int[Array, "n"]:
    """An action per lane, by whichever policy plays there."""
    trunk = policy.trunk(space, words, lanes.rho)
    heat = heating(settings, lanes.clock)[:, None]
    execute = jax.nn.log_softmax(policy.execution(space, trunk, lanes.wish) / heat)
    explore = jax.nn.softmax(policy.exploration(space, trunk) / settings.explore_temperature)
    random = settings.explore_random
    explore = jnp.log((1 - random) * explore + random / explore.shape[-1])
    return jax.random.categorical(key, jnp.where(lanes.explores[:, None], explore, execute), axis=-1)
