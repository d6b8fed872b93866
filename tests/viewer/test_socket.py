"""The server by real sockets: who is let in, what is answered, and that nothing brings it down."""

import http.client
import json
import random
import socket
import string
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from saplan.viewer.protocol import Beginning
from saplan.viewer.security import Guard
from saplan.viewer.server import CLIENTS, LARGEST_MESSAGE, LISTED, Viewer, listen
from saplan.viewer.server import server as make_server
from saplan.viewer.worlds import Worlds
from tests.viewer.conftest import Server, stop, watching

OPEN = {"type": "open", "id": 1, "world": "switches", "method": "structured", "seed": 7, "goal": "", "step": 0}


@contextmanager
def greeted(server: Server) -> Iterator[ClientConnection]:
    """A socket whose greeting has been read."""
    with connect(server.socket, origin=server.origin, max_size=None, compression=None) as socket:
        assert json.loads(socket.recv())["type"] == "hello"
        yield socket


def refused(address: str, **options: Any) -> int:
    """The status that a socket is refused with."""
    with pytest.raises(InvalidStatus) as error, connect(address, **options):
        pass
    return error.value.response.status_code


def ask(socket: ClientConnection, text: str) -> dict[str, Any]:
    socket.send(text)
    answer: dict[str, Any] = json.loads(socket.recv(timeout=60))
    return answer


def fetch(server: Server, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    line.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        line.putheader(name, value)
    line.endheaders()
    return line.getresponse()


@pytest.mark.parametrize("path", LISTED)
def test_the_listed_files(server: Server, path: str) -> None:
    answer = fetch(server, f"/{path}")
    assert answer.status == 200
    assert answer.read()
    policy = answer.getheader("Content-Security-Policy") or ""
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.getheader("X-Content-Type-Options") == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/index.html", "/server.py", "/../server.py", "/static/app.js", "/%2e%2e/server.py", "/..%2fserver.py",
        "//app.js/", "/app.js/", "/app.js%00", "/etc/passwd", "/socket", "/.git/config", "/static/../server.py",
        "/docs", "/openapi.json",
    ],
)  # fmt: skip
def test_nothing_else(server: Server, path: str) -> None:
    assert fetch(server, path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_only_reading(server: Server, method: str) -> None:
    assert fetch(server, "/", method).status == 405


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil:{port}", ""]
)
def test_a_foreign_host_is_refused(server: Server, host: str) -> None:
    assert fetch(server, "/", Host=host.format(port=server.port)).status in (400, 421)


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}"])
def test_its_own_names_are_known(server: Server, host: str) -> None:
    assert fetch(server, "/", Host=host.format(port=server.port)).status == 200


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1:1"]
)
def test_a_foreign_or_missing_origin_is_refused(server: Server, origin: str | None) -> None:
    assert refused(server.socket, origin=origin and origin.format(port=server.port)) == 403


def test_a_socket_by_a_foreign_name_is_refused(server: Server) -> None:
    name = f"evil.example:{server.port}"
    line = socket.create_connection(("127.0.0.1", server.port))
    assert refused(f"ws://{name}/socket", origin=f"http://{name}", sock=line) == 403


def test_messages_are_capped(server: Server) -> None:
    with greeted(server) as socket:
        just = json.dumps({"type": "x" * (LARGEST_MESSAGE - 40)})
        assert ask(socket, just)["type"] == "error"
        socket.send("x" * (LARGEST_MESSAGE + 1))
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


def test_the_ninth_page_is_told_so(server: Server) -> None:
    with ExitStack() as stack:
        for _ in range(CLIENTS):
            stack.enter_context(greeted(server))
        with connect(server.socket, origin=server.origin) as late:
            assert "8 pages are open" in json.loads(late.recv())["reason"]
            with pytest.raises(ConnectionClosed) as closed:
                late.recv(timeout=20)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1013
    with greeted(server):
        pass  # there is room again


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "JSON"), ("{", "JSON"), ("[" * 60_000, "JSON"), ("1" * 60_000, "JSON"), ("[]", "object"),
        ("null", "object"),
        ('{"type": 3}', "object"), ('{"type": "opne"}', "did you mean 'open'"), ('{"type": "step"}', "the fields id"),
        ('{"type": "step", "id": true}', "whole number"), ('{"type": "step", "id": 1e9}', "whole number"),
        ('{"type": "step", "id": 1, "run": "x"}', "no others"), ('{"type": "step", "id": 5}', "set a goal first"),
        (json.dumps({**OPEN, "seed": -1}), "seed must be a whole number"),
        (json.dumps({**OPEN, "step": 151}), "0..150"),
        ('{"type": "goal", "id": 9, "goal": "red=1", "step": 0}', "open one first"),
        ('{"type": "goal", "id": 9, "goal": 3, "step": 0}', "goal must be text"),
        (json.dumps({**OPEN, "goal": "r" * 401}), "400 characters"),
        (json.dumps({**OPEN, "world": "../x"}), "unknown game"),
    ],
)  # fmt: skip
def test_a_malformed_message_is_answered_in_one_line(server: Server, text: str, words: str) -> None:
    with greeted(server) as socket:
        answer = ask(socket, text)
        assert answer["type"] == "error"
        assert set(answer) == {"type", "id", "reason"}
        assert words in answer["reason"]
        assert "\n" not in answer["reason"]
        assert ask(socket, json.dumps(OPEN))["type"] == "map", "and all goes on"


