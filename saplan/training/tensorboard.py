"""Metrics of a run for TensorBoard, beside its other files. Needs the extra `tensorboard`."""

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from saplan.errors import InputError, unknown_name
from saplan.training.progress import Progress

TENSORBOARD = "tensorboard"
"""The name of this log, and of its directory in a run."""
LOGS = (TENSORBOARD,)
TAGS = {
    "tasks/success": "success",
    "attempts/success": "attempt_success",
    "attempts/steps": "attempt_steps",
    "memory/known": "known",
    "memory/overflow": "overflow",
    "examples/positive": "positives",
    "examples/negative": "negatives",
    "speed/steps_per_second": "steps_per_second",
}
"""What a curve is called → the metric that it shows."""


def check_log(name: str) -> None:
    """`InputError` unless training can be logged in this way."""
    if name and name not in LOGS:
        raise unknown_name("log", name, LOGS)
    if name and importlib.util.find_spec("tensorboardX") is None:
        raise InputError("--log tensorboard needs tensorboardX: pip install tensorboardX")


class TensorBoardLog:
    """Writes the metrics of one run."""

    def __init__(self, run: Path, steps: int) -> None:
        """Begin at a number of steps: points of an interrupted run after it are replaced."""
        module: Any = importlib.import_module("tensorboardX")
        self.writer = module.SummaryWriter(str(run / TENSORBOARD), purge_step=steps or None)

    def write(self, progress: Progress) -> None:
        """Add one point to every curve; success on tasks only where it was measured."""
        for tag, name in TAGS.items():
            value = getattr(progress, name)
            if value is not None and (name != "success" or progress.evaluated):
                self.writer.add_scalar(tag, value, progress.steps)

    def close(self) -> None:
        """Write everything to disk."""
        self.writer.close()
