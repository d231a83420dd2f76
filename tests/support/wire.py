"""A connection without a network, for which a test plays the server, byte by byte."""

from __future__ import annotations

import asyncio
from typing import cast

from shoal.fetch.http.connection import Connection, Reply


class Wire(asyncio.Transport):
    """The transport of the connection, which records what was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_closed = False
        self.is_paused = False

    def write(self, data: object) -> None:
        self.sent += cast("bytes", data)

    def abort(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class Scene:
    """A connection on which a request was sent."""

    def __init__(self, limit: int, *, is_head: bool = False) -> None:
        self.wire = Wire()
        self.connection = Connection(limit)
        self.connection.connection_made(self.wire)
        self.ask(is_head=is_head)

    def ask(self, *, is_head: bool = False) -> asyncio.Future[Reply]:
        """Send the next request."""
        self.answer = self.connection.ask(b"request", is_head=is_head)
        return self.answer

    def receive(self, *pieces: bytes) -> Scene:
        """Deliver pieces of data, until the connection is closed."""
        for piece in pieces:
            if not self.wire.is_closed:
                self.connection.data_received(piece)
        return self

    def close(self, error: Exception | None = None) -> Scene:
        """Close the connection from the server's side."""
        self.connection.connection_lost(error)
        return self

    def result(self) -> Reply:
        """The answer, which must be complete."""
        assert self.answer.done(), "the answer is not complete"
        return self.answer.result()
