"""Processes that die at any moment, and runs that end the same all the same."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saplan.cli import main
from saplan.errors import InputError, StoppedError
from saplan.storage.arrays import to_arrays
from saplan.training.loop import Loop
from saplan.training.store import load_agent
from saplan.training.train import RunOptions, resume, train_runs
from tests.reliability import FULL, record, times
from tests.reliability.cases import CASES, USUAL
from tests.reliability.tiny import STEPS, killed_config, tiny_config, train_tiny

OPERATIONS_OF_A_SAVE = 9
"""File operations inside one save, about."""
EAGER = RunOptions(save_every=0, chunk=2)


def start(run: Path, where: int, case: str) -> subprocess.Popen[str]:
    root = Path(__file__).parent.parent.parent
    # It uses compiled programs and keeps none: a kill could leave half a file among them.
    environment = {**os.environ, "PYTHONPATH": str(root), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1e9"}
    command = [sys.executable, "-m", "tests.reliability.tiny", str(run), str(where), case]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=root
    )


def end_of(run: Path) -> tuple[str, str, list[Any]]:
    """The final agent and learner, by their hashes, and the metrics without what tells time."""
    newest = sorted((run / "checkpoints").iterdir())[-1]
    files = (run / "agent.safetensors", newest / "learner.safetensors")
    agent, learner = (hashlib.sha256(path.read_bytes()).hexdigest() for path in files)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return agent, learner, [{k: v for k, v in row.items() if "second" not in k} for row in rows]


@pytest.mark.parametrize("case", CASES if FULL else [USUAL])
def test_killed_runs_end_as_if_they_had_not_been(tmp_path: Path, case: str) -> None:
    chance, tried, moments = random.Random(CASES.index(case)), times(100 if case == USUAL else 6, 2), []
    good = kills = inside = 0
    train_tiny(tmp_path / "reference", killed_config(case), progress=lambda _: moments.append(time.monotonic()))
    wanted, chunk_seconds = end_of(tmp_path / "reference"), (moments[-1] - moments[0]) / len(moments)
    for k in range(tried):
        run, in_a_save = tmp_path / str(k), k % 3 == 0
        for _ in range(chance.choice((1, 1, 2))):
            # Every save is as likely as any other; later ones need that the run was not killed before.
            where = chance.randrange(1, OPERATIONS_OF_A_SAVE * len(moments)) if in_a_save else 0
            child = start(run, where, case)
            assert child.stdout is not None
            if not in_a_save:
                for _ in range(chance.randrange(1, len(moments))):
                    child.stdout.readline()
                time.sleep(chance.uniform(0, chunk_seconds))
                child.send_signal(signal.SIGKILL)
            child.stdout.read()
            died = child.wait() == -signal.SIGKILL
            kills, inside = kills + died, inside + (died and in_a_save)
        child = start(run, 0, case)
        _, error = child.communicate()
        good += child.returncode == 0 and end_of(run) == wanted
        assert "damaged" not in error, error
    assert kills >= tried * 0.7
    name = f"killed runs that end bit by bit as the one that was not: {case}"
    record(name, good, tried, kills=kills, inside_a_save=inside)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_saves_and_says_so(number: int, tmp_path: Path, trained: Path) -> None:
    before = signal.getsignal(number)

    def show(progress: Any) -> None:
        if progress.steps == STEPS // 2:
            os.kill(os.getpid(), number)

    with pytest.raises(StoppedError, match=rf"stopped; saved at {STEPS // 2} steps") as stop:
        train_tiny(tmp_path / "run", progress=show, save_every=1000)
    assert stop.value.signal == number
    assert signal.getsignal(number) == before
    resume(tmp_path / "run", save_every=1000, chunk=2)
    assert end_of(tmp_path / "run") == end_of(trained)


def test_exit_codes_of_being_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copy: Path) -> None:
    monkeypatch.setattr(Loop, "chunk", lambda *_, **__: (_ for _ in ()).throw(StoppedError(15, "stopped")))
    (copy / "metrics.jsonl").unlink()
    for path in sorted((copy / "checkpoints").iterdir())[1:]:
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    assert main(["train", "--resume", str(copy)]) == 143


def test_seeds_that_train_side_by_side_go_on_together(tmp_path: Path) -> None:
    seeds = [3, 4]
    configs = [tiny_config(seed=seed) for seed in seeds]
    outs = {name: [tmp_path / f"{name}{seed}" for seed in seeds] for name in ("whole", "halved")}

    def stop(progress: Any) -> None:
        if progress.steps == STEPS // 2:
            os.kill(os.getpid(), signal.SIGTERM)

    def go(name: str, **more: Any) -> None:
        train_runs(configs, outs[name], replace(EAGER, **more))

    go("whole")
    with pytest.raises(StoppedError):
        go("halved", progress=stop)
    # As if it had been killed between the saves of two seeds.
    newest = sorted((outs["halved"][1] / "checkpoints").iterdir())[-1]
    newest.rename(newest.with_name(".new"))
    train_runs(configs, outs["halved"], EAGER, resume=True)
    for one, other in zip(*outs.values(), strict=True):
        assert end_of(one) == end_of(other)


def test_the_same_seed_twice_and_chunks_of_1_and_64(trained: Path) -> None:
    agent, _ = load_agent(trained)
    tried, good = 0, 0
    for chunk in (2, 1, 64) if FULL else (2, 64):
        again = to_arrays(train_tiny(None, chunk=chunk))
        for name, array in to_arrays(agent).items():
            tried += 1
            good += array.dtype == again[name].dtype and np.array_equal(array, again[name])
    record("same seed twice, and chunks of 1 and 64: arrays that are bit by bit the same", good, tried)


def test_another_seed_is_another_run(trained: Path) -> None:
    agent, other = to_arrays(load_agent(trained)[0]), to_arrays(train_tiny(None, tiny_config(seed=1)))
    assert any(not np.array_equal(array, other[name]) for name, array in agent.items())


def test_a_finished_run_stays_as_it_is(copy: Path) -> None:
    before = end_of(copy)
    resume(copy)
    assert end_of(copy) == before


def test_what_is_wanted_must_be_what_it_is(copy: Path) -> None:
    with pytest.raises(InputError, match="with another configuration: seed is 7 here and 0 there"):
        resume(copy, wanted=tiny_config(seed=7))
