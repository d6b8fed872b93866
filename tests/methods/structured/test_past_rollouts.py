"""Earlier rollouts: kept in a ring, drawn side by side with the new one, and resumed like all else."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saplan
from saplan.errors import InputError, StoppedError
from saplan.methods.structured.past_rollouts import no_rollouts, with_past
from saplan.methods.targets import value_rollout
from tests.methods.probe import GAME, METHOD, SMALL, begun
from tests.reliability.own import restarted, tower
from tests.reliability.tiny import SIZES

REPLAYING = replace(SMALL, replay=2, replay_size=3)


def rollouts(count: int) -> list[Any]:
    learner = begun(0)
    play = eqx.filter_jit(lambda key: METHOD.play(GAME, SMALL, learner, key))
    return [play(jax.random.key(k)) for k in range(count)]


def test_the_new_rollout_comes_first_and_the_others_are_drawn_from_the_last() -> None:
    played = rollouts(5)
    past = no_rollouts(GAME, REPLAYING, played[0].lanes)
    for rollout in played:
        past, wide = with_past(GAME, past, rollout, jax.random.key(1), 2)
    assert int(past.count) == 5
    lanes = SMALL.lanes
    assert wide.trajectory.action.shape == (SMALL.rollout, 3 * lanes)
    parts = [np.asarray(wide.trajectory.rho[:, k * lanes : (k + 1) * lanes]) for k in range(3)]
    assert np.array_equal(parts[0], played[4].trajectory.rho)
    last = [np.asarray(rollout.trajectory.rho) for rollout in played[2:]]
    assert all(any(np.array_equal(part, one) for one in last) for part in parts), "the first two were dropped"


def test_a_rollout_teaches_the_same_beside_others() -> None:
    learner, (first, second) = begun(0), rollouts(2)
    past = no_rollouts(GAME, REPLAYING, first.lanes)
    past, _ = with_past(GAME, past, first, jax.random.key(0), 2)
    _, wide = with_past(GAME, past, second, jax.random.key(0), 2)
    alone, beside = (value_rollout(GAME, SMALL, learner.policy, each).following for each in (second, wide))
    np.testing.assert_allclose(beside[:, : SMALL.lanes], alone, rtol=1e-5, atol=1e-6)


def test_training_goes_on_bit_by_bit_after_an_interruption(tmp_path: Path) -> None:
    sizes = SIZES | {"lanes": 8, "rollout": 8, "minibatches": 4, "cells": 64}
    settings = saplan.StructuredSettings(**sizes, replay=2, replay_size=4)
    world = tower()
    run = saplan.run_config(world, 8 * 64, 0, settings, "structured", 0, 0)
    saplan.train_runs([run], [tmp_path / "whole"], saplan.RunOptions(chunk=2))
    restarted(world)
    stops = iter([False, True])

    def stop(progress: Any) -> None:
        if next(stops, False):
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, StoppedError)):
        saplan.train_runs([run], [tmp_path / "halved"], saplan.RunOptions(stop, save_every=0.0, chunk=2))
    restarted(world)
    saplan.train_runs([run], [tmp_path / "halved"], saplan.RunOptions(chunk=2), resume=True)
    agents = [saplan.load(tmp_path / name, tower()) for name in ("whole", "halved")]
    same = jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), *(agent.policy for agent in agents))  # type: ignore[attr-defined]
    assert all(jax.tree.leaves(same))


def test_replay_may_be_off_but_not_negative() -> None:
    assert saplan.StructuredSettings(replay=0).replay == 0
    with pytest.raises(InputError, match=r"replay must be a whole number in 0\.\."):
        saplan.StructuredSettings(replay=-1)
