"""Building blocks of proxies written for tests: see proxies.py and bad_proxies.py."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from base64 import b64decode
from contextlib import ExitStack, suppress
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from shoal.core.proxies import ProxyAddress, ProxyScheme
from support.sites import serving
from support.until import in_time

CHUNK = 65536
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Ask(NamedTuple):
    """The head of a client's request to a proxy."""

    method: str
    target: str
    lines: list[str]
    """The headers."""

    @property
    def place(self) -> tuple[str, int]:
        """The host and port to connect to."""
        split = urlsplit(f"//{self.target}" if self.method == "CONNECT" else self.target)
        return split.hostname or "", split.port or 80

    @property
    def login(self) -> tuple[str, str]:
        """The user and password in the request; empty if there are none."""
        for line in self.lines:
            name, _, value = line.partition(": ")
            if name.lower() == "proxy-authorization":
                user, _, password = b64decode(value.removeprefix("Basic ")).decode().partition(":")
                return user, password
        return "", ""

    @property
    def forwarded(self) -> bytes:
        """The head that is sent on to the target of a plain request."""
        split = urlsplit(self.target)
        path = (split.path or "/") + (f"?{split.query}" if split.query else "")
        kept = [
            line for line in self.lines if not line.lower().startswith(("proxy-", "connection:"))
        ]
        head = "\r\n".join([f"{self.method} {path} HTTP/1.1", *kept, "Connection: close"])
        return f"{head}\r\n\r\n".encode()


class OwnProxy(ABC):
    """A proxy that runs in a thread of the test process. A context manager."""

    scheme: ProxyScheme = "http"

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        """How many connections were made so far."""
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(serving(_Listening(self)))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def address(self) -> ProxyAddress:
        """The proxy's address."""
        return ProxyAddress(self.scheme, "127.0.0.1", self.port)

    @abstractmethod
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, which is closed afterwards."""


class _Listening:
    """The proxy inside its event loop."""

    def __init__(self, proxy: OwnProxy) -> None:
        self._proxy = proxy
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._proxy.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await in_time("a proxy to end", asyncio.gather(*self._tasks, return_exceptions=True))

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy.connections += 1
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, EOFError):
                await self._proxy.serve(reader, writer)
        finally:
            writer.close()


async def asked(reader: asyncio.StreamReader) -> Ask:
    """Read the head of a request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    return Ask(method, target, lines)


async def pass_on(
    ask: Ask, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: str
) -> None:
    """Connect to the requested target from `source`, an address of this machine, and forward bytes
    both ways until one end closes."""
    host, port = ask.place
    far_reader, far_writer = await asyncio.open_connection(host, port, local_addr=(source, 0))
    if ask.method == "CONNECT":
        writer.write(ESTABLISHED)
    else:
        far_writer.write(ask.forwarded)
    ways = [
        asyncio.ensure_future(_pump(reader, far_writer)),
        asyncio.ensure_future(_pump(far_reader, writer)),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        far_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
