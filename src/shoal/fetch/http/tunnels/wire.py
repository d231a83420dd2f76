"""A socket to a proxy, before the proxy has connected it to a host."""

from __future__ import annotations

import asyncio
import socket
from enum import Enum

from shoal.core.exits import Blame
from shoal.errors import ExitFault, FetchError
from shoal.fetch.http.failures import cause

NO_SENSE = "the proxy does not answer as one"
CLOSED = "the proxy closed the connection"


class Stage(Enum):
    """Who is being waited for. Decides what a timeout or a closed connection means."""

    AWAY = "no connection within {:g} s"
    """Not the proxy: it is not asked yet, or has done its part."""
    PROXY = "the proxy did not answer within {:g} s"
    HOST = "the proxy did not reach the host within {:g} s"
    """The proxy knows the host. Many proxies hang up if they cannot reach it, or wait for long."""


class Wire:
    """A socket to a proxy. Counts its bytes, and closes it unless it was handed over."""

    def __init__(self) -> None:
        self.stage = Stage.AWAY
        self.sent = 0
        self.received = 0
        self._sock: socket.socket | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def sock(self) -> socket.socket:
        """The socket. Raises ExitFault if there is none."""
        if self._sock is None:
            raise self._lost(CLOSED)
        return self._sock

    def lead(self, sock: socket.socket) -> None:
        """Set the socket that leads to the proxy."""
        self._sock = sock

    def hand_over(self) -> socket.socket:
        """Give the socket to the caller, who closes it from now on. Raises ExitFault."""
        sock, self._sock = self.sock, None
        return sock

    def close(self) -> None:
        """Close the socket, unless it was handed over."""
        if self._sock is not None:
            self._sock.close()

    async def send(self, data: bytes) -> None:
        """Send all of the data. Raises ExitFault."""
        try:
            await self._loop.sock_sendall(self.sock, data)
        except OSError as error:
            raise self._lost(f"proxy: {cause(error)}") from error
        self.sent += len(data)

    async def receive(self, most: int) -> bytes:
        """Receive at least one byte and up to `most`. Raises ExitFault."""
        try:
            data = await self._loop.sock_recv(self.sock, most)
        except OSError as error:
            raise self._lost(f"proxy: {cause(error)}") from error
        if not data:
            raise self._lost(CLOSED)
        self.received += len(data)
        return data

    async def exactly(self, count: int) -> bytes:
        """Receive exactly `count` bytes, and none after them. Raises ExitFault."""
        data = b""
        while len(data) < count:
            data += await self.receive(count - len(data))
        return data

    def too_slow(self, limit_s: float) -> FetchError:
        """The error for a timeout at the current stage."""
        words = self.stage.value.format(limit_s)
        return FetchError(words) if self.stage is Stage.AWAY else self._lost(words)

    def counted(self, error: FetchError) -> FetchError:
        """Store the bytes that went over the wire in vain in the error, and return it."""
        error.wire_bytes = self.sent + self.received
        return error

    def _lost(self, words: str) -> ExitFault:
        return ExitFault(words, Blame.PAIR if self.stage is Stage.HOST else Blame.EXIT)


def no_sense() -> ExitFault:
    """The error for an answer that no proxy of this kind would give."""
    return ExitFault(NO_SENSE, Blame.EXIT)
