"""The promises of docs/reliability.md for every game and method, and for worlds of one's own.

Here, in one module, so that the compiled program of each case is used again.
"""

import random
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saplan
from saplan.envs.episodes import Host
from saplan.errors import InputError
from saplan.methods.agent import DEFAULT_PLANNER
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.update import train_chunk
from saplan.planning import Outcome
from saplan.rl.finite import NO_FAULT, name_fault
from saplan.training import loop as loop_module
from saplan.training.loop import Loop
from saplan.training.run_directory import reopen_run
from saplan.training.train import RunOptions, train_runs
from tests.reliability import own, record, times
from tests.reliability.cases import CASES, OWN, USUAL, config_of, world_of
from tests.reliability.test_disk import Disk, disk
from tests.reliability.test_goals import SLACK
from tests.reliability.test_kills import end_of
from tests.reliability.tiny import UPDATES, train_tiny

__all__ = ["disk"]
Whole = Callable[[str], Path]


def cut_off(run: Path, where: Path) -> Path:
    """A copy of a finished run as a kill leaves it after the last checkpoint but two: metrics go on beyond it."""
    shutil.copytree(run, where)
    for path in sorted((where / "checkpoints").iterdir())[1:]:
        shutil.rmtree(path)
    for name in ("agent.safetensors", "manifest.json"):
        (where / name).unlink()
    return where


def restart(case: str, processes: int = 0) -> None:
    """What another process has of a world: nothing of what was played."""
    if case == "tower":
        own.restarted(world_of(case), processes)


@pytest.mark.parametrize("case", CASES)
def test_a_run_that_was_cut_off_goes_on(case: str, whole: Whole, tmp_path: Path) -> None:
    wanted, run = end_of(whole(case)), cut_off(whole(case), tmp_path / "run")
    restart(case)
    saplan.resume(run, world_of(case), chunk=2, save_every=0)
    record(f"runs that were cut off end bit by bit as the one that was not: {case}", end_of(run) == wanted, 1)


@pytest.mark.parametrize("case", CASES)
def test_the_same_configuration_is_the_same(case: str, whole: Whole) -> None:
    reopen_run(whole(case), config_of(case)).close()


def test_a_run_of_gymnasium_goes_on_in_processes(whole: Whole, tmp_path: Path) -> None:
    wanted, run = end_of(whole("tower")), cut_off(whole("tower"), tmp_path / "run")
    restart("tower", processes=2)
    train_runs([config_of("tower")], [run], RunOptions(chunk=2, save_every=0), resume=True)
    assert end_of(run) == wanted
    run = cut_off(whole("tower"), tmp_path / "again")
    world_of("tower").workers.end()
    restart("tower")
    saplan.resume(run, world_of("tower"), chunk=2, save_every=0)
    assert end_of(run) == wanted


@pytest.mark.parametrize("case", OWN)
def test_a_world_of_ones_own_has_to_be_given(case: str, whole: Whole, tmp_path: Path) -> None:
    run = cut_off(whole(case), tmp_path / "run")
    with pytest.raises(InputError, match=f"belongs to the world '{case}': load it from Python with that world, or "):
        saplan.resume(run)
    other = world_of("lamps" if case == "tower" else "tower")
    with pytest.raises(InputError, match="not to the given one: game is "):
        saplan.resume(run, other)
    assert not (run / "lock").exists() or not (run / "agent.safetensors").exists()


