"""The Gymnasium door: the goal-environment convention, for every game."""

import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import saplan.envs
from saplan.algebra import Natural, Product, Real
from saplan.envs import HORIZON, GoalEnv
from saplan.envs.goal_boxes import achieved_box, box_reached, goal_box
from saplan.envs.goal_env import _advance, _begin
from saplan.errors import InputError
from saplan.games import GAMES, Mining, Switches
from saplan.goals import Goal, parse_goal

IDS = [f"saplan/{name.capitalize()}-v0" for name in GAMES]


def wander(env: Any, seed: int, steps: int = 40) -> list[Any]:
    env.action_space.seed(seed)
    seen = [env.reset(seed=seed)]
    seen += [env.step(env.action_space.sample()) for _ in range(steps)]
    return seen


@pytest.mark.parametrize("mode", [None, "rgb_array", "ansi"])
@pytest.mark.parametrize("name", IDS)
def test_gymnasium_checks_pass_without_a_warning(name, mode):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name, render_mode=mode).unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_the_seed_decides_everything(name):
    env = GoalEnv(name.split("/")[1][:-3].lower())
    once, again, other = wander(env, 3), wander(env, 3), wander(env, 4)
    assert str(once) == str(again)
    assert str(once) != str(other)


def test_the_map_hangs_on_the_seed_and_not_on_the_goal():
    env = GoalEnv("exchange")
    first, _ = env.reset(seed=5)
    second, _ = env.reset(seed=5, options={"goal": "red=1"})
    np.testing.assert_array_equal(first["observation"], second["observation"])
    assert not np.array_equal(first["desired_goal"], second["desired_goal"])


@pytest.mark.parametrize("name", IDS)
def test_the_reward_can_be_recomputed_one_by_one_and_in_batches(name):
    env: Any = gymnasium.make(name).unwrapped
    steps = wander(env, 0)[1:]
    achieved = np.stack([o["achieved_goal"] for o, *_ in steps])
    desired = np.stack([o["desired_goal"] for o, *_ in steps])
    infos = [info for *_, info in steps]
    rewards = env.compute_reward(achieved, desired, infos)
    assert rewards.shape == (len(steps),)
    assert rewards.dtype == np.float32
    np.testing.assert_array_equal(rewards, [r for _, r, *_ in steps])
    np.testing.assert_array_equal(env.compute_terminated(achieved, desired, infos), [t for _, _, t, *_ in steps])
    assert not env.compute_truncated(achieved, desired, infos).any()
    one = env.compute_reward(achieved[0], desired[0], infos[0])
    assert isinstance(one, float)
    assert one == rewards[0]
    grid = env.compute_reward(achieved.reshape(4, 10, -1), desired.reshape(4, 10, -1), infos)
    np.testing.assert_array_equal(grid, rewards.reshape(4, 10))


@pytest.mark.parametrize("name", IDS)
def test_hindsight_may_put_the_achieved_in_the_place_of_the_desired(name):
    env: Any = gymnasium.make(name).unwrapped
    achieved = np.stack([step[0]["achieved_goal"] for step in wander(env, 1)])
    assert all(goal in env.observation_space["desired_goal"] for goal in achieved)
    np.testing.assert_array_equal(env.compute_reward(achieved, achieved, {}), np.zeros(len(achieved)))


def test_a_box_says_what_the_goal_says():
    space = Product.of(count=Natural(), amount=Real(resolution=1.0))
    rng = np.random.default_rng(0)
    for text in ("count=3", "count>=2 amount<=4", "amount=5.2±0.7", "amount=5", "count=0 amount=0"):
        goal = parse_goal(space, text)
        box = goal_box(space, goal, 64.0)
        assert np.isfinite(box).all()
        for _ in range(200):
            rho = np.array([rng.integers(6), rng.uniform(-8, 8)], np.float32)
            assert box_reached(space, achieved_box(space, rho, 64.0), box) == bool(goal.reached(jnp.asarray(rho)))


