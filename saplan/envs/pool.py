"""Environments in several processes: each has a host of its own, and an episode stays with one of them."""

import multiprocessing
import weakref
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

from saplan.errors import InputError

MOST = 256


class Works(Protocol):
    """What a process does."""

    def reset(self, tickets: Any) -> tuple[np.ndarray, ...]:
        """The first moments of episodes."""

    def step(self, tickets: Any, clocks: Any, actions: Any) -> tuple[np.ndarray, ...]:
        """What follows from moments."""


class Pool:
    """Processes that share the episodes out among them by their tickets."""

    def __init__(self, build: Callable[[], Works], processes: int) -> None:
        """Starts the processes; each calls `build`, which must be something that they can import."""
        if not 1 <= processes <= MOST:
            raise InputError(f"processes must lie in 1..{MOST}, got {processes}")
        # Not forked: threads of JAX do not survive that.
        context = multiprocessing.get_context("spawn")
        self.lines: list[Connection] = []
        running = []
        for _ in range(processes):
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(there, build), daemon=True)
            try:
                process.start()
            except (AttributeError, TypeError) as error:
                raise InputError(f"processes cannot import the world ({error}): use functions of a module") from None
            there.close()
            self.lines.append(here)
            running.append(process)
        weakref.finalize(self, hang_up, self.lines, running)
        self._gather([(line, np.zeros(0, int)) for line in self.lines])

    def reset(self, tickets: Any) -> tuple[np.ndarray, ...]:
        """The first moments of episodes."""
        return self._ask("reset", tickets)

    def step(self, tickets: Any, clocks: Any, actions: Any) -> tuple[np.ndarray, ...]:
        """What follows from these moments."""
        return self._ask("step", tickets, clocks, actions)

    def _ask(self, what: str, *batch: Any) -> tuple[np.ndarray, ...]:
        """Shares a batch out, lets all work at once, and puts the answers together."""
        shape, columns = np.shape(batch[0]), [np.asarray(column).reshape(-1) for column in batch]
        asked = []
        for k, line in enumerate(self.lines):
            places = np.flatnonzero(columns[0] % len(self.lines) == k)
            if len(places):
                line.send((what, [column[places] for column in columns]))
                asked.append((line, places))
        answers = self._gather(asked)
        whole = [np.empty((columns[0].size, *part.shape[1:]), part.dtype) for part in answers[0]]
        for (_, places), answer in zip(asked, answers, strict=True):
            for array, part in zip(whole, answer, strict=True):
                array[places] = part
        return tuple(array.reshape(*shape, *array.shape[1:]) for array in whole)

    def _gather(self, asked: Sequence[tuple[Connection, np.ndarray]]) -> list[Any]:
        answers = []
        for line, _ in asked:
            try:
                answers.append(line.recv())
            except EOFError:
                raise InputError("a process that plays environments has died; nothing is known of why") from None
        for answer in answers:
            if isinstance(answer, str):
                raise InputError(f"in a process that plays environments: {answer}")
        return answers


def serve(line: Connection, build: Callable[[], Works]) -> None:
    """What a process does until nobody is listening: answers, with a line of text where something went wrong."""
    host: Works | None = None
    try:
        host = build()
        line.send(())
        while True:
            what, columns = line.recv()
            try:
                line.send(getattr(host, what)(*columns))
            except Exception as error:
                line.send(f"{type(error).__name__}: {error}")
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return
    except Exception as error:
        line.send(f"{type(error).__name__}: {error}")


def hang_up(lines: list[Connection], running: list[Any]) -> None:
    """Ends the processes."""
    for line in lines:
        line.close()
    for process in running:
        process.join(timeout=2)
        if process.is_alive():
            process.terminate()
