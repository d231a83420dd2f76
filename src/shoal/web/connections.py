"""Connections, and how long and how many of them wait for their clients.

At any moment a connection waits for its client (for a request, for a body, for room to write an
answer), or its client waits for us. Only the first costs an attacker nothing. So each such wait has
a limit, and when all places are taken, the connection that has waited longest gives its place to
the next one. If no connection waits, the next one is told to come again: at once, not later.
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
"""Of the files that this process may open, connections take a quarter at most."""
MAX_HEADERS = 64
MAX_LINE_BYTES = 128 * 1024
"""Of a request's first line: a URL to explain has 8,000 characters, of twelve bytes when quoted."""
MAX_AHEAD_BYTES = 64 * 1024
"""What a client may send of later requests before it has the answer to this one."""
MAX_HELD_BYTES = 64 * 1024 * 1024
"""For all clients that we wait for: answers that they do not take, headers that do not end."""
LARGE_BYTES = 64 * 1024
"""Who makes us hold less is not the one to blame."""
GRACE_S = 1.0
"""So long a connection keeps its place, whoever else comes: a request needs a moment to arrive."""
FIRST_S = 15.0
"""From the connection to the end of its first request's headers."""
IDLE_S = 75.0
"""From an answer to the end of the next headers. Longer than proxies keep a connection: it is the
client that closes it, not we while a request is on its way."""
UNREAD_S = 60.0
"""A client has so long to take what is on its way to it."""
AWAY_S = 1.0
MAX_AWAY = 200


