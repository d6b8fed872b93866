"""The progress of a training run, and how it is printed."""

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Progress:
    """The state of training after a chunk of updates."""

    steps: int
    total: int
    seconds: float
    steps_per_second: float
    success: float | None
    """Share of held-back tasks that succeeded in the last evaluation."""
    evaluated: bool
    """Whether that evaluation followed this chunk."""
    known: int
    """Size of 𝓑, or of a method's counterpart to it."""
    counts: str
    """What `known` counts."""
    overflow: int
    positives: int
    negatives: int
    """Examples that exploration and execution have given the edge detector so far."""
    attempt_success: float
    attempt_steps: float

    def line(self) -> str:
        """One line of text."""
        seconds = (self.total - self.steps) / self.steps_per_second if self.steps_per_second else None
        left = "?" if seconds is None else f"{seconds:.0f}"
        evaluated = "–" if self.success is None else f"{self.success:.1%}"
        return (
            f"{self.steps / 1e6:.2f}/{self.total / 1e6:.2f} M steps  {self.steps_per_second / 1e3:.0f} k/s  "
            f"tasks {evaluated}  attempts {self.attempt_success:.1%} in {self.attempt_steps:.1f}  "
            f"{self.counts} {self.known}  +{self.positives} -{self.negatives}  {left} s left"
        )


ProgressCallback = Callable[[Progress], None]


def mean_progress(each: list[Progress]) -> Progress:
    """The mean over seeds."""
    mean = {
        name: sum(values) / len(each)
        for name, values in ((n, [getattr(p, n) for p in each]) for n in Progress.__dataclass_fields__)
        if not isinstance(values[0], str | bool) and None not in values
    }
    whole = {name: int(mean[name]) for name in ("steps", "total", "known", "overflow", "positives", "negatives")}
    return replace(each[0], **{**mean, **whole})


def print_progress(text: str, end: str = "\n") -> None:
    """Print on standard error, ignoring a failure: a full disk behind it must not stop training."""
    with contextlib.suppress(OSError):
        print(text, end=end, file=sys.stderr, flush=True)


class Counter:
    """Prints a count of work done: in place on a terminal, one line every few seconds elsewhere."""

    def __init__(self, what: str, total: int) -> None:
        """Start at zero."""
        self.what, self.total, self.in_place = what, total, sys.stderr.isatty()
        self.printed = time.monotonic()

    def __call__(self, done: int, loss: float | None = None) -> None:
        """Print the count, unless it was printed a moment ago."""
        if time.monotonic() - self.printed > (0.1 if self.in_place else 5.0):
            self.printed = time.monotonic()
            text = f"{done}/{self.total} {self.what}" + ("" if loss is None else f"  loss {loss:.4f}")
            print_progress(f"\r{text:<60}" if self.in_place else text, end="" if self.in_place else "\n")

    def close(self) -> None:
        """Clear the line."""
        if self.in_place:
            print_progress(f"\r{'':<60}\r", end="")
