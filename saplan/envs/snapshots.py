"""Episodes of environments whose states can be saved and set: one environment per process plays them all.

Every step that was played is kept as a snapshot: the state of the environment as plain numbers. So any step can be
continued, in any order and in any process, without an environment of its own and without replaying its episode. The
processes share the rows of a batch in memory, and each takes the next row as soon as it is free.
"""

import multiprocessing
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from saplan.envs.episodes import PADDING, Numbers, as_list, read_batch
from saplan.envs.histories import START, extended
from saplan.envs.player import GymPlayer, Snapshot
from saplan.envs.pool import Batch, Pool
from saplan.errors import InputError

ROWS = 256
"""Episodes that are stepped at the same time; larger batches are played in turn."""
KEPT, BATCHES = 2**13, 128
"""Snapshots kept, or those of the last batches of steps if they are more."""
RESET = -1
"""Stands in place of an action where an episode begins."""
Key = tuple[int, int, int]
"""Ticket, clock and path: a step of an episode."""


@runtime_checkable
class Restorable(Protocol):
    """An environment whose state can be saved and set. What it does next depends on that state and its actions."""

    def get_state(self) -> Float[np.ndarray, "S"]:
        """The state as numbers, as many at every step."""

    def set_state(self, state: Float[np.ndarray, "S"]) -> None:
        """Continue from a state that `get_state` returned, here or in another process."""


@dataclass(frozen=True)
class Rows:
    """One batch of steps in memory that processes share: starts and actions in, snapshots out."""

    arrays: tuple[tuple[str, Any, tuple[int, ...], str], ...]
    """Name, memory, shape and type of every array."""
    taken: Any
    """The number of rows that some process has taken."""

    @classmethod
    def allocate(cls, state: np.ndarray, snapshot: Snapshot) -> "Rows":
        """Room for `ROWS` steps like this one."""
        context = multiprocessing.get_context("spawn")
        kinds: dict[str, np.ndarray] = {
            "ticket": np.zeros((), np.int64), "action": np.zeros((), np.int32), "state": state.astype(float)
        }  # fmt: skip
        kinds |= {name: np.asarray(value) for name, value in snapshot._asdict().items()}
        made = []
        for name, example in kinds.items():
            shape = (ROWS, *example.shape)
            memory = context.RawArray("b", int(np.prod(shape)) * example.itemsize)
            made.append((name, memory, shape, example.dtype.str))
        return cls(tuple(made), context.Value("i", 0))

    def views(self) -> dict[str, np.ndarray]:
        """The arrays by name."""
        return {
            name: np.frombuffer(memory, kind, int(np.prod(shape))).reshape(shape)
            for name, memory, shape, kind in self.arrays
        }

    def next(self) -> int:
        """Takes a row that no other process has."""
        with self.taken.get_lock():
            self.taken.value += 1
            return int(self.taken.value) - 1


class RowPlayer:
    """Plays rows with one environment, in this process."""

    def __init__(self, make: Callable[[], GymPlayer], rows: Rows) -> None:
        """Makes the environment."""
        self.player, self.rows, self.views = make(), rows, rows.views()

    def play(self, count: Any) -> Batch:
        """Steps rows until the first `count` are taken."""
        while (row := self.rows.next()) < int(np.max(count)):
            self._play(row)
        return ()

    def _play(self, row: int) -> None:
        views, env = self.views, self.player.env
        if views["action"][row] == RESET:
            snapshot = self.player.reset(int(views["ticket"][row]))
        else:
            env.set_state(views["state"][row])  # type: ignore[attr-defined]
            snapshot = self.player.step(int(views["action"][row]), views["rho"][row])
        views["state"][row] = env.get_state()  # type: ignore[attr-defined]
        for name, value in snapshot._asdict().items():
            views[name][row] = value


class Kept(NamedTuple):
    """A step that was played, and how it came about."""

    state: np.ndarray
    snapshot: Snapshot
    actions: "tuple[Any, int] | None"
    """The actions before the last one, and the last one; None at the start."""


