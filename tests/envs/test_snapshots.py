"""Worlds that can save and set their state: one environment plays all episodes, in any order and in any process."""

import functools
import itertools
import os
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from saplan.algebra import Cyclic, Product
from saplan.envs import snapshots
from saplan.envs.gymnasium_env import GymWorld, gym_world
from saplan.envs.snapshots import SnapshotHost
from saplan.errors import InputError
from saplan.games.contract import check_game

SPACE = Product.of(left=Cyclic(2), right=Cyclic(2))
MADE = "SAPLAN_TEST_MADE"
"""Names a file that gets one character per environment that is made, in any process."""


class Corridor(gymnasium.Env[Any, Any]):
    """A way of 9 places with a button at each end, pressed by stepping onto it; a gust may carry the agent on."""

    render_mode = "rgb_array"

    def __init__(self, ends: int = 1000) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,))
        self.action_space = spaces.Discrete(3, start=1)
        self.ends = ends
        if MADE in os.environ:
            with Path(os.environ[MADE]).open("a") as file:
                file.write("x")

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.wind, self.clock = int(self.np_random.integers(3, 6)), int(self.np_random.integers(50)), 0
        self.buttons = np.zeros(2)
        return self.seen(), {}

    def seen(self) -> np.ndarray:
        return np.array([1000.0 + 10 * self.place, self.buttons[0]], np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.wind, self.clock = (7 * self.wind + 3) % 50, self.clock + 1
        before = self.place
        self.place = int(np.clip(self.place + action - 2 + (self.wind == 10), 0, 8))
        for k, end in enumerate((0, 8)):
            self.buttons[k] = (self.buttons[k] + (self.place == end != before)) % 2
        return self.seen(), 0.0, False, self.clock >= self.ends, {}

    def render(self) -> Any:
        return np.full((2, 2, 3), self.place, np.uint8)


class Saved(Corridor):
    """The same, and its state can be saved and set."""

    def get_state(self) -> np.ndarray:
        return np.array([self.place, self.wind, self.clock, *self.buttons], float)

    def set_state(self, state: np.ndarray) -> None:
        self.place, self.wind, self.clock = map(int, state[:3])
        self.buttons = state[3:].copy()


class Fragile(Saved):
    """Fails at the left end."""

    def step(self, action: int) -> Any:
        if self.place == 1 and action == 1:
            raise ZeroDivisionError("the wall")
        return super().step(action)


def pressed(observation: Any, info: dict[str, Any], env: Any) -> list[float]:
    return [float(button) for button in env.buttons]


def corridor(make: Any = Saved, **more: Any) -> GymWorld:
    return gym_world(make, SPACE, pressed, ["left=1"], name="corridor", **more)


def play(world: GymWorld, lanes: int, actions: list[int]) -> list[Any]:
    step = jax.jit(jax.vmap(world.step, in_axes=(None, 0, 0)))
    states = [jax.vmap(world.begin)(jnp.arange(lanes))]
    for k, action in enumerate(actions):
        states.append(step(jax.random.key(0), states[-1], (action + k * jnp.arange(lanes)) % 3))
    return states


def same(one: Any, other: Any) -> bool:
    return jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), one, other))


@pytest.mark.parametrize("processes", [0, 2])
def test_snapshots_and_replays_give_the_same_episodes(processes: int) -> None:
    saved, replayed = corridor(processes=processes), corridor(Corridor)
    assert isinstance(saved.host, SnapshotHost)
    assert not isinstance(replayed.host, SnapshotHost)
    actions = np.random.default_rng(0).integers(3, size=40).tolist()
    assert same(play(saved, 5, actions), play(replayed, 5, actions))


def test_the_contract_of_games_holds() -> None:
    check_game(corridor(hold=2))


def test_any_step_can_be_continued_in_two_ways() -> None:
    world = corridor()
    states = play(world, 3, [0, 0, 1, 2])
    step = jax.vmap(world.step, in_axes=(None, 0, None))
    again = [step(jax.random.key(0), states[2], jnp.int32(action)) for action in (0, 2, 0)]
    assert same(again[0], again[2])
    assert not same(again[0], again[1])


def test_32_lanes_need_one_environment_per_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MADE, str(tmp_path / "made"))
    world = corridor(processes=2)
    play(world, 32, [0] * 5)
    assert len((tmp_path / "made").read_text()) == 3


def test_batches_beyond_the_shared_rows_are_played_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "ROWS", 4)
    assert same(play(corridor(), 11, [0, 2, 2]), play(corridor(Corridor), 11, [0, 2, 2]))


def test_an_episode_that_is_over_stays_as_it_is() -> None:
    states = play(corridor(functools.partial(Saved, ends=3)), 2, [2] * 5)
    assert np.asarray(states[3].over).all()
    assert not np.asarray(states[3].lost).any()
    assert same((states[3].seen, states[3].rho), (states[5].seen, states[5].rho))


