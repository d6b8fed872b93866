"""Opponents for the training benchmarks, written to be fast.

- PPO in the style of PureJaxRL on XLand-MiniGrid: environment, rollout and learning in one compiled program.
- PPO of Stable-Baselines3 on Farama MiniGrid: environments in Python, learning in PyTorch.
- The machine itself: floating-point operations per second of a large matrix product.
"""

import importlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

WORLD = "MiniGrid-DoorKey-8x8"
Params = dict[str, list[tuple[Array, Array]]]
"""Layers (weights, bias) of the trunks `actor` and `critic` and of their heads."""


@dataclass(frozen=True)
class PpoRules:
    """Constants of PPO; the defaults are PureJaxRL's where it has one."""

    lanes: int = 1024
    steps: int = 128
    """Steps per lane between two updates."""
    epochs: int = 4
    minibatches: int = 4
    units: int = 128
    """Width of both hidden layers."""
    rate: float = 1e-3
    discount: float = 0.99
    trace: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    value: float = 0.5
    """Weight of the critic's loss."""
    norm: float = 0.5
    """Largest gradient norm."""
    scale: float = 12.0
    """Divisor of observations; codes of tiles and colours lie in 0..12."""


class Batch(NamedTuple):
    """A rollout for the learner: arrays over (steps, lanes) or over a minibatch."""

    observation: Array
    action: Array
    log_prob: Array
    value: Array
    advantage: Array


class Training(NamedTuple):
    """State between two updates."""

    params: Params
    moments: Any
    timestep: Any
    key: PRNGKeyArray


class Update(NamedTuple):
    """Report of an update."""

    reward: Array
    """Mean reward of a finished game."""
    loss: Array


def xminigrid_trainer(
    rules: PpoRules, world: str = WORLD
) -> tuple[Training, Callable[[Training], tuple[Training, Update]]]:
    """The start of a training and its compiled update: a rollout of all lanes, then all epochs on it."""
    xminigrid = importlib.import_module("xminigrid")
    env, env_params = xminigrid.make(world)
    env = importlib.import_module("xminigrid.wrappers").GymAutoResetWrapper(env)
    actions = env.num_actions(env_params)
    optimiser = optax.chain(optax.clip_by_global_norm(rules.norm), optax.adam(rules.rate, eps=1e-5))

    def update(training: Training) -> tuple[Training, Update]:
        key, rollout_key, learning_key = jax.random.split(training.key, 3)
        step = jax.vmap(lambda timestep, action: env.step(env_params, timestep, action))
        timestep, batch, reward = roll_out(rules, step, training.params, training.timestep, rollout_key)
        params, moments, loss = learn(rules, optimiser, training.params, training.moments, batch, learning_key)
        return Training(params, moments, timestep, key), Update(reward, loss)

    key, params_key, reset_key = jax.random.split(jax.random.key(0), 3)
    inputs = math.prod(env.observation_shape(env_params))
    params = init_params(rules, params_key, inputs, actions)
    raw_keys = jax.random.key_data(jax.random.split(reset_key, rules.lanes))
    timestep = jax.jit(jax.vmap(lambda key: env.reset(env_params, key)))(raw_keys)
    return Training(params, optimiser.init(params), timestep, key), jax.jit(update, donate_argnums=0)


def init_params(rules: PpoRules, key: PRNGKeyArray, inputs: int, actions: int) -> Params:
    """Orthogonal layers: hidden ones with gain √2, a small actor's head so that it starts almost uniform."""
    keys = iter(jax.random.split(key, 6))

    def layer(size: int, width: int, gain: float) -> tuple[Array, Array]:
        return jax.nn.initializers.orthogonal(gain)(next(keys), (size, width)), jnp.zeros(width)

    def trunk() -> list[tuple[Array, Array]]:
        return [layer(inputs, rules.units, math.sqrt(2)), layer(rules.units, rules.units, math.sqrt(2))]

    actor, heads = trunk(), [layer(rules.units, actions, 0.01), layer(rules.units, 1, 1.0)]
    return {"actor": actor, "heads": heads, "critic": trunk()}


