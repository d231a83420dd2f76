"""Limits how many connections there are, and how long each may wait for its client.

At any moment a connection waits for its client (for a request, for a body, for room to write an
answer), or the client waits for the server. Only the first costs an attacker nothing. So each such
wait has a limit. When all places are taken, a new connection replaces the one that has waited
longest. If none is waiting, the new one is answered with 503 at once.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from aiohttp import web

from shoal.web.problems import Problem, ProblemDetails, encoded

MAX_CONNECTIONS = 500
FILES_PER_CONNECTION = 4
"""Connections use at most a quarter of the files that this process may open."""
MAX_HEADERS = 64
MAX_LINE_BYTES = 128 * 1024
"""Limit of a request's first line. It may have a URL to explain, of 8,000 characters, each up to 12
bytes when quoted."""
MAX_AHEAD_BYTES = 64 * 1024
"""How much of later requests a client may send before it has the answer to the current one."""
MAX_HELD_BYTES = 64 * 1024 * 1024
"""Limit for all clients together: answers that they do not read, and headers that do not end."""
LARGE_BYTES = 64 * 1024
"""Connections that hold less than this are not closed to stay within `MAX_HELD_BYTES`."""
GRACE_S = 1.0
"""How long a waiting connection cannot be replaced: a request needs a moment to arrive."""
FIRST_S = 15.0
"""Limit from the connection to the end of its first request's headers."""
IDLE_S = 75.0
"""Limit from an answer to the end of the next headers. It is longer than proxies keep connections,
so that the client closes them; the server might do so while a request is on its way."""
UNREAD_S = 60.0
"""How long a client may take to read the part of an answer that fills the buffers."""
TURNED_AWAY_S = 1.0
"""How long a client that is turned away has to read the answer."""
MAX_TURNED_AWAY = 200
"""Connections being turned away at the same time. More of them are closed without that time."""


