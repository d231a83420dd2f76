"""Parses the address to listen on, and checks the host names that requests use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import NamedTuple

from shoal.errors import ConfigError

DEFAULT_LISTEN = "127.0.0.1:7350"

_is_listen = re.compile(r"(?:\[([^][]+)\]|([^][:\s]+)):([0-9]{1,5})").fullmatch
_is_prefix = re.compile(r"(?:/[A-Za-z0-9._~-]+)*").fullmatch


class Listen(NamedTuple):
    """An address to listen on."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def shown(self) -> str:
        """HOST:PORT, as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def listen_of(text: str) -> Listen:
    """Parse `HOST:PORT`. Raises ConfigError."""
    found = _is_listen(text)
    if found is None or int(found[3]) > 65_535:
        raise ConfigError(
            f"--listen {text!r}: write HOST:PORT, for instance {DEFAULT_LISTEN} or [::1]:7350"
        )
    return Listen(found[1] or found[2], int(found[3]))


def prefix_of(text: str) -> str:
    """The path below which all routes are: empty, or like `/x`. Raises ConfigError."""
    prefix = text.rstrip("/")
    if not _is_prefix(prefix):
        raise ConfigError(f"--prefix {text!r}: write a path, for instance /shoal")
    return prefix


def is_loopback(host: str) -> bool:
    """Whether a name or an address always means this machine."""
    if host == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


class HostNames:
    """The host names that requests may use for this server.

    A hostile site can let its own name resolve to this server (DNS rebinding). To the browser, its
    pages then have the same origin as the dashboard. So names are allowed only if they are
    configured. Addresses are always allowed: nobody can redirect them.
    """

    def __init__(self, listen: Listen, allowed: Sequence[str]) -> None:
        self._names = {"localhost", listen.host.lower(), *(name.lower() for name in allowed)}

    def __contains__(self, header: object) -> bool:
        """Whether a Host header names this server."""
        if not isinstance(header, str):
            return False
        name = _without_port(header.lower())
        return name in self._names or _address(name) is not None


def _without_port(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.rpartition(":")[0] if ":" in header else header


def _address(text: str):  # type: ignore[no-untyped-def]
    try:
        return ip_address(text)
    except ValueError:
        return None
