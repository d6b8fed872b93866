"""Results do not depend on how busy the machine is."""

import subprocess
import sys

import numpy as np
import pytest

from saplan.games import GAMES
from saplan.training.evaluate import evaluate
from saplan.training.store import load
from tests.reliability import times

BUSY = times(4, 2)
BURN = [sys.executable, "-c", "while True: pass"]


@pytest.mark.parametrize("game", GAMES)
def test_successes_are_the_same_beside_busy_processes(game: str) -> None:
    agent, tasks = load(game), times(200, 8)
    alone = evaluate(agent, tasks, task_seed=31)
    others = [subprocess.Popen(BURN) for _ in range(BUSY)]
    try:
        crowded = evaluate(agent, tasks, task_seed=31)
    finally:
        for process in others:
            process.kill()
            process.wait()
    np.testing.assert_array_equal(crowded.success, alone.success)
    assert crowded.attempts == alone.attempts
