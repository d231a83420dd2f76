"""CONNECT: a tunnel through an HTTP proxy (RFC 9110, 9.3.6)."""

from __future__ import annotations

import re
from base64 import b64encode

from shoal.core.exits import Blame
from shoal.core.proxies import ProxyAddress
from shoal.errors import ExitFault
from shoal.fetch.http.tunnels.wire import Stage, Wire, no_sense

MAX_HEAD_BYTES = 16 * 1024
"""The maximum size of an answer to CONNECT, up to the empty line."""

FORBIDDEN = 403
NOT_LET_IN = (401, 407)

_status = re.compile(rb"HTTP/1\.[01] ([0-9]{3})[ \r\n]").match
_end = re.compile(rb"\r?\n\r?\n").search


async def open_tunnel(wire: Wire, proxy: ProxyAddress, place: str, *, has_worked: bool) -> None:
    """Have the proxy connect to `place`, a `host:port`. Anything sent after that goes there.

    Raises ExitFault. An exit that `has_worked` before and forbids this host is not at fault, but
    of no use for this host.
    """
    wire.stage = Stage.HOST
    ask = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{login_line(proxy)}\r\n"
    await wire.send(ask.encode())
    status = await read_status(wire)
    if not 200 <= status < 300:
        raise refused(status, "CONNECT", has_worked=has_worked)


async def read_status(wire: Wire) -> int:
    """Read an answer up to its empty line. Raises ExitFault if more follows a success unasked."""
    head = b""
    while not (end := _end(head)):
        if len(head) >= MAX_HEAD_BYTES:
            raise no_sense()
        head += await wire.receive(MAX_HEAD_BYTES - len(head))
        if not b"HTTP/1.".startswith(head[:7]):
            raise no_sense()
    match = _status(head)
    if match is None or (match[1][:1] == b"2" and end.end() != len(head)):
        raise no_sense()
    return int(match[1])


def refused(status: int, what: str, *, has_worked: bool) -> ExitFault:
    """The fault that a proxy's answer other than success means."""
    words = f"the proxy answered {what} with HTTP {status}"
    if status in NOT_LET_IN:
        return ExitFault(f"{words}: user and password are not accepted", Blame.EXIT)
    if status == 404 or status >= 500 or (status == FORBIDDEN and has_worked):
        return ExitFault(words, Blame.PAIR)
    return ExitFault(words, Blame.EXIT)


def login_line(proxy: ProxyAddress) -> str:
    """The header line with user and password for the proxy. Empty if it has none."""
    if not proxy.user and not proxy.password:
        return ""
    pair = b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
    return f"Proxy-Authorization: Basic {pair}\r\n"
