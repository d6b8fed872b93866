"""The open connections of the server, bounded in number and in patience: a page always gets in.

A connection without a socket of ours is waiting whenever no request of it is being answered. One that waits too long is
closed, and where there are too many, a newcomer takes the place of the one that has waited longest.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 5.0
"""Seconds in which the head of a request has to be complete."""
MOST = 64
"""Connections besides those that have become sockets; a page needs about six."""


class Lines:
    """The connections of one server that are not sockets, the oldest first."""

    def __init__(self, most: int = MOST, patience: float = PATIENCE) -> None:
        """None yet."""
        self.most, self.patience = most, patience
        self.open: dict[Line, None] = {}

    def add(self, line: "Line") -> None:
        """Takes a newcomer, in place of another if need be."""
        self.open[line] = None
        if len(self.open) > self.most:
            others = [one for one in self.open if one is not line]
            worst = next((one for one in others if one.waits), others[0])
            self.remove(worst)
            worst.transport.abort()

    def remove(self, line: "Line") -> None:
        """Forgets one that is closed, or has become a socket."""
        self.open.pop(line, None)

    def protocol(self) -> type["Line"]:
        """The protocol of a server, for uvicorn, which calls it with arguments of its own."""
        return type("LineOfServer", (Line,), {"lines": self})


class Line(H11Protocol):
    """uvicorn's connection, which closes itself if a request does not arrive in time."""

    lines: Lines
    timer: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.lines.add(self)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self.lines.remove(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        # From here on the next request has to arrive in time, however slowly bytes of it trickle in.
        super().on_response_complete()
        self._wait()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._stop()
        self.lines.remove(self)
        super().handle_websocket_upgrade(event)

    def _wait(self) -> None:
        self._stop()
        self.timer = self.loop.call_later(self.lines.patience, self._give_up)

    def _stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _give_up(self) -> None:
        self.timer = None
        if self.waits:
            self.transport.abort()
