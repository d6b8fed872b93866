"""Episodes of Gymnasium environments on the host, which can be continued from any earlier step.

An environment is found by the ticket of its episode, which is the seed. If it has reached another step than the one
requested, or plays another episode by now, the host replays the episode up to that step. The result is the same if the
environment is deterministic given its seed and its actions.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Array, Int32

from saplan.envs.histories import START, Histories, History
from saplan.envs.player import GymPlayer, Snapshot, checked_player
from saplan.errors import InputError

Numbers = Int32[Array, "*lanes"] | Int32[np.ndarray, "*lanes"]
SPARE = 4
"""Environments kept per episode of the largest batch: for the episodes in play, the next ones, and those of another
batch. Fewer would be slower and give the same results.
"""
RECENT = 256
"""Calls after which the size of a large batch no longer counts, and its environments are released."""
PADDING = -1
"""Fills a row of actions after its end."""


@dataclass
class Episode:
    """An environment and the step that its episode has reached."""

    player: GymPlayer
    history: History
    clock: int
    last: Snapshot

    @property
    def now(self) -> tuple[int, Snapshot]:
        """The path to the current step, and its snapshot."""
        return self.history.paths[self.clock - 1] if self.clock else START, self.last


class Host:
    """The environments behind the tickets. All methods take arrays with one entry per episode."""

    def __init__(self, make: Callable[[], GymPlayer]) -> None:
        """Makes one environment, to read its spaces."""
        self.make = make
        self.live: OrderedDict[int, Episode] = OrderedDict()
        self.idle: list[GymPlayer] = [checked_player(make)]
        self.sizes: deque[int] = deque(maxlen=RECENT)
        self.histories = Histories()
        player = self.idle[0]
        self.space, self.reader, self.actions = player.space, player.reader, player.actions

    def reset(self, tickets: Numbers) -> tuple[np.ndarray, ...]:
        """The first steps of episodes."""
        self._make_room(tickets.size)
        return read_batch(
            tickets.shape, [self._at(ticket, 0, START).now for ticket in as_list(tickets)], self.reader.dtype
        )

    def step(self, tickets: Numbers, clocks: Numbers, paths: Numbers, actions: Numbers) -> tuple[np.ndarray, ...]:
        """The steps that follow these actions."""
        self._make_room(tickets.size)
        each = zip(as_list(tickets), as_list(clocks), as_list(paths), as_list(actions), strict=True)
        return read_batch(tickets.shape, [self._advance(*one) for one in each], self.reader.dtype)

    def recall(self, tickets: Numbers, clocks: Numbers, paths: Numbers) -> tuple[np.ndarray, ...]:
        """The actions that lead to these steps: one row per episode, padded at its end."""
        rows = np.full((tickets.size, int(clocks.max(initial=0))), PADDING, np.int32)
        each = zip(as_list(tickets), as_list(clocks), as_list(paths), strict=True)
        for row, (ticket, clock, path) in zip(rows, each, strict=True):
            row[:clock] = self.histories.find(ticket, clock, path).actions[:clock]
        return (rows.reshape(*tickets.shape, rows.shape[-1]),)

    def restore(self, tickets: Numbers, clocks: Numbers, paths: Numbers, actions: np.ndarray) -> tuple[np.ndarray, ...]:
        """Accepts actions that `recall` returned in any process; `InputError` if they do not fit the steps."""
        rows = actions.reshape(tickets.size, actions.shape[-1])
        for ticket, clock, path, row in zip(as_list(tickets), as_list(clocks), as_list(paths), rows, strict=True):
            played = row[:clock].tolist()
            if len(played) != clock or not all(0 <= action < self.actions for action in played):
                raise InputError(f"the actions saved for the episode with seed {ticket} do not fit its clock")
            self.histories.restore(ticket, path, played)
        return ()

    def picture(self, ticket: int, clock: int, path: int) -> np.ndarray:
        """The environment's own picture of a step."""
        return self._at(ticket, clock, path).player.picture()

    def _make_room(self, size: int) -> None:
        """Keeps as many environments as recent batches needed, and releases the rest."""
        self.sizes.append(size)
        room = self.histories.room = SPARE * max(self.sizes)
        while len(self.live) > room:
            self.idle.append(self.live.popitem(last=False)[1].player)
        del self.idle[max(room - len(self.live), 1) :]

    def _at(self, ticket: int, clock: int, path: int) -> Episode:
        """An episode at this step: as it stands, or replayed."""
        episode = self.live.get(ticket)
        if episode is None or episode.clock != clock or not episode.history.passes(clock, path):
            history = self.histories.find(ticket, clock, path)
            episode = self._begin(history)
            for action in history.actions[:clock]:
                self._take(episode, action)
            self.live[ticket] = episode
        self.histories.touch(episode.history)
        self.live.move_to_end(ticket)
        return episode

    def _begin(self, history: History) -> Episode:
        """An episode at its start, in the environment that had its ticket, or in any free one."""
        known = self.live.pop(history.ticket, None)
        while len(self.live) >= max(self.histories.room, 1):
            self.idle.append(self.live.popitem(last=False)[1].player)
        player = known.player if known else self.idle.pop() if self.idle else self.make()
        return Episode(player, history, 0, player.reset(history.ticket))

    def _advance(self, ticket: int, clock: int, path: int, action: int) -> tuple[int, Snapshot]:
        episode = self._at(ticket, clock, path)
        try:
            self._take(episode, action)
        except BaseException:
            del self.live[ticket]  # its environment may be in any state
            raise
        episode.history = self.histories.follow(episode.history, clock, action)
        return episode.now

    def _take(self, episode: Episode, action: int) -> None:
        if not episode.last.over:
            episode.last = episode.player.step(action, episode.last.rho)
        episode.clock += 1


def read_batch(shape: tuple[int, ...], rows: list[tuple[int, Snapshot]], dtype: Any) -> tuple[np.ndarray, ...]:
    """Paths, observations, attributes and ends of steps, as arrays."""
    paths, snapshots = zip(*rows, strict=True)
    seen, rho, over, lost = zip(*snapshots, strict=True)
    observations, attributes = np.array(seen, dtype), np.array(rho, np.float32)
    path, *flags = (np.array(each).reshape(shape) for each in (np.array(paths, np.int32), over, lost))
    return path, observations.reshape(*shape, -1), attributes.reshape(*shape, -1), *flags


def as_list(batch: Any) -> list[int]:
    """Plain numbers: reading them from a JAX array one by one costs more than a step of many environments."""
    return np.asarray(batch).reshape(-1).tolist()