class SnapshotHost:
    """The episodes behind the tickets, played from snapshots; the interface is that of `episodes.Host`."""

    def __init__(self, make: Callable[[], GymPlayer], processes: int = 0, player: GymPlayer | None = None) -> None:
        """Makes one environment, if none is given, and one more in each of the processes."""
        self.player = player or make()
        first, env = self.player.reset(0), self.player.env
        assert isinstance(env, Restorable)
        self.space, self.reader, self.actions = self.player.space, self.player.reader, self.player.actions
        self.rows = Rows.allocate(env.get_state(), first)
        self.views = self.rows.views()
        self.local = RowPlayer(lambda: self.player, self.rows)
        self.pool = Pool(partial(RowPlayer, make, self.rows), processes) if processes else None
        self.kept: OrderedDict[Key, Kept] = OrderedDict()
        self.most = KEPT

    def reset(self, tickets: Numbers) -> Batch:
        """The first steps of episodes."""
        keys = [(ticket, 0, START) for ticket in as_list(tickets)]
        self._play([(key, None, RESET) for key in keys if key not in self.kept])
        return self._batch(tickets.shape, keys)

    def step(self, tickets: Numbers, clocks: Numbers, paths: Numbers, actions: Numbers) -> Batch:
        """The steps that follow these actions."""
        before, chosen = self._keys(tickets, clocks, paths), as_list(actions)
        after = [(t, c + 1, extended(p, a)) for (t, c, p), a in zip(before, chosen, strict=True)]
        rows = zip(after, map(self._find, before), chosen, strict=True)
        self._play([row for row in rows if row[0] not in self.kept])
        return self._batch(tickets.shape, after)

    def recall(self, tickets: Numbers, clocks: Numbers, paths: Numbers) -> Batch:
        """The actions that lead to these steps: one row per episode, padded at its end."""
        rows = np.full((tickets.size, int(clocks.max(initial=0))), PADDING, np.int32)
        for row, key in zip(rows, self._keys(tickets, clocks, paths), strict=True):
            left = self._find(key).actions
            for clock in reversed(range(key[1])):
                assert left is not None
                left, row[clock] = left
        return (rows.reshape(*tickets.shape, rows.shape[-1]),)

    def restore(self, tickets: Numbers, clocks: Numbers, paths: Numbers, actions: np.ndarray) -> Batch:
        """Plays the actions that `recall` returned in any process; `InputError` if they do not fit the steps."""
        rows, ends = actions.reshape(tickets.size, actions.shape[-1]), self._keys(tickets, clocks, paths)
        for (ticket, clock, _), row in zip(ends, rows, strict=True):
            if len(row) < clock or not all(0 <= action < self.actions for action in row[:clock].tolist()):
                raise InputError(f"the actions saved for the episode with seed {ticket} do not fit its clock")
        here = {k: (ticket, 0, START) for k, (ticket, _, _) in enumerate(ends)}
        self.reset(np.array([key[0] for key in ends], np.int32))
        for clock in range(rows.shape[-1]):
            moving = [k for k, end in enumerate(ends) if clock < end[1]]
            seeds, clocks, paths = (np.array([here[k][part] for k in moving], np.int32) for part in range(3))
            taken = rows[moving, clock]
            self.step(seeds, clocks, paths, taken)
            here |= {
                k: (here[k][0], clock + 1, extended(here[k][2], int(a))) for k, a in zip(moving, taken, strict=True)
            }
        for k, key in enumerate(ends):
            if here[k] != key:
                raise InputError(f"the actions saved for the episode with seed {key[0]} do not lead to its state")
        return ()

    def picture(self, ticket: int, clock: int, path: int) -> np.ndarray:
        """The environment's own picture of a step."""
        env: Any = self.player.env
        env.set_state(self._find((ticket, clock, path)).state)
        return self.player.picture()

    def _keys(self, tickets: Numbers, clocks: Numbers, paths: Numbers) -> list[Key]:
        return list(zip(as_list(tickets), as_list(clocks), as_list(paths), strict=True))

    def _find(self, key: Key) -> Kept:
        """A step that was played; `InputError` if it is not kept."""
        if key not in self.kept:
            raise InputError(
                f"step {key[1]} of the episode with seed {key[0]} is unknown: it was played in another process, or so "
                "long ago that its snapshot was dropped"
            )
        self.kept.move_to_end(key)
        return self.kept[key]

    def _play(self, rows: Sequence[tuple[Key, Kept | None, int]]) -> None:
        """Plays and keeps these steps; an episode that is over stays as it is."""
        rows = list({row[0]: row for row in rows}.values())
        self.most = max(self.most, BATCHES * len(rows))
        for key, before, action in rows:
            if before is not None and before.snapshot.over:
                self._keep(key, Kept(before.state, before.snapshot, (before.actions, action)))
        moving = [row for row in rows if row[1] is None or not row[1].snapshot.over]
        for start in range(0, len(moving), ROWS):
            self._play_together(moving[start : start + ROWS])

    def _play_together(self, rows: Sequence[tuple[Key, Kept | None, int]]) -> None:
        views, count = self.views, len(rows)
        for k, (key, before, action) in enumerate(rows):
            views["ticket"][k], views["action"][k] = key[0], action
            if before is not None:
                views["state"][k], views["rho"][k] = before.state, before.snapshot.rho
        self.rows.taken.value = 0
        if self.pool is None or count == 1:
            self.local.play(count)
        else:
            self.pool.ask_all("play", np.array([count]), work=f"a step of {count} episodes")
        for k, (key, before, action) in enumerate(rows):
            snapshot = Snapshot(
                views["seen"][k].copy(), views["rho"][k].copy(), bool(views["over"][k]), bool(views["lost"][k])
            )
            self._keep(key, Kept(views["state"][k].copy(), snapshot, (before.actions, action) if before else None))

    def _keep(self, key: Key, step: Kept) -> None:
        self.kept[key] = step
        while len(self.kept) > self.most:
            self.kept.popitem(last=False)

    def _batch(self, shape: tuple[int, ...], keys: Sequence[Key]) -> Batch:
        return read_batch(shape, [(key[2], self._find(key).snapshot) for key in keys], self.reader.dtype)
