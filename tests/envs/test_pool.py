"""Environments in processes: why one of them failed or died comes to the user as one sentence."""

import time
from typing import Any

import numpy as np
import pytest

from saplan.envs.pool import Pool
from saplan.errors import InputError
from tests.reliability import own

TICKETS = np.arange(32, dtype=np.int32)
ZEROS = np.zeros(32, np.int32)


def play(world: Any, times: int) -> None:
    paths = world.workers.reset(TICKETS)[0]
    for clock in range(times):
        paths = world.workers.step(TICKETS, ZEROS + clock, paths, ZEROS)[0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (own.Raises, r"^in a process that plays environments: ZeroDivisionError: the third stone$"),
        (own.Quits, r"^in a process that plays environments: SystemExit: no display$"),
        (own.Exits, r"^a process that plays environments ended with exit code 7 during a step of 32 episodes$"),
    ],
)
def test_a_world_that_fails_in_a_process(make: Any, words: str) -> None:
    world: Any = own.tower(make, processes=1)
    with pytest.raises(InputError, match=words):
        play(world, 4)
    processes = [worker.process for worker in world.workers.workers]
    if make is own.Exits:
        with pytest.raises(InputError, match="ended with exit code 7"):
            play(world, 1)
    world.workers.end()
    assert not any(process.is_alive() for process in processes)


def test_a_world_that_cannot_be_made_there() -> None:
    with pytest.raises(InputError, match=r"^in a process that plays environments: RuntimeError: no display$"):
        own.tower(own.Unmakeable, processes=1)


def test_a_process_that_is_killed() -> None:
    world: Any = own.tower(processes=2)
    play(world, 1)
    world.workers.workers[1].process.kill()
    with pytest.raises(
        InputError, match=r"was killed by SIGKILL \(has the machine run out of memory\?\) during a reset"
    ):
        play(world, 1)
    world.workers.end()


def test_after_an_error_answers_belong_to_their_questions() -> None:
    """What one worker has answered to a question that failed is not taken for the answer to the next."""
    world: Any = own.tower(own.Raises, processes=2)
    alone = own.tower()
    with pytest.raises(InputError, match="ZeroDivisionError"):
        play(world, 4)
    for mine, theirs in zip(world.workers.reset(TICKETS), alone.workers.reset(TICKETS), strict=True):
        assert np.array_equal(mine, theirs)
    world.workers.end()


def test_a_slow_world_is_waited_for_and_a_stuck_one_does_not_stay_behind() -> None:
    slow: Any = own.tower(own.Slow, processes=1)
    paths = slow.workers.reset(TICKETS[:2])[0]
    began = time.monotonic()
    slow.workers.step(TICKETS[:2], ZEROS[:2], paths, ZEROS[:2])
    assert time.monotonic() - began >= 0.3
    slow.workers.end()
    stuck: Any = own.tower(own.Stuck, processes=1)
    worker = stuck.workers.workers[0]
    worker.line.send((1, "step", [TICKETS[:1], ZEROS[:1], ZEROS[:1], ZEROS[:1]]))
    stuck.workers.end()
    assert not worker.process.is_alive()


def test_large_messages_pass() -> None:
    pool = Pool(own.build, 2)
    tickets = np.arange(20_000, dtype=np.int32)
    clocks = np.full(20_000, 3, np.int32)
    alone = own.build()
    paths = alone.reset(tickets[:1])[0]
    for clock in range(3):
        paths = alone.step(tickets[:1], np.full(1, clock, np.int32), paths, np.zeros(1, np.int32))[0]
    everywhere = np.full(20_000, paths[0], np.int32)
    pool.restore(tickets, clocks, everywhere, np.zeros((20_000, 3), np.int32))
    assert np.array_equal(pool.recall(tickets, clocks, everywhere)[0], np.zeros((20_000, 3)))
    pool.end()


def test_a_lambda_of_a_module_cannot_go_to_processes() -> None:
    with pytest.raises(InputError, match="use functions of a module"):
        own.tower(lambda: own.Tower(), processes=1)
