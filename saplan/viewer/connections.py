"""The open connections of the server, bounded in number and in idle time, so that a page can always connect.

A plain HTTP connection is idle while the server answers no request of it. The server closes one that is idle for too
long; where there are too many, a new connection replaces the one that has been idle longest.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 5.0
"""Seconds within which the head of a request must arrive."""
MOST = 64
"""Plain HTTP connections at once; a page needs about six."""


class Lines:
    """The plain HTTP connections of one server, the oldest first."""

    def __init__(self, most: int = MOST, patience: float = PATIENCE) -> None:
        """Start without connections."""
        self.most, self.patience = most, patience
        self.open: dict[Line, None] = {}

    def add(self, line: "Line") -> None:
        """Add a connection; close another if there are too many."""
        self.open[line] = None
        if len(self.open) > self.most:
            others = [one for one in self.open if one is not line]
            worst = next((one for one in others if one.waits), others[0])
            self.remove(worst)
            worst.transport.abort()

    def remove(self, line: "Line") -> None:
        """Remove a connection that was closed, or became a web socket."""
        self.open.pop(line, None)

    def protocol(self) -> type["Line"]:
        """Protocol class of a server; uvicorn instantiates it for every connection."""
        return type("LineOfServer", (Line,), {"lines": self})


class Line(H11Protocol):
    """A uvicorn connection that closes itself if a request does not arrive in time."""

    lines: Lines
    timer: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Whether the server answers no request of it."""
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
        # The next request must be complete in time, even if its bytes trickle in.
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
