"""The check of the protocol: it passes games of all kinds, and names the first promise that a game breaks."""

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from saplan.algebra import Natural, Product
from saplan.envs.gymnasium_env import gym_world
from saplan.envs.jax_env import jax_world
from saplan.errors import InputError
from saplan.games import Switches
from saplan.games.contract import check_game
from saplan.games.game import Game
from saplan.goals import Goal
from saplan.methods.ablations import Ablated
from tests.methods.probe import Corridor

SPACE = Product.of(count=Natural())


class Counter(gymnasium.Env[Any, Any]):
    """Counts up to 5."""

    observation_space = spaces.Box(0, 9, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = int(self.np_random.integers(3))
        return np.array([self.count], np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += int(action)
        return np.array([self.count], np.float32), 0.0, self.count >= 5, False, {}


class Broken(Counter):
    """Fails at every step."""

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        raise RuntimeError("the door is jammed\nand more")


class Functional:
    """The counter in the manner of gymnax."""

    def reset(self, key: Any, params: Any) -> Any:
        count = jax.random.randint(key, (), 0, 3)
        return count.astype(jnp.float32)[None], count

    def step(self, key: Any, state: Any, action: Any, params: Any) -> Any:
        count = state + action
        return count.astype(jnp.float32)[None], count, 0.0, count >= 5, {}


def read(observation: Any, info: Any, env: Any) -> tuple[int]:
    return (env.count,)


GOOD = {
    "corridor": Corridor(),
    "wrapped": Ablated(Switches(), "raw"),
    "gymnasium": gym_world(Counter, SPACE, read, ["count=3"]),
    "jax": jax_world(Functional(), SPACE, lambda seen, state: state[None], ["count=3"], 2),
}


@pytest.mark.parametrize("game", GOOD.values(), ids=GOOD.keys())
def test_games_of_all_kinds_pass(game: Game[Any]) -> None:
    check_game(game)
    check_game(game, seed=1)


def broken(**members: Any) -> Game[Any]:
    game: Game[Any] = type("BrokenCorridor", (Corridor,), members)()
    return game


def with_count(change: Any) -> Any:
    """`attributes` whose count is changed."""
    return lambda self, state: jnp.stack([change(state.count), state.lamp]).astype(jnp.float32)


def other_state(self: Any, key: Any, state: Any, action: Any) -> Any:
    return jax.tree.map(lambda x: x.astype(jnp.int32), state)


def other_weakness(self: Any, key: Any, state: Any, action: Any) -> Any:
    return jax.tree.map(lambda x: jnp.where(action == 0, 1, 0), state)


def goal_of(low: float, high: float) -> Any:
    return lambda self, key: (self.reset(key), Goal(jnp.full(2, low), jnp.full(2, high)))


def jammed(self: Any, key: Any) -> Any:
    raise ZeroDivisionError("no map\nfits")


RNG = np.random.default_rng(0)
BAD = {
    "actions must be distinct texts": broken(actions=("left", "left")),
    'credit must be "attempt" or "game"': broken(credit="never"),
    "picture must have as many pixels as there are slots": broken(picture=(2, 2, 1)),
    "vital must name attributes of the space": broken(vital=("health",)),
    "alphas must be two numbers from 0 up": broken(alphas=(1.0, float("nan"))),
    "tolerance must be a number from 0 up": broken(tolerance=-1.0),
    "name must be a text": broken(name=""),
    "described, as JSON, failed": broken(described=lambda self: {"game": "corridor", "rules": object()}),
    "described must give the name": broken(described=lambda self: {"rules": {}}),
    "admissible must give pairs": broken(admissible=lambda self: (("up", (1.0,)),)),
    "reset failed: ZeroDivisionError: no map": broken(reset=jammed),
    "step must return a state": broken(step=other_state),
    "tasks must return a state": broken(tasks=lambda self, key: (jnp.zeros(3), Goal(jnp.zeros(2), jnp.zeros(2)))),
    "anywhere must return a state": broken(anywhere=lambda self, key: jnp.zeros(3)),
    "goals must have bounds of 2": broken(tasks=lambda self, key: (self.reset(key), Goal(jnp.zeros(3), jnp.zeros(3)))),
    "observe must return int16[2], got int32[2]": broken(observe=lambda self, state: jnp.zeros(2, jnp.int32)),
    "attributes must return float32[2], got float32[1]": broken(attributes=lambda self, state: jnp.zeros(1)),
    "over must return bool[], got int32[]": broken(over=lambda self, state: jnp.int32(0)),
    "place must return an array with one axis": broken(place=lambda self, state: state.lamp),
    "goal_at failed: InputError: the goals of corridor have no distances": broken(farthest_goal=3),
    "attributes must be a pure function": broken(attributes=with_count(lambda n: n + RNG.integers(1 << 20))),
    "attributes gives another result under jax.jit": broken(
        attributes=with_count(lambda n: n + isinstance(n, jax.core.Tracer))
    ),
    "must have low <= high": broken(tasks=goal_of(2.0, 1.0)),
    "must ask for some attribute": broken(tasks=goal_of(-jnp.inf, jnp.inf)),
    "lie outside count∈ℕ × lamp∈ℤ/2": broken(attributes=with_count(lambda n: n - 1)),
    "words must lie in 0..4": broken(observe=lambda self, state: 1 + jnp.int16([1, 2]) * (2 + state.place)),
    "changed in a game that is over": broken(over=lambda self, state: jnp.bool_(True)),
    "changed by lamp +1 mod 2, which is not admissible": broken(admissible=lambda self: (("up", (1.0, 0.0)),)),
    "feasible must lie in (0, 1]": broken(feasible=lambda self, rho, delta: jnp.float32(0)),
}


@pytest.mark.parametrize(("complaint", "game"), BAD.items(), ids=BAD.keys())
def test_a_broken_promise_is_named_in_one_line(complaint: str, game: Game[Any]) -> None:
    with pytest.raises(InputError) as error:
        check_game(game)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_types_that_a_scan_refuses_are_found() -> None:
    with pytest.raises(InputError, match="step must return a state"):
        check_game(broken(step=other_weakness))


def test_a_game_must_be_hashable() -> None:
    with pytest.raises(InputError, match="corridor: hash, which a frozen dataclass has, failed: TypeError"):
        check_game(broken(__hash__=None))


def test_an_error_outside_of_jax_is_named() -> None:
    with pytest.raises(InputError, match=r"step failed: RuntimeError: the door is jammed$"):
        check_game(gym_world(Broken, SPACE, read, ["count=3"]))
