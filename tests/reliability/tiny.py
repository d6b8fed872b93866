"""A run so small that hundreds of them can be trained, killed and damaged.

`python -m tests.reliability.tiny RUN WHERE CASE` trains one of `cases`, or resumes it; WHERE is the file operation
inside a save at which it kills itself, 0 for never.
"""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from saplan.games import Switches, make_game
from saplan.games.grid import MapRules
from saplan.rl.settings import Settings
from saplan.training.checkpoint import Checkpoints
from saplan.training.config import RunConfig, run_config
from saplan.training.train import resume, train
from tests.reliability import FULL

SIZES: dict[str, Any] = {
    "lanes": 16, "rollout": 4, "hidden": 8, "minibatches": 2, "epochs": 1, "edge_hidden": 8, "edge_batch": 16,
    "edge_steps": 1, "positives": 16, "outcomes": 16, "capacity": 8, "cells": 256,
}  # fmt: skip
SMALL = [word for name, value in SIZES.items() for word in (f"--{name.replace('_', '-')}", str(value))]
"""The same on the command line."""
TABLE = {"nodes": 1024}
"""What the unstructured method has besides."""
GAME = Switches(kinds=2, maps=MapRules(smallest=5, largest=6))
UPDATES = 16
"""Of which a chunk has two, by default too: one compiled program serves all tests."""
STEPS = UPDATES * 64
KILLED_UPDATES = 40 if FULL else UPDATES
"""Of runs in processes of their own: in a full run enough time to kill them at many moments."""
OPERATIONS = ("write", "fsync", "rename", "replace", "mkdir")


def tiny_config(method: str = "structured", seed: int = 0, game: Any = GAME, **more: Any) -> RunConfig:
    """The configuration of a tiny run."""
    from saplan.methods.registry import find_method

    game = make_game(game) if isinstance(game, str) else game
    settings = find_method(method).settings_for(game, False)
    sizes = {name: value for name, value in (SIZES | TABLE).items() if hasattr(settings, name)}
    return run_config(game, STEPS, seed, replace(settings, **(sizes | more)), method, eval_points=0)


def killed_config(case: str) -> RunConfig:
    """The configuration of a run that is killed."""
    from tests.reliability.cases import config_of

    return replace(config_of(case), steps=KILLED_UPDATES * 64)


def train_tiny(run: Path | None, config: RunConfig | None = None, chunk: int = 2, **more: Any) -> Any:
    """Trains it, saving after every chunk."""
    config = config or tiny_config()
    settings: Settings = config.settings
    return train(
        config.game, config.steps, config.seed, settings, run, eval_points=0, method=config.method, chunk=chunk,
        **({"save_every": 0} | more),
    )  # fmt: skip


def die_in_a_save(where: int) -> None:
    """From now on the `where`-th file operation inside saves kills this process; a write, when half is written."""
    left, inside = where, False
    save = Checkpoints.save

    def saving(*arguments: Any) -> Any:
        nonlocal inside
        inside = True
        try:
            return save(*arguments)
        finally:
            inside = False

    def deadly(name: str) -> Any:
        usual = getattr(os, name)

        def operation(*arguments: Any, **words: Any) -> Any:
            nonlocal left
            left -= inside
            if inside and left <= 0:
                if name == "write":
                    usual(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return usual(*arguments, **words)

        return operation

    Checkpoints.save = saving  # type: ignore[method-assign,assignment]
    for name in OPERATIONS:
        setattr(os, name, deadly(name))


if __name__ == "__main__":
    from tests.reliability.cases import world_of

    directory, where, case = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    if where:
        die_in_a_save(where)

    def show(progress: Any) -> None:
        """Lets the parent see that training has begun."""
        print(progress.steps, flush=True)

    if (directory / "config.json").exists():
        resume(directory, world_of(case), progress=show, save_every=0, chunk=2)
    else:
        train_tiny(directory, killed_config(case), progress=show)