def test_who_leaves_gives_the_place_back_at_once(server: Server) -> None:
    for number in range(3 * CLIENTS):
        with greeted(server) as socket:
            goal = {**OPEN, "world": "mining", "seed": number, "goal": "m1=8 m2=6"}
            socket.send(json.dumps(goal))  # takes seconds the first time


def test_bytes_are_answered_too(server: Server) -> None:
    with greeted(server) as socket:
        socket.send(b"\x00\xff")
        assert "JSON" in json.loads(socket.recv(timeout=20))["reason"]


def nonsense(random: random.Random) -> str:
    """Something that is no message, or nearly one."""
    odd: list[Any] = [None, True, -1, 2**70, 0.5, "", "x" * 500, "\ud800", [], {}, "\0", "red=1;rm", "__class__"]
    value = random.choice(odd)
    kind = random.randrange(4)
    if kind == 0:
        return "".join(random.choices(string.printable, k=random.randrange(200)))
    if kind == 1:
        return json.dumps({**OPEN, random.choice(list(OPEN)): value})
    if kind == 2:
        return json.dumps({"type": random.choice(["open", "step", "hello", "exit"]), random.choice(["id", "x"]): value})
    text = json.dumps({**OPEN, "world": "none"})
    at = random.randrange(len(text))
    return text[:at] + random.choice(string.printable) + text[at + 1 :]


def test_ten_thousand_messages_of_nonsense(server: Server) -> None:
    chance, errors = random.Random(0), 0
    with greeted(server) as socket:
        for batch in range(100):
            for _ in range(100):
                socket.send(nonsense(chance))
            socket.send(json.dumps({"type": "step", "id": 10_000 + batch}))
            while True:
                answer = json.loads(socket.recv(timeout=60))
                assert "failed" not in answer.get("reason", ""), answer
                errors += answer["type"] == "error"
                if answer["type"] == "error" and answer["id"] == 10_000 + batch:
                    break
    assert errors > 9_000
    assert server.process.poll() is None


def test_memory_stays_flat() -> None:
    """A short version, by a server that has played nothing yet; benchmarks/viewer.py counts a thousand plans."""
    server = watching()
    with greeted(server) as socket:
        held = []
        for seed in range(60):
            socket.send(json.dumps({**OPEN, "id": seed, "seed": seed % 20, "goal": "red=1 green=1 blue=1"}))
            while json.loads(socket.recv(timeout=60))["type"] != "task":
                pass
            assert ask(socket, json.dumps({"type": "step", "id": seed}))["step"] == 1
            held.append(server.memory())
    assert stop(server) == 130
    assert held[-1] - held[20] < 25
    assert held[-1] < 400, "two thirds of it are JAX and the agent"


@pytest.fixture(scope="module")
def everywhere() -> Iterator[Server]:
    """A server at every address of this machine, in this process."""
    with closing(listen("0.0.0.0", 0)) as listening:
        guard = Guard("0.0.0.0", listening.getsockname()[1])
        running = make_server(Viewer(Worlds(), guard, Beginning()))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        yield Server(f"http://127.0.0.1:{guard.port}{guard.prefix}", None)
        running.should_exit = True
        thread.join()


def test_elsewhere_only_with_the_token(everywhere: Server) -> None:
    token = everywhere.address.rstrip("/").rpartition("/")[2]
    assert len(token) >= 32
    assert fetch(everywhere, f"/{token}/").status == 200
    assert fetch(everywhere, f"/{token}/app.js").status == 200
    for path in ("/", "/app.js", f"/{token[:-1]}/", f"/{token}x/", "/%C3%BC/", "/%FF/"):
        assert fetch(everywhere, path).status == 403, path
    assert fetch(everywhere, f"/{token}/", Host=f"evil.example:{everywhere.port}").status == 421
    with greeted(everywhere):
        pass
    assert refused(everywhere.socket.replace(token, "no"), origin=everywhere.origin) == 403
    assert refused(everywhere.socket) == 403
