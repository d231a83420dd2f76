"""Proxies that do not behave as they should."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import suppress

from shoal.core.proxies import ProxyScheme
from support.own_proxies import CHUNK, ESTABLISHED, OwnProxy, asked, pass_on
from support.redis_servers import TlsFiles
from support.until import until


class Trickster(OwnProxy):
    """A proxy that sends fixed bytes whatever it receives: one piece after each read. Then it
    closes the connection, or sends nothing more."""

    def __init__(self, *pieces: bytes, scheme: ProxyScheme = "http", closes: bool = False) -> None:
        super().__init__()
        self.scheme = scheme
        self.heard = b""
        """All bytes received."""
        self.left = 0
        """How many connections the client has closed."""
        self._pieces = pieces
        self._closes = closes

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in self._pieces:
            self.heard += await reader.read(CHUNK)
            writer.write(piece)
        if not self._closes:
            while heard := await reader.read(CHUNK):
                self.heard += heard
            self.left += 1

    async def hears(self, what: bytes) -> None:
        """Wait until these bytes were received."""
        await until(f"a proxy to hear {what!r}", lambda: what in self.heard)

    async def is_left(self) -> None:
        """Wait until the client has closed a connection."""
        await until("a connection to a proxy to be closed", lambda: self.left)


class Endless(OwnProxy):
    """A proxy that begins its answer correctly and never ends it."""

    def __init__(self, start: bytes, more: bytes, scheme: ProxyScheme = "http") -> None:
        super().__init__()
        self.scheme = scheme
        self._start = start
        self._more = more

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(CHUNK)
        writer.write(self._start)
        for piece in self._pieces():
            writer.write(piece)
            await writer.drain()

    def _pieces(self) -> Iterator[bytes]:
        while True:
            yield self._more


class Forger(OwnProxy):
    """A proxy that terminates TLS with a certificate of its own and answers in the host's name."""

    def __init__(self, files: TlsFiles, *, hosts: tuple[str, ...] = ()) -> None:
        """If `hosts` are given, only their connections are forged."""
        super().__init__()
        self.read = b""
        """The decrypted requests that were meant for the hosts."""
        self._hosts = hosts
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(files.certificate, files.key)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ask = await asked(reader)
        if self._hosts and ask.place[0] not in self._hosts:
            await pass_on(ask, reader, writer, "127.0.0.1")
            return
        writer.write(ESTABLISHED)
        with suppress(ssl.SSLError):
            await writer.start_tls(self._tls)
            self.read += await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
            await writer.drain()
