"""The actions of episodes, kept so that any step of them can be replayed.

A step is identified by the ticket of its episode (the seed), by its clock, and by its path: a checksum of the actions
that lead there. So two continuations of the same step are two histories of one ticket, and an unknown step is detected.
"""

from array import array
from collections import OrderedDict
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass, field

from saplan.errors import InputError

START = 0
"""The path at clock 0: no actions."""
MOST = 2**22
"""Actions kept, unless the episodes in play need more; with their paths that is 32 MiB."""
OVERHEAD = 100
"""The memory that a history takes besides its actions, in actions."""


def extended(path: int, action: int) -> int:
    """The path after one more action, from 0 to 2³¹ - 1."""
    mixed = ((path + action + 1) * 2654435761) & 0xFFFFFFFF
    return (mixed ^ (mixed >> 15)) & 0x7FFFFFFF


@dataclass(eq=False, slots=True)
class History:
    """One course of an episode: its actions, and the path after each of them."""

    ticket: int
    actions: MutableSequence[int] = field(default_factory=lambda: array("i"))
    paths: MutableSequence[int] = field(default_factory=lambda: array("i"))

    def passes(self, clock: int, path: int) -> bool:
        """Whether this history contains the step."""
        return path == START if clock == 0 else len(self.paths) >= clock and self.paths[clock - 1] == path

    def add(self, action: int) -> None:
        """Appends an action."""
        self.paths.append(extended(self.paths[-1] if self.paths else START, action))
        self.actions.append(action)

    def until(self, clock: int) -> "History":
        """A copy up to a step, to be continued differently."""
        return History(self.ticket, self.actions[:clock], self.paths[:clock])


class Histories:
    """The histories of all episodes; the least recently used are dropped first."""

    def __init__(self, most: int = MOST) -> None:
        """Keeps about `most` actions, and more only while there are fewer than `room` histories."""
        self.most, self.room, self.weight = most, 0, 0
        self.used: OrderedDict[History, None] = OrderedDict()
        self.of: dict[int, dict[History, None]] = {}

    def find(self, ticket: int, clock: int, path: int) -> History:
        """A history that contains a step; `InputError` if there is none."""
        for history in reversed(self.of.get(ticket, {})):
            if history.passes(clock, path):
                self.used.move_to_end(history)
                return history
        if clock == 0 and path == START:
            return self.enter(History(ticket))
        raise InputError(
            f"step {clock} of the episode with seed {ticket} is unknown: it was played in another process, or so long "
            "ago that its actions were dropped"
        )

    def follow(self, history: History, clock: int, action: int) -> History:
        """The history that continues a step of this one by an action: this one, another, or a new one."""
        path = extended(history.paths[clock - 1] if clock else START, action)
        if history.passes(clock + 1, path):
            return history
        if len(history.actions) == clock:
            self.weight += 1
            history.add(action)
            return history
        for other in reversed(self.of.get(history.ticket, {})):
            if other.passes(clock + 1, path):
                self.used.move_to_end(other)
                return other
        branch = history.until(clock)
        branch.add(action)
        return self.enter(branch)

    def enter(self, history: History) -> History:
        """Keeps a history, and drops the least recently used ones if there are too many."""
        self.used[history] = None
        self.of.setdefault(history.ticket, {})[history] = None
        self.weight += len(history.actions) + OVERHEAD
        while self.weight > self.most and len(self.used) > max(self.room, 1):
            self._drop(next(iter(self.used)))
        return history

    def touch(self, history: History) -> None:
        """Marks a history as just used."""
        try:
            self.used.move_to_end(history)
        except KeyError:
            self.enter(history)

    def restore(self, ticket: int, path: int, actions: Sequence[int]) -> None:
        """Adds actions from a file; `InputError` unless they lead to `path`."""
        history = History(ticket)
        for action in actions:
            history.add(action)
        if not history.passes(len(actions), path):
            raise InputError(f"the actions saved for the episode with seed {ticket} do not lead to its state")
        self.enter(history)

    def _drop(self, history: History) -> None:
        self.weight -= len(history.actions) + OVERHEAD
        del self.used[history], self.of[history.ticket][history]
        if not self.of[history.ticket]:
            del self.of[history.ticket]
