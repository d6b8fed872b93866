"""Policy gradients, the paper's kind of learner: a step teaches its own policy about its own subgoal, and nothing else.

The paper names no algorithm; its predecessor used an actor and a critic. This is proximal policy optimisation (Schulman
et al. 2017) of the same two. With one pass over a rollout it is the advantage actor-critic; more passes learn faster.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Shaped

from saplan.methods.policy import Policy, exploration_preference
from saplan.methods.targets import Rollout, TimeLanes, ValuedRollout, taken
from saplan.rl.returns import lambda_returns, masked_mean
from saplan.rl.settings import ExploringSettings, Settings

CLIP = 0.2
"""How far the probability of an action may move from that of the rollout before its gradient stops."""
VALUE_WEIGHT = 0.5
"""Weight of the critic's loss."""


class JudgedSteps(eqx.Module):
    """Steps of a rollout with what came of them."""

    observation: Shaped[Array, "n slots"]
    rho: Float[Array, "n K"]
    subgoal: Float[Array, "n W"]
    explores: Bool[Array, "n"]
    action: Int[Array, "n"]
    log_probability: Float[Array, "n"]
    """Of the action, by the policy that took it."""
    advantage: Float[Array, "n"]
    """How much more the action brought than the critic expected, in standard deviations of its policy's steps."""
    outcome: Float[Array, "n"]
    """What the critic should have expected."""


def judged_steps(values: ValuedRollout, rollout: Rollout, reward: TimeLanes | None) -> JudgedSteps:
    """Advantages of all steps (generalised advantage estimation). An attempt that runs out of time is worth nothing."""
    steps, flat, policy, settings = values.trajectory, rollout.flat, values.policy, values.settings
    trunk = policy.trunk(flat.observation, flat.rho)
    log_probability, value = actor_and_critic(policy, settings, trunk, flat.subgoal, flat.explores)
    _, following = actor_and_critic(policy, settings, values.following, steps.subgoal, steps.explores)
    value = value.reshape(steps.action.shape)
    ended = steps.success | steps.failure | (steps.explores & steps.changed)
    gain, discount = steps.success.astype(jnp.float32), jnp.where(ended, 0.0, settings.discount)
    if isinstance(settings, ExploringSettings) and reward is not None:
        gain = jnp.where(steps.explores, reward, gain)
        ends = steps.game_over if settings.credit_to_game else ended
        discount = jnp.where(steps.explores, jnp.where(ends, 0.0, settings.explore_discount), discount)
    # The horizon of a game cuts exploring attempts off: what would have come of them is what the critic expects.
    cut = steps.game_over & ~ended
    gain, discount = jnp.where(cut, value, gain), jnp.where(cut | steps.lost, 0.0, discount)
    outcome = lambda_returns(gain, discount, following, jnp.full(gain.shape, settings.trace))
    advantage = (outcome - value).reshape(-1)
    scaled = jnp.where(flat.explores, standardised(advantage, flat.explores), standardised(advantage, ~flat.explores))
    taken_probability = taken(log_probability, flat.action)
    return JudgedSteps(
        flat.observation, flat.rho, flat.subgoal, flat.explores, flat.action, taken_probability, scaled,
        outcome.reshape(-1),
    )  # fmt: skip


def actor_and_critic(
    policy: Policy,
    settings: Settings,
    trunk: Float[Array, "... features"],
    subgoal: Float[Array, "... W"],
    explores: Bool[Array, "..."],
) -> tuple[Float[Array, "... actions"], Float[Array, "..."]]:
    """Log-probabilities of all actions and the critic's value, by the policy that plays each step."""
    logits = jax.nn.log_softmax(policy.execution(trunk, subgoal) / settings.temperature)
    value = policy.execution_value(trunk, subgoal)
    if isinstance(settings, ExploringSettings):
        logits = jnp.where(explores[..., None], exploration_preference(policy, settings, trunk), logits)
        value = jnp.where(explores, policy.exploration_value(trunk), value)
    return logits, value


def standardised(x: Float[Array, "n"], mask: Bool[Array, "n"]) -> Float[Array, "n"]:
    """The masked entries, shifted and scaled to mean zero and variance one."""
    centred = x - masked_mean(x, mask)
    return centred / jnp.sqrt(masked_mean(centred**2, mask) + 1e-8)


def clipped_loss(policy: Policy, settings: Settings, batch: JudgedSteps) -> Float[Array, ""]:
    """Clipped surrogate of both policies, minus their entropy, plus the loss of both critics."""
    trunk = policy.trunk(batch.observation, batch.rho)
    logits, value = actor_and_critic(policy, settings, trunk, batch.subgoal, batch.explores)
    ratio = jnp.exp(taken(logits, batch.action) - batch.log_probability)
    gain = jnp.minimum(ratio * batch.advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * batch.advantage)
    entropy = -jnp.sum(jnp.exp(logits) * logits, axis=-1)
    each = -gain - settings.entropy * entropy + VALUE_WEIGHT * optax.huber_loss(value, batch.outcome)
    return jnp.mean(each)
