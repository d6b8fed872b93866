"""The actions of episodes, kept so that any moment of them can be played again.

A moment is known by the ticket of its episode (its seed), by its clock, and by its path: a checksum of the actions that
lead there. So two ways on from the same moment are two histories of one ticket, and a moment that nothing is known of
is recognised as such.
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
"""What a history weighs besides its actions."""


def extended(path: int, action: int) -> int:
    """The path after one more action, from 0 to 2³¹ - 1."""
    mixed = ((path + action + 1) * 2654435761) & 0xFFFFFFFF
    return (mixed ^ (mixed >> 15)) & 0x7FFFFFFF


@dataclass(eq=False, slots=True)
class History:
    """One way through an episode: its actions, and the path after each of them."""

    ticket: int
    actions: MutableSequence[int] = field(default_factory=lambda: array("i"))
    paths: MutableSequence[int] = field(default_factory=lambda: array("i"))

    def passes(self, clock: int, path: int) -> bool:
        """Whether it leads through this moment."""
        return path == START if clock == 0 else len(self.paths) >= clock and self.paths[clock - 1] == path

    def add(self, action: int) -> None:
        """One more action at its end."""
        self.paths.append(extended(self.paths[-1] if self.paths else START, action))
        self.actions.append(action)

    def until(self, clock: int) -> "History":
        """The same way up to a moment, to go on differently."""
        return History(self.ticket, self.actions[:clock], self.paths[:clock])


class Histories:
    """The ways through all episodes, those used last kept longest."""

    def __init__(self, most: int = MOST) -> None:
        """Keeps about `most` actions, and more only as long as the histories are fewer than `room`."""
        self.most, self.room, self.weight = most, 0, 0
        self.used: OrderedDict[History, None] = OrderedDict()
        self.of: dict[int, dict[History, None]] = {}

    def find(self, ticket: int, clock: int, path: int) -> History:
        """A history that leads through a moment; `InputError` if none does."""
        for history in reversed(self.of.get(ticket, {})):
            if history.passes(clock, path):
                self.used.move_to_end(history)
                return history
        if clock == 0 and path == START:
            return self.enter(History(ticket))
        raise InputError(
            f"moment {clock} of the episode with seed {ticket} is unknown: it was played in another process, or so "
            "long ago that its actions are forgotten"
        )

    def follow(self, history: History, clock: int, action: int) -> History:
        """The history that leads from a moment of this one through an action: this one, another, or a new one."""
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
        """Keeps a history, and forgets those that were not used for longest."""
        self.used[history] = None
        self.of.setdefault(history.ticket, {})[history] = None
        self.weight += len(history.actions) + OVERHEAD
        while self.weight > self.most and len(self.used) > max(self.room, 1):
            self._forget(next(iter(self.used)))
        return history

    def touch(self, history: History) -> None:
        """Marks a history as used just now."""
        try:
            self.used.move_to_end(history)
        except KeyError:
            self.enter(history)

    def restore(self, ticket: int, path: int, actions: Sequence[int]) -> None:
        """Takes in actions that come from a file; `InputError` unless they lead to `path`."""
        history = History(ticket)
        for action in actions:
            history.add(action)
        if not history.passes(len(actions), path):
            raise InputError(
                f"the actions saved for the episode with seed {ticket} are not those that led to its state"
            )
        self.enter(history)

    def _forget(self, history: History) -> None:
        self.weight -= len(history.actions) + OVERHEAD
        del self.used[history], self.of[history.ticket][history]
        if not self.of[history.ticket]:
            del self.of[history.ticket]
