"""The hostile server's wire: requests as read, and connections that can be abused."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qs

from multidict import CIMultiDict


class Request(NamedTuple):
    """One request as it was received."""

    at: float
    """time.monotonic() when the request was complete."""
    path: str
    """The path with its query, exactly as sent."""
    headers: Mapping[str, str]
    method: str
    body: bytes
    connection: int
    """The number of the connection that the request used, from 0."""

    @property
    def page(self) -> str:
        """The path without its query."""
        return self.path.partition("?")[0]

    def query(self, name: str, default: str = "") -> str:
        """A parameter of the query."""
        return parse_qs(self.path.partition("?")[2]).get(name, [default])[0]


class Connection:
    """A connection that pages write to. A page after which it cannot be reused sets `over`."""

    def __init__(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.number = number
        self.bytes_sent = 0
        self.bytes_received = 0
        """Bytes of all complete requests."""
        self.over = False
        self._reader = reader
        self._writer = writer

    async def request(self) -> Request:
        """Read the next request. Raises IncompleteReadError if the client hangs up instead."""
        raw = await self._reader.readuntil(b"\r\n\r\n")
        head = raw.decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, _, rest = first.partition(" ")
        fields = (line.partition(":") for line in lines)
        headers = CIMultiDict((name, value.strip()) for name, _, value in fields)
        body = await self._reader.readexactly(int(headers.get("Content-Length", 0)))
        self.bytes_received += len(raw) + len(body)
        path = rest.rpartition(" ")[0]
        return Request(time.monotonic(), path, headers, method, body, self.number)

    async def send(self, data: bytes) -> None:
        """Send raw bytes. Waits while the client does not read."""
        if self._writer.is_closing():
            raise ConnectionResetError("the client hung up")
        self._writer.write(data)
        await self._writer.drain()
        # drain() returns at once while there is room; let the client run all the same.
        await asyncio.sleep(0)
        self.bytes_sent += len(data)

    async def head(self, *headers: str, status: str = "200 OK") -> None:
        """Send a status line and headers."""
        lines = "".join(f"{header}\r\n" for header in headers)
        await self.send(f"HTTP/1.1 {status}\r\n{lines}\r\n".encode())

    async def reply(
        self, request: Request, body: bytes, *headers: str, status: str = "200 OK"
    ) -> None:
        """Send a well-behaved response."""
        await self.head(f"Content-Length: {len(body)}", *headers, status=status)
        if request.method != "HEAD":
            await self.send(body)

    async def chunk(self, data: bytes) -> None:
        """Send one chunk of a chunked body; an empty one ends it."""
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def stall(self) -> None:
        """Send nothing until the client hangs up."""
        while await self._reader.read(1024):
            pass
        self.over = True

    async def hang_up(self) -> None:
        """Close properly: data that was sent still arrives."""
        self._writer.close()
        await self._writer.wait_closed()

    def reset(self) -> None:
        """Close so that the client gets "connection reset"."""
        raw: socket.socket = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort()

    def abort(self) -> None:
        """Close at once; data not yet sent is dropped."""
        self._writer.transport.abort()
        self.over = True