def act_and_judge(
    rules: PpoRules, params: Params, observation: Array
) -> tuple[Float[Array, "n actions"], Float[Array, "n"]]:
    """Log-probabilities of the actions, and the value, for a batch of raw observations."""
    flat = observation.reshape(observation.shape[0], -1).astype(jnp.float32) / rules.scale
    hidden = run_trunk(params["actor"], flat)
    judged = run_trunk(params["critic"], flat)
    (act_weights, act_bias), (judge_weights, judge_bias) = params["heads"]
    return jax.nn.log_softmax(hidden @ act_weights + act_bias), (judged @ judge_weights + judge_bias)[:, 0]


def run_trunk(layers: list[tuple[Array, Array]], x: Array) -> Array:
    """The hidden layers."""
    for weights, bias in layers:
        x = jnp.tanh(x @ weights + bias)
    return x


def roll_out(
    rules: PpoRules, step: Callable[[Any, Array], Any], params: Params, timestep: Any, key: PRNGKeyArray
) -> tuple[Any, Batch, Array]:
    """Plays `steps` steps in all lanes and estimates the advantages."""

    def advance(timestep: Any, key: PRNGKeyArray) -> tuple[Any, tuple[Any, ...]]:
        seen = timestep.observation
        log_probs, value = act_and_judge(rules, params, seen)
        action = jax.random.categorical(key, log_probs)
        timestep = step(timestep, action)
        return timestep, (seen, action, picked(log_probs, action), value, timestep.reward, timestep.last())

    timestep, record = jax.lax.scan(advance, timestep, jax.random.split(key, rules.steps))
    seen, action, log_prob, value, reward, ended = record
    last_value = act_and_judge(rules, params, timestep.observation)[1]
    advantage = advantages(rules, reward, ended, value, last_value)
    return timestep, Batch(seen, action, log_prob, value, advantage), jnp.sum(reward) / jnp.maximum(jnp.sum(ended), 1)


def picked(log_probs: Float[Array, "n actions"], action: Int[Array, "n"]) -> Float[Array, "n"]:
    """The log-probability of the action taken."""
    return jnp.take_along_axis(log_probs, action[:, None], axis=1)[:, 0]


def advantages(
    rules: PpoRules, reward: Array, ended: Array, value: Array, last_value: Array
) -> Float[Array, "steps lanes"]:
    """Generalised advantage estimation (Schulman et al., 2016, eq. 16), backwards in time."""
    next_value = jnp.concatenate([value[1:], last_value[None]])
    goes_on = 1.0 - ended.astype(jnp.float32)
    surprise = reward + rules.discount * goes_on * next_value - value

    def back(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        estimate = now[0] + rules.discount * rules.trace * now[1] * later
        return estimate, estimate

    return jax.lax.scan(back, jnp.zeros_like(last_value), (surprise, goes_on), reverse=True)[1]


def learn(
    rules: PpoRules,
    optimiser: optax.GradientTransformation,
    params: Params,
    moments: Any,
    batch: Batch,
    key: PRNGKeyArray,
) -> tuple[Params, Any, Array]:
    """All epochs over one rollout, shuffled in each."""
    size = rules.steps * rules.lanes
    flat = jax.tree.map(lambda x: x.reshape(size, *x.shape[2:]), batch)

    def one_minibatch(carry: Any, minibatch: Batch) -> tuple[Any, Array]:
        params, moments = carry
        loss, gradient = jax.value_and_grad(ppo_loss)(params, rules, minibatch)
        changes, moments = optimiser.update(gradient, moments, params)
        return (optax.apply_updates(params, changes), moments), loss

    def one_epoch(carry: Any, key: PRNGKeyArray) -> tuple[Any, Array]:
        if rules.minibatches == 1:  # then the order does not matter
            carry, loss = one_minibatch(carry, flat)
            return carry, loss
        order = jnp.argsort(jax.random.bits(key, (size,)))  # half the cost of `permutation`, which sorts twice
        shuffled = jax.tree.map(lambda x: x[order].reshape(rules.minibatches, -1, *x.shape[1:]), flat)
        carry, losses = jax.lax.scan(one_minibatch, carry, shuffled)
        return carry, jnp.mean(losses)

    (params, moments), losses = jax.lax.scan(one_epoch, (params, moments), jax.random.split(key, rules.epochs))
    return params, moments, jnp.mean(losses)


def ppo_loss(params: Params, rules: PpoRules, batch: Batch) -> Array:
    """The clipped objective with its value loss and entropy bonus (Schulman et al., 2017, eq. 9)."""
    log_probs, value = act_and_judge(rules, params, batch.observation)
    ratio = jnp.exp(picked(log_probs, batch.action) - batch.log_prob)
    advantage = (batch.advantage - jnp.mean(batch.advantage)) / (jnp.std(batch.advantage) + 1e-8)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - rules.clip, 1 + rules.clip) * advantage)
    target = batch.advantage + batch.value
    near = batch.value + jnp.clip(value - batch.value, -rules.clip, rules.clip)
    error = jnp.maximum((value - target) ** 2, (near - target) ** 2)
    entropy = -jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1)
    return jnp.mean(0.5 * rules.value * error - gain - rules.entropy * entropy)


