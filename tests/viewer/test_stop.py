"""Ctrl-C ends `saplan watch` at once, also while its agent is being prepared."""

import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

WATCH = ("watch", "switches", "--rules", "fewest=6", "most=8", "--no-browser", "--port", "0")
START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from saplan.cli import program; sys.argv[0] = 'saplan'; program()"
)


@pytest.mark.parametrize("seconds", [1.0, 1.75, 2.5])
def test_ctrl_c_while_an_agent_is_prepared(seconds: float) -> None:
    """The agent of other rules is compiled for some seconds after the page is there."""
    server = subprocess.Popen(
        [sys.executable, "-c", START, *WATCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    address = re.search(r"http://\S+", server.stdout.readline())
    assert address is not None
    with urllib.request.urlopen(address[0], timeout=60) as page:
        assert b"saplan" in page.read()
    time.sleep(seconds)
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=60)
    assert server.returncode == 130
    assert "terminate" not in said
    assert "Traceback" not in said
