"""Progress of long work: that of a training run, and how any progress is printed on standard error."""

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

SOON = 2.0
"""Seconds after which a person wants to see progress."""
SELDOM = 5.0
"""Seconds between two lines where they cannot be written in place."""
BAR = 16
"""Characters of a bar."""
Item = TypeVar("Item")


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
        rate = self.steps_per_second  # 0 after the first chunk, whose time is that of compiling
        pace = f"{rate / 1e3:.0f} k/s  {(self.total - self.steps) / rate:.0f} s left  " if rate else ""
        evaluated = "–" if self.success is None else f"{self.success:.1%}"
        return (
            f"{self.steps / 1e6:.2f}/{self.total / 1e6:.2f} M steps  {pace}tasks {evaluated}  "
            f"attempts {self.attempt_success:.1%} in {self.attempt_steps:.1f}  "
            f"{self.counts} {self.known}  +{self.positives} -{self.negatives}"
        )


LEGEND = """tasks: held-back tasks solved   attempts: those that succeed, and their steps
|𝓑|: changes found   + and -: examples of changes that happened and that failed"""
"""What the words of a line mean, at most 80 columns wide."""
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


def in_place() -> bool:
    """Whether a line on standard error can be overwritten: in a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class StatusLine:
    """One line about work in progress: overwritten in a terminal or notebook, elsewhere a new line now and then."""

    def __init__(self, every: float = SELDOM) -> None:
        """`every` is the time between lines that are not overwritten, in seconds."""
        self.in_place, self.every = in_place(), every
        self.printed, self.width = -every, 0

    def show(self, text: str, at_once: bool = False) -> None:
        """Print the text, unless a line was printed a moment ago."""
        if not at_once and time.monotonic() - self.printed < (0.1 if self.in_place else self.every):
            return
        self.printed = time.monotonic()
        if self.in_place:
            text = text[: shutil.get_terminal_size((120, 24)).columns - 1]
            print_progress("\r" + text.ljust(self.width), end="")
            self.width = len(text)
        else:
            print_progress(text)

    def close(self, keep: bool = False) -> None:
        """End the line, which stays if `keep`, and is cleared otherwise."""
        if self.in_place and self.width:
            print_progress("" if keep else "\r" + " " * self.width + "\r", end="\n" if keep else "")
        self.width = 0


class ProgressBar:
    """Shows the progress of training: a bar in a terminal or notebook, a plain line every few seconds elsewhere."""

    def __init__(self, every: float = SELDOM) -> None:
        """`every` is the time between plain lines, in seconds."""
        self.line, self.compiling, self.explained = StatusLine(every), contextlib.ExitStack(), False
        self.compiling.enter_context(waiting("compiling (a minute or two, once per training)"))

    def __call__(self, progress: Progress) -> None:
        """Show the latest progress."""
        self.compiling.close()
        if not self.explained:
            self.explained = True
            print_progress(LEGEND)
        done = round(BAR * progress.steps / progress.total)
        bar = "━" * done + "╌" * (BAR - done) + " " if self.line.in_place else ""
        self.line.show(bar + progress.line(), at_once=progress.steps >= progress.total)

    def close(self) -> None:
        """Stop the bar; its last state stays on the terminal."""
        self.compiling.close()
        self.line.close(keep=True)


@contextlib.contextmanager
def shown(progress: ProgressCallback | bool | None) -> Iterator[ProgressCallback | None]:
    """What reports progress: the given function; a bar for True; a bar in a terminal or notebook for None; or None."""
    if callable(progress):
        yield progress
    elif progress or (progress is None and in_place()):
        with contextlib.closing(ProgressBar()) as bar:
            yield bar
    else:
        yield None


@contextlib.contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Prints what takes more than two seconds, with the seconds so far.

    Yields a function that changes the words, for work that knows how far it has come.
    """
    said, done, line, began = [what], threading.Event(), StatusLine(), time.monotonic()

    def tell() -> None:
        pause = SOON
        while not done.wait(pause):
            line.show(f"{said[0]} … {time.monotonic() - began:.0f} s")
            pause = 0.5

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield lambda words: said.__setitem__(0, words)
    finally:
        done.set()
        thread.join()
        line.close()


def patiently(items: Iterator[Item], what: str) -> Iterator[Item]:
    """The items; prints which one takes more than two seconds."""
    while True:
        with waiting(what):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item


class Counter:
    """Prints a count of work done."""

    def __init__(self, what: str, total: int) -> None:
        """Start at zero."""
        self.what, self.total, self.line = what, total, StatusLine()

    def __call__(self, done: int, loss: float | None = None) -> None:
        """Print the count, unless it was printed a moment ago."""
        self.line.show(f"{done}/{self.total} {self.what}" + ("" if loss is None else f"  loss {loss:.4f}"))

    def close(self) -> None:
        """Clear the line."""
        self.line.close()
