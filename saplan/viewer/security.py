"""Access to the server: only pages that it served itself, to people who know its address."""

import hmac
import ipaddress
import secrets
import socket
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Access rules of one server. Except on loopback, every path contains a token."""

    def __init__(self, host: str, port: int) -> None:
        """Draw a token if one is needed."""
        self.host, self.port = host, port
        self.token = "" if is_loopback(host) else secrets.token_urlsafe(24)

    @property
    def prefix(self) -> str:
        """The beginning of every path."""
        return f"/{self.token}/" if self.token else "/"

    @property
    def address(self) -> str:
        """The page's address, for people."""
        host = LOOPBACK if self.host == "localhost" else self.host
        if host in ("0.0.0.0", "::"):  # all interfaces: show a name that other machines can use
            host = socket.gethostname()
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}{self.prefix}"

    def inside(self, path: str) -> str | None:
        """The path without its token; None if the token is missing or wrong."""
        if not self.token:
            return path
        given, _, rest = path.removeprefix("/").partition("/")
        same = hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())
        return f"/{rest}" if same else None

    def host_is_ours(self, host: str | None) -> bool:
        """Whether a Host header names this server; a foreign name that resolves to it (DNS rebinding) does not."""
        name, port = split_host(host or "")
        if port != self.port:
            return False
        if is_loopback(self.host):
            return is_loopback(name)
        return name in (self.host, "localhost", socket.gethostname().lower()) or is_address(name)

    def origin_is_ours(self, origin: str | None, host: str | None) -> bool:
        """Whether a page of this server opens a socket; a client without an origin is not a page."""
        return origin is not None and self.host_is_ours(host) and origin.lower() == f"http://{(host or '').lower()}"


def is_loopback(host: str) -> bool:
    """Whether an address is loopback, which no other machine can reach."""
    if host == "localhost":
        return True
    return is_address(host) and ipaddress.ip_address(host).is_loopback


def is_address(host: str) -> bool:
    """Whether this is a numeric address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def split_host(host: str) -> tuple[str, int | None]:
    """Name and port of a Host header; port 80 if none is given, None if it is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return "", None
    if parts.path or parts.query or parts.fragment or parts.username is not None:
        return "", None
    return name, 80 if port is None else port
