"""One real server and one real browser for all tests of the page."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from websockets.typing import Origin

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


def found(pattern: str, text: str) -> re.Match[str]:
    match = re.search(pattern, text)
    assert match, text
    return match


@dataclass(frozen=True)
class Server:
    """A `saplan watch` that is running."""

    address: str
    process: Any

    @property
    def port(self) -> int:
        return int(found(r":(\d+)/", self.address)[1])

    @property
    def socket(self) -> str:
        return self.address.replace("http://", "ws://") + "socket"

    @property
    def origin(self) -> Origin:
        return Origin(found(r"^http://[^/]+", self.address)[0])

    def memory(self) -> float:
        """What it holds, in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(found(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def watching(*arguments: str) -> Server:
    """Starts the command and waits for its address."""
    command = [sys.executable, "-m", "saplan", "watch", *arguments, "--no-browser", "--port", "0"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, preexec_fn=heed_interrupts)
    assert process.stdout is not None
    return Server(found(r"http://\S+", process.stdout.readline())[0], process)


def heed_interrupts() -> None:
    """Tests that a shell has sent to the background would hand on that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def stop(server: Server) -> int:
    """Ends it as Ctrl-C does."""
    server.process.send_signal(signal.SIGINT)
    status: int = server.process.wait(timeout=20)
    return status


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    running = watching()
    yield running
    assert stop(running) == 130, "Ctrl-C ends it, and nothing else has"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def tab(browser: Any, server: Server) -> Iterator[Any]:
    """A fresh page of its own, which must not complain."""
    context = browser.new_context(viewport={"width": 1360, "height": 860})
    page = context.new_page()
    page.set_default_timeout(40_000)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    yield page
    context.close()
    assert not complaints
