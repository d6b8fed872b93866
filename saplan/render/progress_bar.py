"""Training progress on a terminal."""

import sys
import time
from typing import Any

from saplan.training.progress import Progress, print_progress


class ProgressBar:
    """Shows progress: one bar on a terminal, a plain line every few seconds elsewhere."""

    def __init__(self, every: float = 5.0) -> None:
        """`every` is the time between plain lines, in seconds."""
        self.every, self.last = every, 0.0
        self.bar: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            console = Console(stderr=True)
            columns = (BarColumn(20), TextColumn("{task.description}"))
            self.bar = Bar(*columns, console=console, transient=False)
            self.bar.start()
            self.task = self.bar.add_task("compiling …", total=None)

    def __call__(self, progress: Progress) -> None:
        """Shows the latest progress."""
        if self.bar is not None:
            self.bar.update(self.task, description=progress.line(), total=progress.total, completed=progress.steps)
        elif time.monotonic() - self.last > self.every or progress.steps >= progress.total:
            self.last = time.monotonic()
            print_progress(progress.line())

    def close(self) -> None:
        """Stops the bar; its last state stays on the terminal."""
        if self.bar is not None:
            self.bar.stop()