def test_a_free_attribute_is_free_even_beyond_the_limit():
    space = Product.of(count=Natural(), other=Natural())
    box = goal_box(space, parse_goal(space, "count=3"), 8.0)
    assert box_reached(space, achieved_box(space, np.array([3, 1000], np.float32), 8.0), box)


def test_reaching_the_goal_ends_the_episode():
    env = GoalEnv("switches")
    observation, info = env.reset(seed=0, options={"goal": "red=0"})
    assert info["is_success"]
    observation, reward, terminated, truncated, info = env.step(0)
    assert (reward, terminated, truncated, info["is_success"]) == (0.0, True, False, True)
    assert "red=0" in info["rho"]
    assert observation in env.observation_space


def test_the_clock_truncates_after_150_steps():
    env = gymnasium.make("saplan/Switches-v0", goal="red>=4 blue>=4 green>=4", most=4, fewest=4)
    env.reset(seed=0)
    for step in range(1, HORIZON + 1):
        *_, terminated, truncated, _ = env.step(0)
        assert not terminated
        assert truncated == (step == HORIZON)


def test_a_game_without_moves_left_ends():
    env = GoalEnv("exchange", goal="red=60")
    env.reset(seed=0)
    state = env.state
    env.state = jax.tree.map(lambda x: x, state.__class__(state.ground, state.objects * 0 - 1, state.held * 0))
    *_, terminated, _, info = env.step(0)
    assert terminated
    assert info["is_over"]
    assert not info["is_success"]


def test_goals_come_as_text_as_a_goal_or_from_the_game():
    env = GoalEnv(Switches(kinds=2))
    goal = parse_goal(env.space, "red=2")
    by_text, _ = env.reset(seed=0, options={"goal": "red=2"})
    by_goal, _ = env.reset(seed=0, options={"goal": goal})
    np.testing.assert_array_equal(by_text["desired_goal"], by_goal["desired_goal"])
    k = env.space.index("red")
    assert by_text["desired_goal"][k] == by_text["desired_goal"][k + env.space.size] == 2
    drawn, _ = env.reset(seed=0)
    assert not np.array_equal(drawn["desired_goal"], by_text["desired_goal"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"goal": "reed=1"}, "did you mean 'red'"),
        ({"goal": "red=-1"}, "negative"),
        ({"goal": "red=1000"}, "limit"),
        ({"gaol": "red=1"}, "did you mean 'goal'"),
        ({"goal": Goal(np.zeros(2), np.zeros(2))}, "7 attributes"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        GoalEnv("switches").reset(options=options)


def test_bad_arguments_are_refused():
    with pytest.raises(InputError, match="kinds"):
        gymnasium.make("saplan/Switches-v0", kinds=0)
    with pytest.raises(InputError, match="render mode"):
        GoalEnv("switches", render_mode="human")
    with pytest.raises(InputError, match="already has"):
        GoalEnv(Switches(), kinds=2)


def test_rules_can_be_changed():
    env: Any = gymnasium.make("saplan/Switches-v0", kinds=2)
    assert env.unwrapped.game == Switches(kinds=2)
    assert env.observation_space["achieved_goal"].shape == (2 * 5,)


def test_environments_of_one_game_share_their_compilation():
    programs: tuple[Any, ...] = _begin, _advance

    def compiled() -> list[int]:
        return [program._cache_size() for program in programs]

    game = Mining(deposits=2)
    wander(GoalEnv(game), 0, 3)
    before = compiled()
    wander(GoalEnv(Mining(deposits=2)), 1, 3)
    assert compiled() == before


def test_films_have_frames_of_one_size():
    env = GoalEnv("mining", render_mode="rgb_array")
    shapes = set()
    for seed in range(6):
        env.reset(seed=seed)
        shapes.add(env.render().shape)
    assert len(shapes) == 1


def test_gymnasium_finds_the_games_by_itself_when_the_id_names_the_room():
    code = "import gymnasium; gymnasium.make('saplan.envs:saplan/Exchange-v0', kinds=3)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_all_ids_are_registered():
    assert set(IDS) <= set(gymnasium.registry)
    assert gymnasium.spec(IDS[0]).max_episode_steps == saplan.envs.HORIZON