def train_sb3(default: bool, steps: int, threads: int) -> float:
    """Steps per second of PPO of Stable-Baselines3, with this many threads for PyTorch.

    `default` keeps its settings (one environment, 10 epochs of minibatches of 64); otherwise it learns like the PPO in
    JAX, 4 epochs of 4 minibatches, on 16 environments in one process.
    """
    gymnasium, wrappers = importlib.import_module("gymnasium"), importlib.import_module("minigrid.wrappers")
    sb3, torch = importlib.import_module("stable_baselines3"), importlib.import_module("torch")
    vectors = importlib.import_module("stable_baselines3.common.vec_env")
    torch.set_num_threads(threads)

    def make() -> Any:
        env = gymnasium.make(f"{WORLD}-v0", disable_env_checker=True)
        return gymnasium.wrappers.FlattenObservation(wrappers.ImgObsWrapper(env))

    envs = 1 if default else 16
    settings: dict[str, Any] = {} if default else {"n_steps": 2048 // envs, "batch_size": 2048 // 4, "n_epochs": 4}
    world = vectors.DummyVecEnv([make] * envs)
    agent = sb3.PPO("MlpPolicy", world, policy_kwargs={"net_arch": [128, 128]}, device="cpu", seed=0, **settings)
    begin = time.perf_counter()
    agent.learn(steps)
    rate = agent.num_timesteps / (time.perf_counter() - begin)
    world.close()
    return float(rate)


def matmul_limit(size: int = 2048, seconds: float = 2.0) -> float:
    """Floating-point operations per second of a float32 matrix product in JAX, in the best turn."""
    multiply = jax.jit(jnp.matmul)
    left, right = jax.random.normal(jax.random.key(0), (2, size, size))
    multiply(left, right).block_until_ready()
    fastest, end = math.inf, time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        multiply(left, right).block_until_ready()
        fastest = min(fastest, time.perf_counter() - begin)
    return 2 * size**3 / fastest


def ppo_flops(rules: PpoRules, inputs: int = 98, actions: int = 6) -> float:
    """Floating-point operations per step in the matrix products: one forward pass to act, three per epoch to learn."""
    forward = 2 * (2 * (inputs * rules.units + rules.units**2) + rules.units * (actions + 1))
    # The gradient with respect to the observation is not needed.
    backward = 2 * forward - 4 * inputs * rules.units
    return forward + rules.epochs * (forward + backward)


JAX_VARIANTS = {
    "PPO in JAX on xminigrid, 4 epochs × 4 minibatches": PpoRules(),
    "PPO in JAX on xminigrid, 1 × 1": PpoRules(epochs=1, minibatches=1),
}