def test_episodes_come_back_in_another_world() -> None:
    world = corridor()
    states = play(world, 4, [0, 0, 2])
    mixed = jax.tree.map(lambda a, b: jnp.concatenate([a[:2], b[2:]]), states[3], states[1])
    recalled = world.recall(mixed)
    other = corridor()
    with pytest.raises(InputError, match=r"step 3 of the episode with seed 0 is unknown"):
        other.recall(mixed)
    other.restore(mixed, recalled)
    step = jax.vmap(world.step, in_axes=(None, 0, None)), jax.vmap(other.step, in_axes=(None, 0, None))
    assert same(*(each(jax.random.key(0), mixed, jnp.int32(1)) for each in step))
    with pytest.raises(InputError, match="do not lead to its state"):
        corridor().restore(mixed, {"actions": (recalled["actions"] + 1).clip(0, 2)})
    with pytest.raises(InputError, match="do not fit its clock"):
        corridor().restore(mixed, {"actions": recalled["actions"][:, :2]})


def test_old_snapshots_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "KEPT", 8)
    monkeypatch.setattr(snapshots, "BATCHES", 4)
    world = corridor()
    states = play(world, 2, [0] * 10)
    assert len(world.host.kept) == 8  # type: ignore[union-attr]
    world.recall(states[-1])
    with pytest.raises(InputError, match="is unknown"):
        world.recall(states[1])


def test_pictures_of_any_step_even_with_processes() -> None:
    world = corridor(processes=1)
    states = play(world, 2, [2, 2])
    for state in states:
        one = jax.tree.map(lambda x: x[1], state)
        place = world.host.kept[int(one.ticket), int(one.clock), int(one.path)].state[0]  # type: ignore[union-attr]
        assert (world.frame(one) == place).all()


def test_a_move_is_held_until_something_changes() -> None:
    world = corridor(hold=3)
    start = jax.tree.map(lambda x: x[0], play(world, 1, [])[0])
    path = [start]
    for _ in range(3):
        path.append(world.step(jax.random.key(0), path[-1], jnp.int32(0)))
    host: Any = world.host
    clocks = [host.kept[int(s.ticket), int(s.clock), int(s.path)].state[2] for s in path]
    lengths = np.diff(clocks)
    changed = [bool(jnp.any(a.rho != b.rho)) for a, b in itertools.pairwise(path)]
    assert lengths.max() == 3
    assert sum(changed) == 1
    assert lengths[changed.index(True)] < 3 or clocks[-1] == 9


def test_every_action_can_have_its_own_length() -> None:
    world = corridor(hold=(1, 2, 3))
    for action, length in enumerate((1, 2, 3)):
        state = world.step(jax.random.key(0), world.begin(jnp.int32(0)), jnp.int32(action))
        kept = world.host.kept[int(state.ticket), 1, int(state.path)]  # type: ignore[union-attr]
        assert kept.state[2] == length
    with pytest.raises(InputError, match="one for each of 3 actions"):
        corridor(hold=(1, 2))


def test_observations_are_normalised_the_same_way_every_time() -> None:
    plain, world = corridor(), corridor(normalise=400)
    states = play(plain, 4, [0, 1, 2] * 10)
    seen = np.array([np.asarray(s.seen) for s in play(world, 4, [0, 1, 2] * 10)])
    assert abs(seen[..., 0].mean()) < 1.0
    assert 0.3 < seen[..., 0].std() < 2.0
    assert same(play(corridor(normalise=400), 4, [0, 1]), play(world, 4, [0, 1]))
    assert same(play(corridor(normalise=world), 4, [0, 1]), play(world, 4, [0, 1]))
    assert float(states[0].seen.max()) < 5.0, "without a sample, unbounded numbers are only scaled"


def test_waves_follow_the_normalised_numbers() -> None:
    plain, world = corridor(normalise=400), corridor(normalise=400, waves=2)
    assert world.slots == 5 * plain.slots
    for one, other in zip(play(plain, 4, [0, 1, 2] * 3), play(world, 4, [0, 1, 2] * 3), strict=True):
        numbers, seen = np.asarray(one.seen), np.asarray(other.seen)
        phases = np.concatenate([np.pi / 2 * numbers, np.pi * numbers], axis=-1)
        np.testing.assert_allclose(seen, np.concatenate([numbers, np.sin(phases), np.cos(phases)], axis=-1), atol=1e-5)
    assert same(play(corridor(normalise=world), 4, [0, 1]), play(world, 4, [0, 1]))


def test_a_world_that_fails_in_a_process_says_why() -> None:
    world = corridor(Fragile, processes=2)
    with pytest.raises(InputError, match=r"in a process that plays environments: ZeroDivisionError: the wall"):
        to_the_wall(world)
    world.host.pool.end()  # type: ignore[union-attr]


def to_the_wall(world: GymWorld) -> None:
    tickets, zeros = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    path = world.workers.reset(tickets)[0]
    for clock in range(8):
        path = world.workers.step(tickets, zeros + clock, path, zeros)[0]
