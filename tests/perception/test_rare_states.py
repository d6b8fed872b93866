"""Play that goes back to states with rare values."""

from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from saplan import Natural, Product, gym_world, jax_world, make_game
from saplan.envs import snapshots
from saplan.perception import rare_states
from saplan.perception.found_space import raw_space
from saplan.perception.rare_states import Lanes, RareStates
from saplan.perception.transitions import in_parts, play_freely


class Locks:
    """Eight locks in a row, each of which opens with an action of its own: on average three of them in 200 steps."""

    def reset_env(self, key: Any, params: Any) -> tuple[Any, Any]:
        return jnp.zeros(1), jnp.zeros(1)

    def step_env(self, key: Any, state: Any, action: Any, params: Any) -> tuple[Any, Any, float, bool, Any]:
        after = jnp.where(action == state[0], jnp.minimum(state + 1, 8), state)
        return after, after, 0.0, False, {}


def test_rare_changes_are_seen_more_often() -> None:
    world = jax_world(Locks(), raw_space("open"), lambda seen, state: state, [], 60)

    def changes(rare: bool) -> int:
        played = play_freely(world, 40_000, rare=rare)
        return int(((played.before != played.after) & (played.after >= 7)).sum())

    assert changes(True) >= 2 * changes(False)


def test_the_same_seed_plays_the_same_games() -> None:
    one, other = (play_freely(make_game("tiles"), 6_000, seed=3) for _ in range(2))
    assert all(np.array_equal(getattr(one, part), getattr(other, part)) for part in ("before", "after", "action"))


def lanes(*root: int, depth: int = 10) -> Lanes:
    return Lanes(np.array(root), np.full(len(root), depth))


def filled(rho: list[list[float]], origin: Lanes, alive: bool = True) -> RareStates[Any]:
    rare = RareStates[Any](0)
    values = np.array(rho, np.float32)
    rare.count(values)
    rare.keep(jnp.asarray(values) * 100, values, origin, np.full(len(rho), alive))
    return rare


def test_kept_states_belong_to_their_values() -> None:
    """Three times 0 and once 1: the rare one is continued, as the state that it was, and its origin goes with it."""
    rare = filled([[0], [0], [0], [1]], lanes(5, 6, 7, 8))
    states, origin = rare.begin(jnp.full((2, 1), -1.0), 2, np.array([5, 6, 7]))
    assert states.tolist() == [[100.0], [-1.0]]
    assert origin.root[0] == 8
    assert origin.depth.tolist() == [10, 0]


def test_a_game_is_continued_once_at_a_time() -> None:
    rare = filled([[0], [1], [1]], lanes(9, 9, 9))
    _, origin = rare.begin(jnp.zeros((8, 1)), 8, np.zeros(0, np.int64))
    assert (origin.depth > 0).sum() == 1
    _, origin = rare.begin(jnp.zeros((8, 1)), 8, np.array([9]))
    assert (origin.depth > 0).sum() == 0


@pytest.mark.parametrize(
    ("origin", "alive"), [(lanes(1, 2, depth=rare_states.DEEPEST + 1), True), (lanes(1, 2), False)]
)
def test_what_is_too_deep_or_over_is_not_kept(origin: Lanes, alive: bool) -> None:
    _, begun = filled([[0], [1]], origin, alive).begin(jnp.zeros((4, 1)), 4, np.zeros(0, np.int64))
    assert begun.depth.sum() == 0


def test_attributes_with_many_values_or_drift_have_no_rare_ones() -> None:
    rare = filled([[k, k % 2, 0] for k in range(40)], Lanes(np.arange(40), np.ones(40, int)))
    assert {place.attribute for place in rare.rarest()} == {1}
    rare.drifting = np.array([False, True, False])
    assert rare.rarest() == []


class Stairs(gymnasium.Env[Any, Any]):
    """A step up or down; the steps played are counted over all environments."""

    observation_space, action_space = gymnasium.spaces.MultiDiscrete([8]), gymnasium.spaces.Discrete(2)
    played = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.stage = 0
        return np.array([self.stage]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        Stairs.played += 1
        self.stage = min(max(self.stage + (1 if action else -1), 0), 7)
        return np.array([self.stage]), 0.0, False, False, {}


def test_games_on_the_host_are_not_replayed_at_every_step() -> None:
    """A host keeps one environment for each game: two lanes in one game would replay it in turn."""
    space = Product(("stage",), (Natural(),))
    world = gym_world(Stairs, space, lambda seen, info, env: (float(env.stage),), ["stage=1"], endless=True)
    played = play_freely(world, 12_800, lanes=16)
    assert set(played.before[:, 0].tolist()) == set(range(8))
    assert Stairs.played < 6 * len(played.before)


class Code(gymnasium.Env[Any, Any]):
    """Eight locks as above, whose state can be saved and set."""

    observation_space, action_space = gymnasium.spaces.MultiDiscrete([9]), gymnasium.spaces.Discrete(60)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.opened = 0
        return np.array([self.opened]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.opened = min(self.opened + int(action == self.opened), 8)
        return np.array([self.opened]), 0.0, False, False, {}

    def get_state(self) -> Any:
        return np.array([float(self.opened)])

    def set_state(self, state: Any) -> None:
        self.opened = int(state[0])


def test_a_host_that_keeps_snapshots_keeps_those_of_rare_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "KEPT", 64)
    space = Product(("opened",), (Natural(),))
    world = gym_world(Code, space, lambda seen, info, env: (float(env.opened),), ["opened=1"], endless=True)
    played = play_freely(world, 9_600, lanes=8)
    assert played.after.max() >= 6


def test_one_lane_begins_anew_every_time() -> None:
    rare = filled([[0], [1]], lanes(1, 2))
    for count, continued in ((1, 0), (2, 1), (3, 1), (5, 2)):
        _, origin = rare.begin(jnp.zeros((count, 1)), count, np.zeros(0, np.int64))
        assert (origin.depth > 0).sum() == continued


def test_parts_are_short_and_complete() -> None:
    parts = in_parts(np.array([0, 30, 250]), ["a", "b", "c"])
    assert parts == [(0, "a"), (30, "b"), (100, "c"), (100, None), (50, None)]
