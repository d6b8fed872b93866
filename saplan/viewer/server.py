"""The server of the page: the listed files, and one socket per page. Planning runs in threads and never blocks it."""

import asyncio
import contextlib
import socket
import sys
import threading
import traceback
import webbrowser
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from saplan.errors import InputError
from saplan.interpreter.program import compile_nothing
from saplan.viewer import protocol as messages
from saplan.viewer.connections import MOST, Lines
from saplan.viewer.security import HEADERS, Guard
from saplan.viewer.session import Answer, Session
from saplan.viewer.worlds import Worlds

STATIC = Path(__file__).parent / "static"
LISTED = {
    "": ("index.html", "text/html"),
    "style.css": ("style.css", "text/css"),
    "app.js": ("app.js", "text/javascript"),
    "drawing.js": ("drawing.js", "text/javascript"),
    "connection.js": ("connection.js", "text/javascript"),
    "map.js": ("map.js", "text/javascript"),
    "attributes.js": ("attributes.js", "text/javascript"),
    "plan.js": ("plan.js", "text/javascript"),
    "plane.js": ("plane.js", "text/javascript"),
    "rules.js": ("rules.js", "text/javascript"),
    "way.js": ("way.js", "text/javascript"),
    "arm.js": ("arm.js", "text/javascript"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
"""All files that can be fetched: path → file and type."""
SOCKET = "socket"
CLIENTS = 8
LARGEST_MESSAGE = 64 * 2**10
WAITING = 32
"""Messages of a page that are read ahead of the answers."""
USUAL_PORT = 8765
FULL = f"{CLIENTS} pages are open, which is the limit: close one and reload"


class Viewer:
    """The application: its connected pages and the files that they may fetch."""

    def __init__(self, worlds: Worlds, guard: Guard, begin: messages.Beginning) -> None:
        """Read the listed files once."""
        self.worlds, self.guard, self.begin = worlds, guard, begin
        self.files = {path: ((STATIC / name).read_bytes(), kind) for path, (name, kind) in LISTED.items()}
        self.connected = 0
        self.threads = ThreadPoolExecutor(CLIENTS, "planning", initializer=compile_nothing)
        self.app = Starlette(
            routes=[
                Route("/{path:path}", self.page, methods=["GET"]),
                WebSocketRoute("/{path:path}", self.connect),
            ]
        )

    async def page(self, request: Request) -> Response:
        """One of the listed files, if the request may have it."""
        if not self.guard.host_is_ours(request.headers.get("host")):
            return PlainTextResponse("this server does not have that name\n", 421, HEADERS)
        path = self.guard.inside(request.url.path)
        if path is None:
            return PlainTextResponse("the token in the address is missing or wrong\n", 403, HEADERS)
        if path.removeprefix("/") not in self.files:
            return PlainTextResponse("there is no such file\n", 404, HEADERS)
        data, kind = self.files[path.removeprefix("/")]
        return Response(data, media_type=kind, headers=HEADERS)

    async def connect(self, line: WebSocket) -> None:
        """Serve one page, from its first message to its last."""
        host, origin = line.headers.get("host"), line.headers.get("origin")
        if not self.guard.origin_is_ours(origin, host) or self.guard.inside(line.url.path) != f"/{SOCKET}":
            await line.close(1008)
            return
        await line.accept()
        if self.connected >= CLIENTS:
            await line.send_text(messages.encode(messages.refusal(None, FULL)))
            await line.close(1013, "full")
            return
        self.connected += 1
        try:
            await self._serve(line)
        finally:
            self.connected -= 1

    async def _serve(self, line: WebSocket) -> None:
        """Read and answer concurrently: a page that disconnects frees its place at once, even during an answer."""
        waiting: asyncio.Queue[str] = asyncio.Queue(WAITING)
        both = [asyncio.create_task(work) for work in (self._read(line, waiting), self._answer_all(line, waiting))]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()
        for end in await asyncio.gather(*both, return_exceptions=True):
            # A disconnect during a reply is not an error.
            if isinstance(end, Exception) and not isinstance(end, WebSocketDisconnect | RuntimeError):
                raise end

    async def _read(self, line: WebSocket, waiting: asyncio.Queue[str]) -> None:
        while (said := await line.receive())["type"] != "websocket.disconnect":
            await waiting.put(said.get("text") or "")

    async def _answer_all(self, line: WebSocket, waiting: asyncio.Queue[str]) -> None:
        session = Session(self.worlds)
        await line.send_text(messages.encode(messages.hello(self.worlds, self.begin)))
        while True:
            await self._answer(line, session, await waiting.get())

    async def _answer(self, line: WebSocket, session: Session, text: str) -> None:
        """Send answers as they are found, each computed in a thread."""
        answers, loop = session.answers(text), asyncio.get_running_loop()

        def following() -> Answer | None:
            try:
                return next(answers, None)
            except Exception:  # a bug must end neither the server nor the page
                traceback.print_exc(file=sys.stderr)
                return messages.refusal(None, "the server failed to answer; see its terminal")

        while (answer := await loop.run_in_executor(self.threads, following)) is not None:
            await line.send_text(messages.encode(answer))
        if session.rehearsal is not None:
            self.threads.submit(session.rehearsal)
            session.rehearsal = None


def serve(worlds: Worlds, host: str, port: int | None, begin: messages.Beginning, browser: bool) -> None:
    """Serve until Ctrl-C. Without a port, use the usual one or any free one."""
    with contextlib.closing(listen(host, port)) as listening:
        guard = Guard(host, listening.getsockname()[1])
        viewer = Viewer(worlds, guard, begin)
        print(f"watch at {guard.address} (Ctrl-C ends it)", flush=True)
        if browser:
            threading.Thread(target=webbrowser.open, args=(guard.address,), daemon=True).start()
        server(viewer).run(sockets=[listening])


def server(viewer: Viewer) -> uvicorn.Server:
    """Server of an application, quiet and with bounds."""
    config = uvicorn.Config(
        viewer.app,
        http=Lines().protocol(),
        backlog=MOST,
        log_level="warning",
        ws="websockets-sansio",
        ws_max_size=LARGEST_MESSAGE,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket; `InputError` if the address is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = [USUAL_PORT, 0] if port is None else [port]
    for number in wanted:
        listening = socket.socket(family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, number))
            listening.listen()  # from now on connections wait instead of being refused
            return listening
        except OSError as error:
            listening.close()
            reason = error.strerror or str(error)
    raise InputError(f"cannot listen at {host}, port {wanted[-1]}: {reason}; choose others with --host and --port")
