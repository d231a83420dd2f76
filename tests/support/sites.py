"""Servers for tests that run Shoal in other processes. They run in a thread of the test process."""

from __future__ import annotations

import asyncio
import threading
import time
from asyncio import sleep  # The function itself: tests patch asyncio.sleep for their own loop.
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from typing import NamedTuple, Self, TypeVar

from aiohttp import web

from support.until import LIMIT_S

T = TypeVar("T")

_TICK_S = 0.005

Answer = Callable[[str], Awaitable[web.Response]]


@contextmanager
def serving(server: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Enter an async context in a thread of its own, and leave it at the end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="server")
    thread.start()
    try:
        entered = asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(LIMIT_S)
        try:
            yield entered
        finally:
            leave = server.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(leave, loop).result(LIMIT_S)
            asyncio.run_coroutine_threadsafe(_hang_up(loop), loop).result(LIMIT_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(LIMIT_S)
        loop.close()


async def _hang_up(loop: asyncio.AbstractEventLoop) -> None:
    """Close what is still open, such as connections that proxies keep. Otherwise Python would warn
    of them in the middle of a later test."""
    for transport in list(getattr(loop, "_transports", {}).values()):
        transport.abort()
    await sleep(0)  # Aborted transports close in the next round of the loop.


class Hit(NamedTuple):
    """A request that reached a site."""

    at: float
    """time.monotonic() when the request was noticed."""
    path: str
    since: float = 0.0
    """A time before the request arrived, since a site on a busy machine notices requests late."""


class Site:
    """A host whose pages a test defines. Without a robots.txt among them, everything is allowed."""

    notices_hang_ups = False
    """Whether a request is cancelled when its client is gone."""
    addresses: Sequence[str] = ("127.0.0.1",)
    """The addresses at which it listens, all on the same port."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._stack = AsyncExitStack()
        self.hits: list[Hit] = []
        """Every request but those for robots.txt, in the order of arrival."""
        self.robots_hits: list[Hit] = []
        self.port = 0
        self._idle_at = 0.0

    async def __aenter__(self) -> Self:
        ticking = asyncio.create_task(self._tick())
        self._stack.callback(ticking.cancel)
        server = web.Server(self._respond, handler_cancellation=self.notices_hang_ups)
        runner = web.ServerRunner(server, shutdown_timeout=0.5)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        for address in self.addresses:
            await web.TCPSite(runner, address, self.port).start()
            self.port = int(runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def url(self) -> str:
        """The URL of the front page."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def paths(self) -> list[str]:
        """The paths that were requested, without robots.txt."""
        return [hit.path for hit in self.hits]

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        hit = Hit(time.monotonic(), request.raw_path, self._idle_at)
        (self.robots_hits if request.path == "/robots.txt" else self.hits).append(hit)
        return await self._answer(request.raw_path)

    async def _tick(self) -> None:
        """Note repeatedly the time of the loop's round before the last: requests that had arrived
        by then have been noticed since."""
        last = time.monotonic()
        for _ in range(10**9):
            self._idle_at, last = last, time.monotonic()
            await sleep(_TICK_S)


def html(text: str, status: int = 200) -> web.Response:
    """A page."""
    return web.Response(text=text, status=status, content_type="text/html")
