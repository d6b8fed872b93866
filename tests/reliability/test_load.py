"""Results do not depend on how busy the machine is."""

import multiprocessing

import numpy as np
import pytest

from saplan.games import GAMES
from saplan.training.evaluate import evaluate
from saplan.training.store import load
from tests.reliability import times

BUSY = 4


def burn() -> None:
    """Keeps a core busy for ever."""
    while True:
        pass


@pytest.mark.parametrize("game", GAMES)
def test_successes_are_the_same_beside_busy_processes(game: str) -> None:
    agent, tasks = load(game), times(200, 16)
    alone = evaluate(agent, tasks, task_seed=31)
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=burn, daemon=True) for _ in range(BUSY)]
    for process in others:
        process.start()
    try:
        crowded = evaluate(agent, tasks, task_seed=31)
    finally:
        for process in others:
            process.kill()
    np.testing.assert_array_equal(crowded.success, alone.success)
    assert crowded.attempts == alone.attempts
