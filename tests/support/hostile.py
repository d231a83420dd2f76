"""A web server that misbehaves on purpose. Each path breaks something else: see `hostile_pages`,
which a crawl can visit as a whole, and `hostile_tricks`.

It speaks on raw streams, because a proper HTTP library would refuse to be this bad.

    async with HostileServer() as server:
        ... server.url("/gzip-bomb") ...

Endless pages stop when the client hangs up or the server is closed. Nothing long is ever prepared
in memory.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from support.hostile_pages import PAGES, not_found
from support.hostile_tricks import TRICKS
from support.hostile_wire import Connection, Request
from support.until import until


class HostileServer:
    """The server. `requests` is its log, `robots` the text of /robots.txt (None: 404)."""

    def __init__(self, robots: str | bytes | None = None, address: str = "127.0.0.1") -> None:
        self.robots = robots
        self.address = address
        self.requests: list[Request] = []
        self.connections: list[Connection] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.address, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy)
        await self._server.wait_closed()

    @property
    def base_url(self) -> str:
        """The server's URL, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        """The URL of a page."""
        return self.base_url + path

    @property
    def paths(self) -> list[str]:
        """The paths that were requested, in order."""
        return [request.path for request in self.requests]

    @property
    def bytes_sent(self) -> int:
        """Bytes sent so far, over all connections."""
        return sum(connection.bytes_sent for connection in self.connections)

    @property
    def bytes_received(self) -> int:
        """Bytes of all requests so far, over all connections."""
        return sum(connection.bytes_received for connection in self.connections)

    @property
    def open_connections(self) -> int:
        """How many clients are connected."""
        return len(self._busy)

    async def arrival(self, path: str) -> Request:
        """The first request for a path; waits until there is one."""

        def arrived() -> Request | None:
            return next((request for request in self.requests if request.path == path), None)

        return await until(f"a request for {path}", arrived)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        connection = Connection(len(self.connections), reader, writer)
        self.connections.append(connection)
        try:
            await self._converse(connection)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client hung up, or the server is being closed
        finally:
            connection.abort()
            self._busy.discard(task)

    async def _converse(self, connection: Connection) -> None:
        while not connection.over:
            request = await connection.request()
            self.requests.append(request)
            await self._answer(connection, request)
        await connection.hang_up()

    async def _answer(self, connection: Connection, request: Request) -> None:
        if request.page == "/robots.txt" and self.robots is not None:
            text = self.robots.encode() if isinstance(self.robots, str) else self.robots
            await connection.reply(request, text, "Content-Type: text/plain")
            return
        folder = request.page[: request.page.find("/", 1) + 1]
        page = PAGES.get(request.page) or PAGES.get(folder) or TRICKS.get(request.page) or not_found
        await page(connection, request)
