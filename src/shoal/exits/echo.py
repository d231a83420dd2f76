"""An echo: a small server that reports where a request came from, and with which headers. What an
exit does to a request can only be seen at the other end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from typing import Any

import msgspec

MAX_HEAD_BYTES = 32 * 1024
TIMEOUT_S = 10.0
LOOPBACK = "127.0.0.1"

_WRONG = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_ADDRESSES = ("address", "origin", "ip", "query")
"""The JSON fields with the address: Shoal's own, and those of other popular echo services."""


class Echo(msgspec.Struct, frozen=True):
    """The answer of an echo."""

    address: str
    """The address that the request came from."""
    headers: dict[str, str] | None = None
    """The headers of the request, with lower-case names. None: the echo does not report them."""


def read_echo(body: bytes) -> Echo | None:
    """Parse an answer: JSON with the address, or the address alone. None if it is neither."""
    try:
        answer: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        answer = body.decode("ascii", "replace")
    if not isinstance(answer, dict):
        return _echo(answer, None)
    headers = answer.get("headers")
    told = (
        {str(name).lower(): str(value) for name, value in headers.items()}
        if isinstance(headers, dict)
        else None
    )
    found = (_echo(answer[name], told) for name in _ADDRESSES if name in answer)
    return next((echo for echo in found if echo is not None), None)


def _echo(address: Any, headers: dict[str, str] | None) -> Echo | None:
    # Some services put the content of X-Forwarded-For before the address.
    last = str(address).rpartition(",")[2].strip()
    try:
        return Echo(str(ip_address(last)), headers)
    except ValueError:
        return None


@asynccontextmanager
async def echo_at(host: str, port: int) -> AsyncIterator[str]:
    """Serve an echo, and give its URL. Port 0 means any free port. Raises OSError."""
    server = await asyncio.start_server(_serve, host, port, limit=MAX_HEAD_BYTES)
    bound_host, bound_port = server.sockets[0].getsockname()[:2]
    shown = f"[{bound_host}]" if ":" in bound_host else bound_host
    try:
        yield f"http://{shown}:{bound_port}/"
    finally:
        server.close()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request, whatever its path and method."""
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(TIMEOUT_S):
            writer.write(await _answer(reader, writer.get_extra_info("peername")[0]))
            await writer.drain()
    writer.close()


async def _answer(reader: asyncio.StreamReader, address: str) -> bytes:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return _WRONG
    headers = {}
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name] = value.strip()
    body = msgspec.json.encode({"address": address, "headers": headers}) + b"\n"
    lines = (
        *("HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}"),
        *("Cache-Control: no-store", "X-Content-Type-Options: nosniff", "Connection: close"),
    )
    return "\r\n".join((*lines, "", "")).encode() + body
