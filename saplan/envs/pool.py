"""Environments in several processes: each has a host of its own, and an episode stays with one of them."""

import contextlib
import multiprocessing
import os
import signal
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

from saplan.errors import InputError
from saplan.games.world_errors import one_line

MOST = 256
PATIENCE = 2.0
"""Seconds that processes get to end by themselves."""


class Works(Protocol):
    """What a process does. Every method takes arrays with a row per episode, and returns such arrays."""

    def reset(self, tickets: Any) -> tuple[np.ndarray, ...]:
        """The first moments of episodes."""

    def step(self, tickets: Any, clocks: Any, paths: Any, actions: Any) -> tuple[np.ndarray, ...]:
        """What follows from moments."""

    def recall(self, tickets: Any, clocks: Any, paths: Any) -> tuple[np.ndarray, ...]:
        """The actions that lead to moments."""

    def restore(self, tickets: Any, clocks: Any, paths: Any, actions: Any) -> tuple[np.ndarray, ...]:
        """Takes in such actions."""


@dataclass
class Worker:
    """A process, and the line to it."""

    process: Any
    line: Connection

    def why(self) -> str:
        """Why it is not there any more."""
        self.process.join(PATIENCE)
        code = self.process.exitcode
        if code is None:
            return "does not answer any more"
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            return f"was killed by {name}" + (" (has the machine run out of memory?)" if name == "SIGKILL" else "")
        return f"ended with exit code {code}"


class Pool:
    """Processes that share the episodes out among them by their tickets."""

    def __init__(self, build: Callable[[], Works], processes: int) -> None:
        """Starts the processes; each calls `build`, which must be something that they can import."""
        if not 1 <= processes <= MOST:
            raise InputError(f"processes must lie in 1..{MOST}, got {processes}")
        self.workers: list[Worker] = []
        self.broken: str | None = None
        """What ended the work of this pool for good."""
        self.asked = 0
        """Questions so far: the answer to one that was given up must not be taken for that to the next."""
        self.end = weakref.finalize(self, hang_up, self.workers)
        try:
            # Not forked: threads of JAX do not survive that.
            context = multiprocessing.get_context("spawn")
            with for_children():
                for _ in range(processes):
                    self.workers.append(start(context, build))
            self._gather([(worker, np.zeros(0, int)) for worker in self.workers], "making the world")
        except BaseException:
            self.end()
            raise

    def reset(self, tickets: Any) -> tuple[np.ndarray, ...]:
        """The first moments of episodes."""
        return self._ask("reset", tickets)

    def step(self, tickets: Any, clocks: Any, paths: Any, actions: Any) -> tuple[np.ndarray, ...]:
        """What follows from these moments."""
        return self._ask("step", tickets, clocks, paths, actions)

    def recall(self, tickets: Any, clocks: Any, paths: Any) -> tuple[np.ndarray, ...]:
        """The actions that lead to these moments."""
        return self._ask("recall", tickets, clocks, paths)

    def restore(self, tickets: Any, clocks: Any, paths: Any, actions: Any) -> tuple[np.ndarray, ...]:
        """Takes in such actions."""
        return self._ask("restore", tickets, clocks, paths, actions)

    def _ask(self, what: str, *batch: Any) -> tuple[np.ndarray, ...]:
        """Shares a batch out, lets all work at once, and puts the answers together."""
        if self.broken:
            raise InputError(self.broken)
        shape, size = np.shape(batch[0]), np.size(batch[0])
        columns = [np.asarray(column).reshape(size, *np.shape(column)[len(shape) :]) for column in batch]
        self.asked += 1
        asked = []
        for k, worker in enumerate(self.workers):
            places = np.flatnonzero(columns[0] % len(self.workers) == k)
            if len(places):
                with contextlib.suppress(OSError):  # a process that is not there: `_gather` says why
                    worker.line.send((self.asked, what, [column[places] for column in columns]))
                asked.append((worker, places))
        answers = self._gather(asked, f"a {what} of {size} episodes")
        return tuple(whole.reshape(*shape, *whole.shape[1:]) for whole in merged(asked, answers, size))

    def _gather(self, asked: Sequence[tuple[Worker, np.ndarray]], work: str) -> list[Any]:
        """The answers of these workers, all of them read before any is judged."""
        answers = [self._answer(worker, work) for worker, _ in asked]
        for answer in answers:
            if isinstance(answer, str):
                raise InputError(f"in a process that plays environments: {answer}")
        return answers

    def _answer(self, worker: Worker, work: str) -> Any:
        try:
            number, answer = worker.line.recv()
            while number != self.asked:
                number, answer = worker.line.recv()
        except (EOFError, OSError):
            hint = "" if self.asked else '; does the script guard what it starts by `if __name__ == "__main__":`?'
            self.broken = f"a process that plays environments {worker.why()} during {work}{hint}"
            raise InputError(self.broken) from None
        return answer


def merged(asked: Sequence[tuple[Worker, np.ndarray]], answers: list[Any], size: int) -> list[np.ndarray]:
    """The parts that the workers have answered, put together; rows of different lengths are padded as they are."""
    whole = []
    for parts in zip(*answers, strict=True):
        shape = tuple(max(lengths) for lengths in zip(*(part.shape[1:] for part in parts), strict=True))
        array = np.full((size, *shape), -1 if parts[0].dtype == np.int32 else 0, parts[0].dtype)
        for (_, places), part in zip(asked, parts, strict=True):
            rows: tuple[Any, ...] = (places, *map(slice, part.shape[1:]))
            array[rows] = part
        whole.append(array)
    return whole


def start(context: Any, build: Callable[[], Works]) -> Worker:
    """A process at work."""
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there, build), daemon=True)
    try:
        process.start()
    except OSError as error:
        raise InputError(f"cannot start a process that plays environments: {error}") from None
    except Exception as error:  # whatever pickling says
        raise InputError(f"processes cannot import the world ({error}): use functions of a module") from None
    finally:
        there.close()
    return Worker(process, here)


@contextlib.contextmanager
def for_children() -> Iterator[None]:
    """Processes that start in here leave the accelerator to their parent: each would take most of its memory."""
    name, before = "JAX_PLATFORMS", os.environ.get("JAX_PLATFORMS")
    os.environ[name] = "cpu"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def serve(line: Connection, build: Callable[[], Works]) -> None:
    """The work of a process until the line is closed: answers, each a line of text where something went wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which may want to save
    number = 0
    try:
        host = build()
        line.send((number, ()))
        while True:
            number, what, columns = line.recv()
            try:
                answer: Any = getattr(host, what)(*columns)
            except Exception as error:
                answer = one_line(error)
            line.send((number, answer))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except BaseException as error:  # SystemExit, too
        sys.stderr.flush()
        with contextlib.suppress(OSError):
            line.send((number, one_line(error)))


def hang_up(workers: list[Worker]) -> None:
    """Ends the processes: those that are still at work after a moment are stopped."""
    for worker in workers:
        worker.line.close()
    ends = time.monotonic() + PATIENCE
    for worker in workers:
        worker.process.join(max(0.0, ends - time.monotonic()))
    for stop in ("terminate", "kill"):
        alive = [worker.process for worker in workers if worker.process.is_alive()]
        for process in alive:
            getattr(process, stop)()
        for process in alive:
            process.join(1.0)
