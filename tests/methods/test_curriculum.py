"""The curriculum: goals at the distance asked for, hindsight that is true, and stages that advance on success alone."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.errors import InputError
from saplan.games import GAMES, make_game
from saplan.goals import Goal
from saplan.methods.ablations import Ablated
from saplan.methods.curriculum import Curriculum, ahead, draw_goals, reached
from saplan.methods.oracle.agent import Oracle
from saplan.methods.targets import value_rollout
from saplan.methods.unstructured.rounding import Rounded
from saplan.methods.update import train_chunk
from saplan.perception.fitted import FittedGame
from saplan.rl.rollout import fresh_maps
from tests.methods.probe import GAME
from tests.methods.structured.opinions import steps_of

METHOD = Curriculum()
TINY: dict[str, Any] = {"lanes": 16, "rollout": 16, "hidden": 8, "minibatches": 2, "epochs": 1}


def drawn(name: str, stage: int, lanes: int = 32):
    game = make_game(name)
    settings = replace(METHOD.settings_for(game), **TINY, farthest_share=1.0)
    states = fresh_maps(game, jax.random.key(0), lanes)
    rho = jax.vmap(game.attributes)(states)
    subgoal, distance = jax.jit(lambda r: draw_goals(game, settings, jax.random.key(1), r, jnp.int32(stage)))(rho)
    return game, np.asarray(rho), np.asarray(subgoal), np.asarray(distance)


@pytest.mark.parametrize("stage", [1, 4])
def test_goals_of_switches_are_as_far_as_asked(stage: int) -> None:
    game, rho, subgoal, distance = drawn("switches", stage)
    assert (distance == stage).all()
    edges = Oracle(game)
    for start, goal in list(zip(rho, subgoal, strict=True))[:6]:
        asked = goal[game.space.size :] > 0
        low = np.where(asked, goal[: game.space.size], -np.inf)
        high = np.where(asked, goal[: game.space.size], np.inf)
        plan = edges.routes(start[None], Goal(low[None], high[None]))[0].plan(start)
        assert len(plan.transitions) == stage


def test_goals_of_exchange_are_as_far_as_asked() -> None:
    game, rho, subgoal, _ = drawn("exchange", 5, lanes=8)
    for start, goal in zip(rho, subgoal, strict=True):
        table = np.asarray(game.goal_distances(jnp.asarray(start[:3], jnp.int32)))
        assert table[tuple(goal[3:6].astype(int))] == 5


@pytest.mark.parametrize("stage", [1, 3])
def test_goals_of_mining_are_near_inside_and_not_here(stage: int) -> None:
    game, rho, subgoal, _ = drawn("mining", stage)
    target = subgoal[:, :2]
    assert bool(jnp.all(game.inside(jnp.asarray(target))))
    assert (np.linalg.norm(target - rho[:, :2], axis=1) <= stage + 0.6).all()
    assert not np.asarray(reached(game, jnp.asarray(rho), jnp.asarray(subgoal))).any()


def test_hindsight_looks_to_the_end_of_a_game_and_no_further() -> None:
    rho = jnp.array([[[0.0, 0]], [[0, 0]], [[1, 0]], [[0, 1]]])
    delta = jnp.array([[[0.0, 0]], [[1, 0]], [[0, 0]], [[0, 0]]])
    over = jnp.array([[False], [False], [True], [False]])
    steps = steps_of(GAME.space, rho=rho, delta=delta, game_over=over, changed=jnp.any(delta != 0, axis=-1))
    next_rho, known = ahead(steps, steps.changed)
    assert known[:, 0].tolist() == [True, True, False, False]
    assert next_rho[0, 0].tolist() == next_rho[1, 0].tolist() == [1, 0]
    last, known = ahead(steps, over.at[-1].set(True))
    assert known[:, 0].all()
    assert last[:, 0].tolist() == [[1, 0], [1, 0], [1, 0], [0, 1]]


def test_stages_advance_on_success_alone() -> None:
    game = make_game("switches")
    easy = replace(METHOD.settings_for(game), **TINY, advance_at=1e-6, measured_on=1)
    hard = replace(easy, advance_at=1.0, measured_on=10**6)
    stages = []
    for settings in (easy, hard):
        learner = METHOD.begin(game, settings, jax.random.key(0))
        learner, report = train_chunk(METHOD, game, settings, 100, 24, 24, learner)
        assert np.isfinite(np.asarray(report.policy_loss)).all()
        assert not bool(learner.lanes.explores.any())
        stages.append(int(learner.knowledge.stage))
    assert stages[0] > 1
    assert stages[1] == 1
    assert stages[0] <= game.farthest_goal


def test_lessons_are_true_and_never_ask_for_what_already_holds() -> None:
    game = make_game("switches")
    settings = replace(METHOD.settings_for(game), **{**TINY, "rollout": 64})
    learner = METHOD.begin(game, settings, jax.random.key(0))

    @jax.jit
    def taught():
        rollout = METHOD.play(game, settings, learner, jax.random.key(3))
        learnt = METHOD.learn(game, settings, learner, rollout, jax.random.key(4))
        values = value_rollout(game, settings, learner.policy, rollout)
        return rollout.trajectory, learnt.targets(values, None)[0]

    steps, batch = taught()
    holds = jax.vmap(lambda w: reached(game, batch.rho, w), in_axes=1, out_axes=1)(batch.subgoal)
    assert not bool(jnp.any(holds & batch.execution_weight))
    after = steps.after.reshape(-1, game.space.size)
    hit = jax.vmap(lambda w: reached(game, after, w), in_axes=1, out_axes=1)(batch.subgoal)
    assert bool(jnp.any(hit & batch.execution_weight)), "something was reached, if only in hindsight"
    assert bool(jnp.all(~batch.execution_weight | (hit == (batch.execution == 1.0))))


def test_a_game_without_distances_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"does not fit corridor: .* \(known: switches, exchange, mining, arm, tiles\)"
    ):
        METHOD.settings_for(GAME)
    with pytest.raises(InputError, match="have no distances"):
        GAME.goal_at(jax.random.key(0), jnp.zeros(2), jnp.int32(1))


def seen_exactly(game) -> FittedGame:
    """A game whose fitted attributes are always zero, as f̂ reads them."""
    size = game.space.size
    return FittedGame(
        game, lambda sights: (jnp.zeros((len(sights), size)), jnp.ones((len(sights), size))), "words", "0"
    )


@pytest.mark.parametrize("wrap", [seen_exactly, Rounded, lambda game: Ablated(game, "raw")])
@pytest.mark.parametrize("name", GAMES)
def test_a_wrapped_game_draws_the_goals_of_its_game(name: str, wrap) -> None:
    game = make_game(name)
    wrapped = wrap(game)
    rho = jax.vmap(game.attributes)(fresh_maps(game, jax.random.key(0), 4))
    settings = METHOD.settings_for(wrapped)
    draw = lambda game: jax.jit(lambda: draw_goals(game, settings, jax.random.key(1), rho, jnp.int32(2)))()  # noqa: E731
    for plain, through in zip(draw(game), draw(wrapped), strict=True):
        np.testing.assert_array_equal(plain, through)
    assert wrapped.tolerance == game.tolerance
