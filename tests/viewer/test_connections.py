"""Connections that never ask for anything: they are closed, and keep no page out."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from websockets.sync.client import connect

from saplan.viewer.connections import MOST, PATIENCE
from tests.viewer.conftest import Server, found, stop

FILES = 256
"""That the server may have open; a thousand is usual."""
HALF = 300
"""More connections than that."""
BEGINNINGS = [b"", b"GET / HTTP/1.1\r\nHost: 127", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", b"G"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One with few files to open."""
    start = (
        "import resource, signal, runpy, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}));"
        "sys.argv = ['saplan', 'watch', '--no-browser', '--port', '0'];"
        "runpy.run_module('saplan', run_name='__main__')"
    )
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    process = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    running = Server(found(r"http://\S+", process.stdout.readline())[0], process)
    yield running
    assert stop(running) == 130


def half_open(server: Server, stack: ExitStack, beginning: bytes) -> socket.socket:
    line = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
    line.sendall(beginning)
    return line


def fetch(server: Server) -> float:
    """How long the page takes."""
    began = time.monotonic()
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    line.request("GET", "/")
    answer = line.getresponse()
    assert answer.status == 200
    assert answer.read()
    line.close()
    return time.monotonic() - began


def test_half_open_connections_keep_no_page_out(server: Server) -> None:
    fetch(server)
    with ExitStack() as stack:
        page = stack.enter_context(connect(server.socket, origin=server.origin, max_size=None))
        assert json.loads(page.recv())["type"] == "hello"
        for number in range(HALF):
            half_open(server, stack, BEGINNINGS[number % len(BEGINNINGS)])
        assert fetch(server) < 2
        page.send("{}")
        assert json.loads(page.recv(timeout=10))["type"] == "error", "the open page is still served"


def test_half_open_connections_are_closed(server: Server) -> None:
    with ExitStack() as stack:
        began = time.monotonic()
        for line in [half_open(server, stack, beginning) for beginning in BEGINNINGS]:
            line.settimeout(PATIENCE + 10)
            assert ended(line)
            assert PATIENCE - 1 < time.monotonic() - began < PATIENCE + 5


def test_a_trickle_is_closed_too(server: Server) -> None:
    """One byte a second, of a head or of a body that nothing reads."""
    request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    with ExitStack() as stack:
        lines = [
            half_open(server, stack, f"{request}{more}".encode()) for more in ("X: ", "Content-Length: 999\r\n\r\n")
        ]
        for _ in range(int(PATIENCE) + 4):
            time.sleep(1)
            lines = [line for line in lines if trickles(line)]
        assert not lines


def test_a_page_stays_open_while_others_come_and_go(server: Server) -> None:
    with connect(server.socket, origin=server.origin, max_size=None) as page, ExitStack() as stack:
        assert json.loads(page.recv())["type"] == "hello"
        for _ in range(2 * MOST):
            half_open(server, stack, b"GET")
        time.sleep(PATIENCE + 2)
        page.send("{}")
        assert json.loads(page.recv(timeout=10))["type"] == "error"


def ended(line: socket.socket) -> bool:
    try:
        return line.recv(1000) == b""
    except ConnectionResetError:
        return True


def trickles(line: socket.socket) -> bool:
    try:
        line.sendall(b"x")
    except OSError:
        return False
    return True