def test_looks_leave_training_as_it_is(whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks of a look push the lanes' environments out. Each goes on where it was."""
    case, config = "tower", config_of("tower")
    hasty = replace(
        DEFAULT_PLANNER, max_nodes=16, max_seconds=0.01
    )  # nothing is learnt yet that would be worth a search
    monkeypatch.setattr(loop_module, "planner_settings_for", lambda settings: hasty)
    saplan.train(config.game, config.steps, 0, config.settings, tmp_path / "run", 3, 200, chunk=2, save_every=0)
    agent = saplan.load(tmp_path / "run", config.game)
    assert isinstance(agent, StructuredAgent)
    found = {tuple(delta) for delta in np.asarray(agent.memory.delta)[: int(agent.memory.size)].tolist()}
    assert found == own.POSSIBLE
    assert end_of(tmp_path / "run")[:2] == end_of(whole(case))[:2]


@pytest.mark.parametrize("processes", [0, 1])
def test_a_world_that_fails_stops_training_with_a_sentence(processes: int, tmp_path: Path, whole: Whole) -> None:
    whole("tower")
    world: Any = config_of("tower").game
    workers: Any = own.tower(own.Raises, processes=processes).workers
    assert processes or isinstance(workers, Host)
    object.__setattr__(world, "workers", workers)
    try:
        with pytest.raises(InputError, match=r"^training stopped: .*: the third stone; saved at 0 steps") as stop:
            train_tiny(tmp_path / "run", config_of("tower"))
        assert "\n" not in str(stop.value)
        assert f"saplan.resume('{tmp_path / 'run'}', WORLD)" in str(stop.value)
        with pytest.raises(InputError, match=r"ZeroDivisionError: the third stone$"):
            saplan.check_world(world, 20, 4)
    finally:
        own.restarted(world)
    assert jax.devices()


@pytest.mark.parametrize("case", CASES)
def test_a_full_disk_at_every_operation_of_a_save(whole: Whole, case: str, tmp_path: Path, disk: Disk) -> None:
    trained, wanted = whole(case), config_of(case)
    outline, good, tried = Loop([wanted]).outline(), 0, 0
    every = times(1, 1 if case == USUAL else 4)
    for for_good in (False, True):
        for room in range(0, 100, every):
            path = Path(shutil.copytree(trained, tmp_path / f"{room}-{for_good}"))
            run = reopen_run(path, wanted)
            newest, _ = run.newest(outline)
            assert newest is not None
            run.open_metrics(10**9)
            disk.left, disk.for_good, disk.refused = room, for_good, 0
            try:
                run.log({"steps": 0})
                run.save(replace(newest, updates=UPDATES + 1))
                told = True
            except InputError as error:
                told = "No space left on device" in str(error) and "cannot write" in str(error)
            full, disk.left = disk.refused > 0, float("inf")
            run.close()
            if not full:
                break
            again = reopen_run(path, wanted)
            found, wrong = again.newest(outline)
            good += told and not wrong and found is not None and found.updates >= UPDATES
            again.open_metrics(10**9)
            again.save(replace(newest, updates=UPDATES + 2))  # there is room again
            assert again.newest(outline)[0].updates == UPDATES + 2  # type: ignore[union-attr]
            again.close()
            tried += 1
        else:
            pytest.fail("a save never came to its end")
    assert tried > 15 / every
    record(f"full disk at every write of a save, the last good checkpoint stands: {case}", good, tried)


BAD = (np.nan, np.inf, -np.inf)


def poisoned(learner: Any, leaf: int, place: int, value: float) -> Any:
    """A learner with one bad number."""
    leaves, tree = jax.tree.flatten(learner)
    flat = leaves[leaf].reshape(-1)
    leaves[leaf] = flat.at[place % flat.size].set(value).reshape(leaves[leaf].shape)
    return jax.tree.unflatten(tree, leaves)


@pytest.mark.parametrize("case", CASES)
def test_one_bad_number_anywhere_in_a_learner(case: str) -> None:
    config, chance = config_of(case), random.Random(case)
    loop = Loop([config], chunk=2)
    loop.chunk()
    floats = [k for k, leaf in enumerate(jax.tree.leaves(loop.learner)) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    assert len(floats) > 20
    tried, good = times(32, 15 if case == USUAL else 6), 0
    for k in range(tried):
        leaf = floats[k * len(floats) // tried]
        learner = poisoned(loop.learner, leaf, chance.randrange(10**6), chance.choice(BAD))
        after, report = train_chunk(loop.method, config.game, config.settings, loop.updates, 2, jnp.int32(2), learner)
        name = name_fault(int(report.fault[0]), report, learner)
        named = list(jax.tree_util.tree_leaves_with_path(learner))[leaf][0]
        good += bool(report.fault[0] != NO_FAULT) and int(after.updates) == int(learner.updates)
        assert name == "learner" + jax.tree_util.keystr(named)
    record(f"NaN or infinity in a learner stops training: {case}", good, tried)


HARD = {
    "switches": "red=1000000", "exchange": "red>=100000", "mining": "m1=12.9±0.00001 m2=7.9±0.00001",
    "tower": "floors=1000000", "lamps": "lamp=2",
}  # fmt: skip
"""Goals that are out of reach, or hardly in reach, of an agent that has learnt next to nothing."""


@pytest.mark.parametrize("case", [case for case in CASES if "curriculum" not in case])
def test_a_hard_goal_is_answered_within_the_bounds(case: str, whole: Whole) -> None:
    agent: Any = saplan.load(whole(case), world_of(case))
    state, bounds = agent.game.reset(jax.random.key(0)), replace(DEFAULT_PLANNER, max_nodes=500, max_seconds=1.0)
    goal = HARD[case.partition("-")[0]]
    agent.plan(state, goal, bounds)  # compiles
    began = time.monotonic()
    plan = agent.plan(state, goal, bounds)
    assert time.monotonic() - began < 1.0 + SLACK
    assert (plan.outcome is Outcome.FOUND) == bool(plan.rho)