class Connections:
    """All connections of a server."""

    def __init__(
        self, server: web.Server, headers: dict[str, str], most: int | None = None, **options: Any
    ) -> None:
        """`headers` are for answers that no route gives; RequestHandler gets the `options`."""
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._most = most or _max_connections()
        self._options = options
        self._open: set[Connection] = set()
        self._waiting: dict[Connection, float] = {}
        """Since when each of them waits. The first one has waited longest."""
        self.headers = headers
        self.turned_away = 0

    def __call__(self) -> Connection:
        """Make a connection. This is the protocol factory that `create_server` needs."""
        return Connection(
            self,
            self._server,
            loop=self._loop,
            max_line_size=MAX_LINE_BYTES,
            max_headers=MAX_HEADERS,
            auto_decompress=False,  # A small body could become a huge one: guard.py refuses them.
            **self._options,
        )

    def admit(self, connection: Connection) -> bool:
        """Register a connection, if there is a place for it. Returns whether there was."""
        if len(self._open) >= self._most and not self._make_room():
            return False
        self._open.add(connection)
        return True

    def _make_room(self) -> bool:
        """End the connection that has waited longest. Returns whether one could be ended."""
        longest = next(iter(self._waiting), None)
        if longest is None or self._loop.time() - self._waiting[longest] < GRACE_S:
            return False
        longest.abort()
        return True

    def mark_waiting(self, connection: Connection) -> None:
        """Note that a connection waits for its client from now on."""
        self._waiting.pop(connection, None)
        if connection in self._open:
            self._waiting[connection] = self._loop.time()

    def mark_working(self, connection: Connection) -> None:
        """Note that a connection's client waits for the server from now on."""
        self._waiting.pop(connection, None)

    def remove(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def limit_memory(self) -> None:
        """End large connections, longest waiting first, until all hold at most MAX_HELD_BYTES."""
        held = {each: each.held_bytes for each in self._waiting}
        total = sum(held.values())
        for connection, size in held.items():
            if total <= MAX_HELD_BYTES:
                return
            if size > LARGE_BYTES:
                total -= size
                connection.abort()


class Connection(web.RequestHandler):
    """One connection, which reports to `Connections` when it waits for its client."""

    __slots__ = ("_ahead_bytes", "_connections", "_head_bytes", "_socket", "_timer")

    def __init__(self, connections: Connections, server: web.Server, **options: Any) -> None:
        super().__init__(server, **options)
        self._connections = connections
        self._ahead_bytes: int | None = None
        """Bytes of later requests that have arrived. None: the current one is still arriving."""
        self._head_bytes: int | None = 0
        """Bytes of a request's headers that have arrived. None: they are complete."""
        self._timer: asyncio.TimerHandle | None = None
        self._socket: asyncio.Transport | None = None

    @property
    def held_bytes(self) -> int:
        """Memory held for its client: what is left to send, and headers that are not complete."""
        unsent = self._socket.get_write_buffer_size() if self._socket else 0
        return unsent + (self._head_bytes or 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the new connection, or turn it away if there is no place."""
        self._socket = cast(asyncio.Transport, transport)
        if self._connections.admit(self):
            super().connection_made(transport)
            self._wait(FIRST_S)
            return
        turned_away = _TurnedAway(self._connections)
        transport.set_protocol(turned_away)
        turned_away.connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Free the connection's place."""
        self._end_wait()
        self._connections.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what arrived, end the connection if that is too much, and pass it on."""
        if self._ahead_bytes is not None:
            self._ahead_bytes += len(data)
            if self._ahead_bytes > MAX_AHEAD_BYTES:
                self.abort()
                return
        if self._head_bytes is not None:
            # A part of the body may be counted too, until `begin` is called.
            self._head_bytes += len(data)
            if self._head_bytes > LARGE_BYTES:
                self._connections.limit_memory()
        super().data_received(data)

    def begin(self, request: web.Request) -> None:
        """Note that a request's headers are complete. Its body may still have to arrive."""
        self._end_wait()
        self._connections.mark_working(self)
        self._head_bytes = None
        if not request.can_read_body:
            self.request_complete()

    def request_complete(self) -> None:
        """Note that the request has arrived completely: further bytes belong to later ones."""
        self._ahead_bytes = 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Within this context, the connection waits for its client. The caller sets a limit."""
        self._connections.mark_waiting(self)
        try:
            yield
        finally:
            self._connections.mark_working(self)

    async def finish_response(self, *args: Any) -> tuple[web.StreamResponse, bool]:
        """Send an answer, then wait for the next request."""
        answered: tuple[web.StreamResponse, bool] = await super().finish_response(*args)
        self._ahead_bytes, self._head_bytes = None, 0
        self._wait(IDLE_S)
        return answered

    def handle_error(self, *args: Any, **options: Any) -> web.StreamResponse:
        """The answer to input that is not a valid request."""
        answer = super().handle_error(*args, **options)
        answer.headers.update(self._connections.headers)
        return answer

    def pause_writing(self) -> None:
        """Begin to wait: the client does not read its answer, and the buffer is full."""
        super().pause_writing()
        self._wait(UNREAD_S)
        self._connections.limit_memory()

    def resume_writing(self) -> None:
        """End the wait: the client has read on."""
        super().resume_writing()
        self._end_wait()
        self._connections.mark_working(self)

    def abort(self) -> None:
        """Close the connection at once, without waiting for anything to be sent."""
        self._connections.remove(self)
        if self._socket is not None:
            self._socket.abort()

    def _wait(self, limit_s: float) -> None:
        self._end_wait()
        self._connections.mark_waiting(self)
        self._timer = self._loop.call_later(limit_s, self.abort)

    def _end_wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _TurnedAway(asyncio.Protocol):
    """Answers 503 and ignores what the client sends. If that were left unread, the client would get
    a reset instead of the answer."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the answer, and leave the client a moment to read it."""
        socket = cast(asyncio.Transport, transport)
        self._connections.turned_away += 1
        socket.write(_unavailable(self._connections.headers))
        if self._connections.turned_away > MAX_TURNED_AWAY:
            socket.close()
            return
        socket.write_eof()
        self._timer = asyncio.get_running_loop().call_later(TURNED_AWAY_S, socket.abort)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the timer: the client has closed the connection, or its time was over."""
        self._connections.turned_away -= 1
        if self._timer is not None:
            self._timer.cancel()


class ConcurrencyLimit:
    """Limits how many requests of a kind run at the same time. Further ones fail at once: they are
    never queued."""

    def __init__(self, most: int, what: str) -> None:
        self._most = most
        self._what = what
        self._now = 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Run one of them in this context. Raises Problem if there are too many."""
        if self._now >= self._most:
            detail = f"there are {self._now} {self._what} under way: try again later"
            raise Problem(503, detail, headers={"Retry-After": "5"})
        self._now += 1
        try:
            yield
        finally:
            self._now -= 1


def connection_of(request: web.Request) -> Connection:
    """The connection on which a request arrived."""
    return cast(Connection, request.protocol)


def _unavailable(headers: dict[str, str]) -> bytes:
    body = encoded(
        ProblemDetails(status=503, title="Service Unavailable", detail="too many connections")
    )
    fields = {
        **headers,
        "Content-Type": "application/problem+json",
        "Content-Length": str(len(body)),
        "Retry-After": "1",
        "Connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 503 Service Unavailable\r\n{lines}\r\n".encode() + body


def _max_connections() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files < 0 else min(MAX_CONNECTIONS, files // FILES_PER_CONNECTION)