class Connections:
    """All connections of a server."""

    def __init__(
        self, server: web.Server, headers: dict[str, str], most: int | None = None, **options: Any
    ) -> None:
        """`headers` are for answers that no route gives; `options` are those of RequestHandler."""
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._most = most or _max_connections()
        self._options = options
        self._open: set[Connection] = set()
        self._waiting: dict[Connection, float] = {}
        """Since when; the one that has waited longest is the first."""
        self.headers = headers
        self.away = 0

    def __call__(self) -> Connection:
        """A connection, as the event loop wants it."""
        return Connection(
            self,
            self._server,
            loop=self._loop,
            max_line_size=MAX_LINE_BYTES,
            max_headers=MAX_HEADERS,
            auto_decompress=False,  # A small body would make a large one: see guard.py.
            **self._options,
        )

    def lets_in(self, connection: Connection) -> bool:
        """Whether there is a place for one more."""
        if len(self._open) >= self._most and not self._has_made_room():
            return False
        self._open.add(connection)
        return True

    def _has_made_room(self) -> bool:
        longest = next(iter(self._waiting), None)
        if longest is None or self._loop.time() - self._waiting[longest] < GRACE_S:
            return False
        longest.abort()
        return True

    def waits(self, connection: Connection) -> None:
        """From now on this one waits for its client."""
        self._waiting.pop(connection, None)
        if connection in self._open:
            self._waiting[connection] = self._loop.time()

    def works(self, connection: Connection) -> None:
        """From now on the client of this one waits."""
        self._waiting.pop(connection, None)

    def leaves(self, connection: Connection) -> None:
        """This one is over."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def limit_held(self) -> None:
        """End those that have waited longest, until what is held for all is little enough."""
        held = {each: each.held_bytes for each in self._waiting}
        total = sum(held.values())
        for connection, size in held.items():
            if total <= MAX_HELD_BYTES:
                return
            if size > LARGE_BYTES:
                total -= size
                connection.abort()


class Connection(web.RequestHandler):
    """One connection."""

    __slots__ = ("_ahead", "_all", "_head", "_socket", "_timer")

    def __init__(self, connections: Connections, server: web.Server, **options: Any) -> None:
        super().__init__(server, **options)
        self._all = connections
        self._ahead: int | None = None
        """How much has come of later requests. None: what comes is of this one."""
        self._head: int | None = 0
        """How much has come of headers. None: they are over."""
        self._timer: asyncio.TimerHandle | None = None
        self._socket: asyncio.Transport | None = None

    @property
    def held_bytes(self) -> int:
        """What is held for its client."""
        return (self._socket.get_write_buffer_size() if self._socket else 0) + (self._head or 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there: let it in, or send it away."""
        self._socket = cast(asyncio.Transport, transport)
        if self._all.lets_in(self):
            super().connection_made(transport)
            self._wait(FIRST_S)
            return
        away = _TurnedAway(self._all)
        transport.set_protocol(away)
        away.connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is over."""
        self._end_wait()
        self._all.leaves(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Something came."""
        if self._ahead is not None:
            self._ahead += len(data)
            if self._ahead > MAX_AHEAD_BYTES:
                self.abort()
                return
        if self._head is not None:
            self._head += len(data)  # A body that comes with them counts for a moment, too.
            if self._head > LARGE_BYTES:
                self._all.limit_held()
        super().data_received(data)

    def begin(self, request: web.Request) -> None:
        """A request has come: its headers, not yet its body."""
        self._end_wait()
        self._all.works(self)
        self._head = None
        if not request.can_read_body:
            self.has_all()

    def has_all(self) -> None:
        """All of the request is here. What comes now is of a later one."""
        self._ahead = 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Meanwhile it waits for its client. Whoever does so has a limit of its own."""
        self._all.waits(self)
        try:
            yield
        finally:
            self._all.works(self)

    async def finish_response(self, *args: Any) -> tuple[web.StreamResponse, bool]:
        """Send an answer; then wait for the next request."""
        answered: tuple[web.StreamResponse, bool] = await super().finish_response(*args)
        self._ahead, self._head = None, 0
        self._wait(IDLE_S)
        return answered

    def handle_error(self, *args: Any, **options: Any) -> web.StreamResponse:
        """An answer to what is no request."""
        answer = super().handle_error(*args, **options)
        answer.headers.update(self._all.headers)
        return answer

    def pause_writing(self) -> None:
        """The client does not take what it gets."""
        super().pause_writing()
        self._wait(UNREAD_S)
        self._all.limit_held()

    def resume_writing(self) -> None:
        """It takes it again."""
        super().resume_writing()
        self._end_wait()
        self._all.works(self)

    def abort(self) -> None:
        """End it at once: who is at the other end has had its time."""
        self._all.leaves(self)
        if self._socket is not None:
            self._socket.abort()

    def _wait(self, limit_s: float) -> None:
        self._end_wait()
        self._all.waits(self)
        self._timer = self._loop.call_later(limit_s, self.abort)

    def _end_wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _TurnedAway(asyncio.Protocol):
    """Tells a client to come again. It takes in what the client is sending: otherwise the client
    would get a reset instead of the answer."""

    def __init__(self, connections: Connections) -> None:
        self._all = connections
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say it, and leave a moment for it to be read."""
        socket = cast(asyncio.Transport, transport)
        self._all.away += 1
        socket.write(_come_again(self._all.headers))
        if self._all.away > MAX_AWAY:
            socket.close()
            return
        socket.write_eof()
        self._timer = asyncio.get_running_loop().call_later(AWAY_S, socket.abort)

    def connection_lost(self, exc: BaseException | None) -> None:
        """It was read, or it was time."""
        self._all.away -= 1
        if self._timer is not None:
            self._timer.cancel()


class AtOnce:
    """So many of a kind at once. Others are told to come again: nobody waits in line."""

    def __init__(self, most: int, what: str) -> None:
        self._most = most
        self._what = what
        self._now = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """One of them. Raises Problem if there are too many."""
        if self._now >= self._most:
            detail = f"there are {self._now} {self._what} under way: come again"
            raise Problem(503, detail, headers={"Retry-After": "5"})
        self._now += 1
        try:
            yield
        finally:
            self._now -= 1


def connection_of(request: web.Request) -> Connection:
    """The connection that a request came by."""
    return cast(Connection, request.protocol)


def _come_again(headers: dict[str, str]) -> bytes:
    body = encoded(ProblemDetails(status=503, title="Service Unavailable", detail="too many ask"))
    told = {
        **headers,
        "Content-Type": "application/problem+json",
        "Content-Length": str(len(body)),
        "Retry-After": "1",
        "Connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return f"HTTP/1.1 503 Service Unavailable\r\n{lines}\r\n".encode() + body


def _max_connections() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files < 0 else min(MAX_CONNECTIONS, files // FILES_PER_CONNECTION)
