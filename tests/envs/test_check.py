"""`saplan check`: one world for every kind of mistake, and a sound world without findings."""

from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.envs.classic_control import MountainCarEnv

from saplan.algebra import Block, Cyclic, Exogenous, Integer, Natural, Product, Real
from saplan.cli import main
from saplan.envs.check import REPLAYED, check_world
from saplan.envs.gymnasium_env import GymWorld, gym_world
from saplan.envs.jax_env import JaxWorld, jax_world


class Toy:
    """A number that an action moves, by a rule that tests replace."""

    def __init__(self, rule: Any, ends: int = 10**6) -> None:
        self.rule, self.ends = rule, ends

    def reset_env(self, key: Any, params: Any) -> Any:
        state = {"x": jnp.float32(0), "hidden": jax.random.bernoulli(key), "t": jnp.int32(0)}
        return jnp.stack([state["x"], 0.0]), state

    def step_env(self, key: Any, state: Any, action: Any, params: Any) -> Any:
        x = jnp.float32(self.rule(state["x"], action, state, key))
        state = {"x": x, "hidden": state["hidden"], "t": state["t"] + 1}
        return jnp.stack([x, 0.0]), state, 0.0, state["t"] >= self.ends, {}


def world(block: Block, rule: Any, ends: int = 10**6) -> JaxWorld:
    return jax_world(Toy(rule, ends), Product.of(x=block), lambda seen, state: state["x"][None], ["x=1"][:0], 3)


def up_and_down(x: Any, action: Any, state: Any, key: Any) -> Any:
    return jnp.clip(x + jnp.array([1, -1, 0])[action], 0, 4)


def complaints(block: Block, rule: Any, ends: int = 10**6) -> list[str]:
    return [finding.text for finding in check_world(world(block, rule, ends), 200, 16) if finding.wrong]


def test_a_sound_world() -> None:
    assert complaints(Natural(), up_and_down) == []


def test_values_outside_the_space() -> None:
    (text,) = complaints(Natural(), lambda x, a, s, k: x + jnp.array([1, -1, 0])[a])
    assert "is not in ℕ" in text
    assert "x: " in text
    (text, *_) = complaints(Integer(), lambda x, a, s, k: jnp.where(a == 0, jnp.nan, x))
    assert "nan is not in ℤ" in text


def test_a_count_that_is_a_cycle_and_a_cycle_that_is_a_count() -> None:
    (text,) = complaints(Natural(), lambda x, a, s, k: jnp.where(a == 0, (x + 1) % 4, x))
    assert "Cyclic(4)" in text
    (text,) = complaints(Cyclic(5), up_and_down)
    assert "a count, not a cycle" in text
    assert complaints(Cyclic(4), lambda x, a, s, k: jnp.where(a == 0, (x + 1) % 4, x)) == []


def test_quantities_and_counts() -> None:
    (text,) = complaints(Integer(), lambda x, a, s, k: jnp.where(a == 0, jax.random.randint(k, (), -50, 50), x))
    assert "different amounts" in text
    (text,) = complaints(Real(0.5), up_and_down)
    assert "all values were integers" in text


def test_what_no_action_causes() -> None:
    def hunger(x: Any, action: Any, state: Any, key: Any) -> Any:
        return jnp.clip(x + (state["t"] % 3 == 0), 0, 1000)

    texts = complaints(Natural(), hunger)
    assert any("changed under every action" in text and "Exogenous" in text for text in texts)
    (text,) = complaints(Exogenous(Natural()), hunger)
    assert "no change is left to plan with" in text, "a single attribute that changes by itself is not enough"


def test_a_hidden_precondition() -> None:
    def lever(x: Any, action: Any, state: Any, key: Any) -> Any:
        return jnp.where((action == 0) & state["hidden"] & (x < 1), x + 1, jnp.where(action == 1, x * 0, x))

    (text,) = complaints(Natural(), lever)
    assert "a variable outside the attributes decides" in text
    assert "x +1 at x=0" in text


def test_short_episodes() -> None:
    (text,) = complaints(Natural(), up_and_down, ends=4)
    assert "end after 4 steps" in text


SCRIPT = """
from tests.envs.test_check import Natural, up_and_down, world as toy
sound = toy(Natural(), up_and_down)
def wrong(): return toy(Natural(), lambda x, a, s, k: x + (a - 1.0))
"""


