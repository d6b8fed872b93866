"""Random moves in a probe world where the best policy is known: a gambler between a pit and a goal."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import saplan
from saplan.algebra import Natural, Product
from saplan.envs.jax_env import JaxWorld, jax_world
from saplan.methods.agent import DEFAULT_PLANNER
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.outcomes import OutcomeExecutor, chances_of
from saplan.planning.random_moves import ChanceGraph, Chances
from tests.reliability.tiny import SIZES

GOAL, START = 5, 2
FAIR, GOOD = 0.5, 0.7
BEST = (1 - (3 / 7) ** START) / (1 - (3 / 7) ** GOAL)
"""Probability of reaching the goal before the pit at 0, if every step leads up with probability 0.7."""
WORST = START / GOAL


class Gambler:
    """Two actions lead up or down by chance, `fair` and `good`; the game is lost at 0 and over at the goal."""

    def reset_env(self, key: Array, params: Any) -> Any:
        return jax.nn.one_hot(START, GOAL + 1), jnp.int32(START)

    def step_env(self, key: Array, place: Array, action: Array, params: Any) -> Any:
        up = jax.random.bernoulli(key, jnp.array([FAIR, GOOD])[action])
        place = jnp.clip(place + 2 * up - 1, 0, GOAL)
        return jax.nn.one_hot(place, GOAL + 1), place, 0.0, (place == 0) | (place == GOAL), {}


def gambler() -> JaxWorld:
    return jax_world(
        Gambler(), Product.of(place=Natural(bins=GOAL + 1)), lambda seen, place: place[None].astype(jnp.float32),
        [f"place={GOAL}"], ("fair", "good"), name="gambler",
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs") / "gambler"


@pytest.fixture(scope="module")
def agent(run: Path) -> StructuredAgent:
    sizes = {**SIZES, "lanes": 64, "rollout": 16}
    settings = replace(saplan.StructuredSettings(**sizes), random_moves=True)
    trained = saplan.train(gambler(), 30_000, 0, settings, run, eval_points=0)
    assert isinstance(trained, StructuredAgent)
    return trained


def test_the_chances_of_every_action_are_learnt(agent: StructuredAgent) -> None:
    ends, probability = chances_of(agent, np.array([[2.0], [3.0]], np.float32))
    expected = (probability[..., None] * ends).sum(axis=2)[..., 0]
    np.testing.assert_allclose(probability.sum(axis=-1), 1, atol=0.02)
    np.testing.assert_allclose(expected, [[2, 2.4], [3, 3.4]], atol=0.12)
    at_pit = chances_of(agent, np.zeros((1, 1), np.float32)).probability
    assert at_pit.sum() < 0.05, "nothing happens after the game is lost"


def test_nothing_leads_beyond_the_values_of_training(agent: StructuredAgent) -> None:
    """The last bin holds all values beyond it, and the detector may take a step beyond the end for feasible."""
    assert agent.outcomes is not None
    endless = replace(agent.outcomes, lost=jnp.zeros_like(agent.outcomes.lost))
    credulous = replace(agent, outcomes=endless, settings=replace(agent.settings, threshold=0.0))
    ends, probability = chances_of(credulous, np.array([[GOAL]], np.float32))
    assert agent.memory.delta.max() == 1, "a step up is known"
    assert ends[probability > 0].max() == GOAL


def test_success_is_the_best_possible(agent: StructuredAgent) -> None:
    assert isinstance(agent.executor(*saplan.task_set(agent.game, 2, 0)), OutcomeExecutor)
    success = saplan.evaluate(agent, 600).success.mean()
    assert BEST - 0.06 < success < BEST + 0.06
    assert success > WORST + 0.2
    plain = replace(DEFAULT_PLANNER, outcomes=1)
    assert not isinstance(agent.executor(*saplan.task_set(agent.game, 2, 0), plain), OutcomeExecutor)


def test_values_by_hand() -> None:
    def exact(rho: np.ndarray) -> Chances:
        ends = np.stack([rho - 1, rho + 1], axis=1)[:, None].repeat(2, axis=1)
        inside = ((rho > 0) & (rho < GOAL))[:, None].astype(np.float32)
        odds = np.array([[1 - FAIR, FAIR], [1 - GOOD, GOOD]], np.float32)
        return Chances(ends.astype(np.float32), odds * inside)

    graph = ChanceGraph(np.ones(1, np.float32), exact, 100, 1.0)
    low = high = np.array([GOAL], np.float32)
    (values,) = graph.action_values(np.array([[START]], np.float32), low, high)
    assert values.max() == pytest.approx(BEST, abs=1e-4)
    assert values.argmax() == 1
    (none,) = graph.action_values(np.array([[0]], np.float32), low, high)
    assert none.max() == 0


def test_an_agent_is_stored_with_its_outcomes(agent: StructuredAgent, run: Path) -> None:
    loaded = saplan.load(run, gambler())
    assert isinstance(loaded, StructuredAgent)
    assert agent.outcomes is not None
    assert loaded.outcomes is not None
    assert np.asarray(agent.outcomes.pooled).any()
    for ours, theirs in zip(jax.tree.leaves(agent.outcomes), jax.tree.leaves(loaded.outcomes), strict=True):
        np.testing.assert_array_equal(ours, theirs)
