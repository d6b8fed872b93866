"""Environments in several processes: each process has a host of its own, and an episode stays in one process."""

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
from typing import Any, Protocol, runtime_checkable

import numpy as np

from saplan.errors import InputError
from saplan.games.world_errors import one_line

MOST = 256
PATIENCE = 2.0
"""Seconds that processes get to end by themselves."""
Batch = tuple[np.ndarray, ...]
"""Arrays with one row per episode."""


@runtime_checkable
class EpisodeServer(Protocol):
    """The host interface: every method takes and returns arrays with one row per episode (see `episodes`)."""

    def reset(self, tickets: Any) -> Batch:
        """The first steps of episodes."""

    def step(self, tickets: Any, clocks: Any, paths: Any, actions: Any) -> Batch:
        """The steps that follow these actions."""

    def recall(self, tickets: Any, clocks: Any, paths: Any) -> Batch:
        """The actions that lead to these steps."""

    def restore(self, tickets: Any, clocks: Any, paths: Any, actions: Any) -> Batch:
        """Accepts actions that `recall` returned."""


@dataclass
class Worker:
    """A process and the connection to it."""

    process: Any
    line: Connection

    def why_gone(self) -> str:
        """The reason why it does not answer, as the end of a sentence."""
        self.process.join(PATIENCE)
        code = self.process.exitcode
        if code is None:
            return "does not answer any more"
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            return f"was killed by {name}" + (" (has the machine run out of memory?)" if name == "SIGKILL" else "")
        return f"ended with exit code {code}"


class Pool:
    """Processes that share the episodes by ticket."""

    def __init__(self, build: Callable[[], Any], processes: int) -> None:
        """Starts the processes; each calls `build`, which must be importable there."""
        if not 1 <= processes <= MOST:
            raise InputError(f"processes must lie in 1..{MOST}, got {processes}")
        self.workers: list[Worker] = []
        self.broken: str | None = None
        """The error that ended the work of this pool for good."""
        self.asked = 0
        """Number of the latest question: a late answer to an abandoned question must not be taken for another's."""
        self.end = weakref.finalize(self, stop_workers, self.workers)
        try:
            # Not forked: threads of JAX do not survive that.
            context = multiprocessing.get_context("spawn")
            with on_cpu():
                for _ in range(processes):
                    self.workers.append(start_worker(context, build))
            self._gather([(worker, np.zeros(0, int)) for worker in self.workers], "making the world")
        except BaseException:
            self.end()
            raise

    def reset(self, tickets: Any) -> Batch:
        """The first steps of episodes."""
        return self._ask("reset", tickets)

    def step(self, tickets: Any, clocks: Any, paths: Any, actions: Any) -> Batch:
        """The steps that follow these actions."""
        return self._ask("step", tickets, clocks, paths, actions)

    def recall(self, tickets: Any, clocks: Any, paths: Any) -> Batch:
        """The actions that lead to these steps."""
        return self._ask("recall", tickets, clocks, paths)

    def restore(self, tickets: Any, clocks: Any, paths: Any, actions: Any) -> Batch:
        """Accepts actions that `recall` returned."""
        return self._ask("restore", tickets, clocks, paths, actions)

    def _ask(self, method: str, *batch: Any) -> Batch:
        """Distributes a batch over the workers, which compute at the same time, and merges their answers."""
        if self.broken:
            raise InputError(self.broken)
        shape, size = np.shape(batch[0]), np.size(batch[0])
        columns = [np.asarray(column).reshape(size, *np.shape(column)[len(shape) :]) for column in batch]
        self.asked += 1
        asked = []
        for k, worker in enumerate(self.workers):
            rows = np.flatnonzero(columns[0] % len(self.workers) == k)
            if len(rows):
                with contextlib.suppress(OSError):  # the process is gone: `_gather` says why
                    worker.line.send((self.asked, method, [column[rows] for column in columns]))
                asked.append((worker, rows))
        answers = self._gather(asked, f"a {method} of {size} episodes")
        return tuple(whole.reshape(*shape, *whole.shape[1:]) for whole in merge_answers(asked, answers, size))

    def ask_all(self, method: str, *batch: Any, work: str) -> None:
        """Has all workers compute at the same time, on memory that they share."""
        if self.broken:
            raise InputError(self.broken)
        self.asked += 1
        for worker in self.workers:
            with contextlib.suppress(OSError):  # the process is gone: `_gather` says why
                worker.line.send((self.asked, method, batch))
        self._gather([(worker, np.zeros(0, int)) for worker in self.workers], work)

    def _gather(self, asked: Sequence[tuple[Worker, np.ndarray]], work: str) -> list[Any]:
        """The answers of these workers; all are read before the first error is raised."""
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
            hint = "" if self.asked else '; does the script have an `if __name__ == "__main__":` guard?'
            self.broken = f"a process that plays environments {worker.why_gone()} during {work}{hint}"
            raise InputError(self.broken) from None
        return answer


def merge_answers(asked: Sequence[tuple[Worker, np.ndarray]], answers: list[Any], size: int) -> list[np.ndarray]:
    """The workers' answers in the order of the batch; shorter rows of actions are padded with -1."""
    whole = []
    for parts in zip(*answers, strict=True):
        shape = tuple(max(lengths) for lengths in zip(*(part.shape[1:] for part in parts), strict=True))
        array = np.full((size, *shape), -1 if parts[0].dtype == np.int32 else 0, parts[0].dtype)
        for (_, rows), part in zip(asked, parts, strict=True):
            target: tuple[Any, ...] = (rows, *map(slice, part.shape[1:]))
            array[target] = part
        whole.append(array)
    return whole


def start_worker(context: Any, build: Callable[[], Any]) -> Worker:
    """A started process that serves `build()`."""
    here, there = context.Pipe()
    process = context.Process(target=serve_episodes, args=(there, build), daemon=True)
    try:
        process.start()
    except OSError as error:
        raise InputError(f"cannot start a process that plays environments: {error}") from None
    except Exception as error:  # pickling raises many kinds
        raise InputError(f"processes cannot import the world ({error}): use functions of a module") from None
    finally:
        there.close()
    return Worker(process, here)


@contextlib.contextmanager
def on_cpu() -> Iterator[None]:
    """Keeps processes that start in this context off the accelerator: each would reserve most of its memory."""
    name, before = "JAX_PLATFORMS", os.environ.get("JAX_PLATFORMS")
    os.environ[name] = "cpu"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def serve_episodes(line: Connection, build: Callable[[], Any]) -> None:
    """Answers questions until the connection closes; the answer to a failed one is a line of text."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which may want to save
    number = 0
    try:
        host = build()
        line.send((number, ()))
        while True:
            number, method, columns = line.recv()
            try:
                answer: Any = getattr(host, method)(*columns)
            except Exception as error:
                answer = one_line(error)
            line.send((number, answer))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except BaseException as error:  # SystemExit, too
        sys.stderr.flush()
        with contextlib.suppress(OSError):
            line.send((number, one_line(error)))


def stop_workers(workers: list[Worker]) -> None:
    """Closes the connections, waits a moment, and stops the processes that are still running."""
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