@pytest.mark.parametrize(
    ("place", "code", "said"),
    [
        ("my_world.py", 0, "no problems found"),
        ("my_world.py:wrong", 1, "is not in ℕ"),
        ("my_world.py:nowhere", 2, "does not define 'nowhere'"),
        ("no_world.py", 2, "is not a Python file"),
        ("broken.py", 2, "cannot be run"),
        ("empty.py", 2, "defines no world"),
    ],
)
def test_the_command(
    place: str, code: int, said: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_world.py").write_text(SCRIPT)
    Path("broken.py").write_text("import nothing_of_that_name")
    Path("empty.py").write_text("x = 1")
    try:
        ended = main(["check", place, "--steps", "200", "--lanes", "16"])
    except SystemExit as stop:
        ended = int(stop.code or 0)
    assert ended == code
    captured = capsys.readouterr()
    assert said in captured.out + captured.err


def test_a_world_in_which_everything_changes_by_itself() -> None:
    (text,) = complaints(Integer(), lambda x, a, s, k: x + 1)
    assert "this world does not fit" in text
    (text,) = complaints(Exogenous(Integer()), lambda x, a, s, k: x + 1)
    assert "no change is left to plan with" in text


def test_random_moves() -> None:
    def slippery(x: Any, action: Any, state: Any, key: Any) -> Any:
        return jnp.clip(x + jnp.where(jax.random.bernoulli(key, 0.7), 1, -1) * jnp.array([1, -1, 0])[action], 0, 4)

    said = [finding.text for finding in check_world(world(Natural(), slippery), 200, 16)]
    assert any("moves are random" in text and "random_moves=True" in text for text in said)
    said = [finding.text for finding in check_world(world(Natural(), up_and_down), 200, 16)]
    assert not any("moves are random" in text for text in said)


def test_mountain_car_does_not_fit() -> None:
    made = gym_world(
        MountainCarEnv, Product.of(position=Real(0.1), velocity=Real(0.01)),
        lambda seen, info, env: tuple(map(float, seen)), ["position=0.5"], name="MountainCar",
    )  # fmt: skip
    said = [finding.text for finding in check_world(made, 60, 4) if finding.wrong]
    assert any("this world does not fit: position, velocity change by themselves" in text for text in said)
    assert not any("Exogenous(...)" in text for text in said)


class Workshop(gymnasium.Env):
    """As many recipes as a large crafting game has, each for one of many goods; a clock runs by itself."""

    goods, recipes = 58, 201
    taken = 0
    """Steps of all workshops."""

    observation_space = gymnasium.spaces.Box(0, 2**20, (goods + 1,), np.float32)
    action_space = gymnasium.spaces.Discrete(recipes)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.store = np.zeros(self.goods + 1, np.float32)
        return self.store.copy(), {}

    def step(self, action):
        Workshop.taken += 1
        good = int(action) % self.goods
        if good == 0 or self.store[good - 1] > 0 or good % 7 == 0:
            self.store[good] += 1
        self.store[-1] += 1
        return self.store.copy(), 0.0, False, False, {}


def workshop(clock) -> GymWorld:
    space = Product.of(**{f"good{k}": Natural() for k in range(Workshop.goods)}, clock=clock)
    return gym_world(Workshop, space, lambda seen, info, env: seen, ["good0=1"])


@pytest.mark.parametrize("marked", [True, False])
def test_many_actions_and_attributes_are_checked_with_few_steps(marked: bool) -> None:
    world = workshop(Exogenous(Natural()) if marked else Natural())
    Workshop.taken = 0
    found = check_world(world, steps=30, lanes=2)
    played = 30 * 2 + 2 * 20 * REPLAYED
    wrong = [finding.text for finding in found if finding.wrong]
    if marked:
        assert wrong == []
        assert Workshop.taken < 10 * played, "going back means replaying, but few actions are tried"
    else:
        assert any("clock: changed under every action" in text for text in wrong)


def test_frozen_lake_moves_at_random() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    made = gym_world(
        lambda: gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=True),
        Product.of(row=Natural(), column=Natural()),
        lambda seen, info, env: (int(seen) // 4, int(seen) % 4), ["row=3 column=3"], name="FrozenLake",
    )  # fmt: skip
    said = [finding.text for finding in check_world(made, 60, 32)]
    assert any("moves are random" in text and "random_moves=True" in text for text in said)
