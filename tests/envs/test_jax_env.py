"""JAX in: a functional environment, seen as numbers and as a picture, trained on end to end."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saplan
from saplan.algebra import Cyclic, Exogenous, Natural, Product
from saplan.envs.jax_env import JaxWorld, jax_world
from saplan.errors import InputError
from saplan.methods.structured.learner import Structured

SIDE = 8
SETTINGS = saplan.StructuredSettings(
    lanes=16, minibatches=4, hidden=32, attempt_steps=12, game_steps=40, capacity=8, edge_hidden=32, positives=256,
    outcomes=256, cells=1024,
)  # fmt: skip


class LampRow:
    """A row of four places; at the last a lamp can be switched. The hour goes round by itself."""

    def reset(self, key: Any, params: Any) -> Any:
        state = {"place": jax.random.randint(key, (), 0, 4), "lamp": jnp.int32(0), "hour": jnp.int32(0)}
        return self.see(state), state

    def step(self, key: Any, state: Any, action: Any, params: Any) -> Any:
        place = jnp.clip(state["place"] + jnp.array([-1, 1, 0])[action], 0, 3)
        lamp = (state["lamp"] + ((action == 2) & (place == 3))) % params
        state = {"place": place, "lamp": lamp, "hour": (state["hour"] + 1) % 12}
        return self.see(state), state, 0.0, jnp.bool_(False), {}

    def see(self, state: Any) -> Any:
        return jax.nn.one_hot(state["place"], 4)


class Painted(LampRow):
    """The same as a picture."""

    def see(self, state: Any) -> Any:
        return jnp.zeros((SIDE, SIDE, 1), jnp.uint8).at[2, 2 * state["place"]].set(255)


SPACE = Product.of(lamp=Cyclic(3), hour=Exogenous(Cyclic(12)))


def attributes(seen: Any, state: Any) -> Any:
    return jnp.stack([state["lamp"], state["hour"]]).astype(jnp.float32)


def world_of(env: Any) -> JaxWorld:
    return jax_world(env, SPACE, attributes, ["lamp=1", "lamp=2"], ("left", "right", "switch"), params=3)


def test_training_end_to_end() -> None:
    world = world_of(Painted())
    agent: Any = saplan.train(world, 12_000, 0, SETTINGS, eval_points=0)
    assert int(agent.memory.size) == 1, "the hour is no change of anything"
    assert saplan.evaluate(agent, 40, budget=30).success.mean() > 0.9
    state = world.reset(jax.random.key(0))
    plan = agent.plan(state, "lamp=2")
    assert len(plan.transitions) == 2


def test_places_are_known_again_by_attributes() -> None:
    """What is seen tells the place and the time here, and so never recurs; the lamp alone does."""

    class Timed(LampRow):
        def see(self, state: Any) -> Any:
            return jnp.stack([state["place"], state["hour"]])

    arguments = SPACE, attributes, ["lamp=1"], ("left", "right", "switch")
    anywhere, at_lamp = (jax_world(Timed(), *arguments, params=3, places=names) for names in ((), ("lamp",)))
    before = anywhere.reset(jax.random.key(0))
    after = anywhere.step(jax.random.key(1), before, jnp.int32(0))
    assert not bool(jnp.array_equal(anywhere.place(before), anywhere.place(after)))
    assert at_lamp.place(before).tolist() == at_lamp.place(after).tolist() == [0.0]
    with pytest.raises(InputError, match="'wall' is not an attribute"):
        jax_world(Timed(), *arguments, params=3, places=["wall"])
    with pytest.raises(InputError, match="must be a count or a quantity"):
        jax_world(Timed(), *arguments, params=3, vital=["hour"])


class Mortal(LampRow):
    """The same with a pit before the lamp, which kills the agent."""

    def step(self, key: Any, state: Any, action: Any, params: Any) -> Any:
        seen, state, reward, _, info = super().step(key, state, action, params)
        return seen, state, reward, state["place"] == 2, info


def test_the_dead_are_given_up() -> None:
    world = jax_world(Mortal(), SPACE, attributes, ["lamp=1"], ("left", "right", "switch"), params=3)
    agent: Any = saplan.train(world_of(LampRow()), 6_000, 0, SETTINGS, eval_points=0)
    agent = replace(agent, game=world)
    states, goals = saplan.task_set(world, 8, 0)
    executor = agent.executor(states, goals, saplan.PlannerSettings())
    moves = list(executor.moves(200, 0))
    before = np.asarray(states.env["place"]) < 2
    assert before.any()
    assert executor.lost[before].all(), "it was taught where there is no pit"
    assert (executor.lost | executor.done).all()
    assert {a.task for a in executor.result.attempts} >= set(np.flatnonzero(before).tolist()), "a death ends an attempt"
    assert len(moves) < 200
    assert set(executor.result.steps[executor.lost].tolist()) == {200}


def test_actions_by_their_numbers_and_pictures() -> None:
    def draw(state: Any) -> Any:
        return jnp.full((2, 2, 3), 300.0 * state["place"])

    world = jax_world(LampRow(), SPACE, attributes, ["lamp=1"], {"right": 1, "switch": 2}, params=3, draw=draw)
    state = world.reset(jax.random.key(0))
    for _ in range(4):
        state = world.step(jax.random.key(1), state, jnp.int32(0))
    assert int(state.env["place"]) == 3
    assert world.actions == ("right", "switch")
    assert world.frame(state).tolist() == np.full((2, 2, 3), 255).tolist()
    with pytest.raises(InputError, match="no picture"):
        world_of(LampRow()).frame(state)


def test_the_other_methods_refuse_what_changes_by_itself() -> None:
    with pytest.raises(InputError, match="hour changes by itself"):
        saplan.train(world_of(LampRow()), 20_000, method="unstructured", eval_points=0)


def test_nobody_plans_for_the_hour() -> None:
    with pytest.raises(InputError, match="'hour' changes by itself"):
        saplan.parse_goal(SPACE, "lamp=1 hour=3")


def test_numbers_reach_the_network_as_they_are() -> None:
    world = world_of(LampRow())
    seen = world.observe(world.reset(jax.random.key(1)))
    assert (world.picture, world.slots, world.vocabulary, seen.dtype) == (None, 4, 0, jnp.float32)
    policy = (
        Structured().begin(world, saplan.StructuredSettings(lanes=4, minibatches=2, hidden=8), jax.random.key(0)).policy
    )
    sights, rho = jnp.eye(4), jnp.zeros((4, 2))
    assert len(np.unique(np.asarray(policy.trunk(sights, rho)), axis=0)) == 4


def test_pixels_reach_the_network_as_they_are() -> None:
    world = world_of(Painted())
    assert world.picture == (SIDE, SIDE, 1)
    seen = world.observe(world.reset(jax.random.key(1)))
    assert seen.dtype == jnp.uint8
    assert int(np.asarray(seen).sum()) == 255


def test_what_cannot_be_a_world() -> None:
    with pytest.raises(InputError, match="attributes must be 2 numbers"):
        jax_world(LampRow(), SPACE, lambda seen, state: jnp.zeros(3), [], 3, params=3)
    with pytest.raises(InputError, match="lie outside"):
        jax_world(LampRow(), Product.of(x=Natural()), lambda seen, state: -jnp.ones(1), [], 3, params=3)
