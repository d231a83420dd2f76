"""A host that records every request, with its source."""

from __future__ import annotations

import ssl
from contextlib import AsyncExitStack
from typing import NamedTuple, Self

from aiohttp import web

from support.redis_servers import TlsFiles


class Seen(NamedTuple):
    """A request, as the host saw it."""

    source: str
    port: int
    """The source port. With the source, it identifies the connection."""
    method: str
    path: str
    headers: dict[str, str]
    body: str


class Onlooker:
    """The host. With TLS, its certificate is for 127.0.0.1 and localhost."""

    def __init__(self, tls: TlsFiles | None = None) -> None:
        self.seen: list[Seen] = []
        self.port = 0
        self._tls = tls
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        runner = web.ServerRunner(web.Server(self._respond), shutdown_timeout=0.5)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        context = None
        if self._tls:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self._tls.certificate, self._tls.key)
        await web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=context).start()
        self.port = int(runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def sources(self) -> list[str]:
        """The source address of each request, in order."""
        return [seen.source for seen in self.seen]

    @property
    def connections(self) -> int:
        """The number of connections that have carried a request."""
        return len({(seen.source, seen.port) for seen in self.seen})

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """The URL of a page."""
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}{path}"

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        transport = request.transport
        source, port = transport.get_extra_info("peername")[:2] if transport else ("", 0)
        body = await request.text()
        headers = dict(request.headers)
        seen = Seen(source, port, request.method, request.raw_path, headers, body)
        self.seen.append(seen)
        return web.Response(text=f"to {source}")
