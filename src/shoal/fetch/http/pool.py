"""Connections by where they lead: kept while they are idle, made where there is none."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from collections import OrderedDict, deque
from functools import cached_property

from aiohappyeyeballs import start_connection

from shoal.errors import OwnFault, Refused
from shoal.fetch.guard import only_public
from shoal.fetch.http.connection import Connection
from shoal.fetch.http.dns import AddressInfo, Resolver
from shoal.fetch.http.exits import SECOND_ADDRESS_AFTER_S, Exits
from shoal.fetch.http.failures import cause, is_own_fault
from shoal.fetch.http.ways import Origin, Way
from shoal.fetch.port import DIRECT

IDLE_S = 15.0
"""A connection that nobody has needed for so long is closed."""

MAX_IDLE = 500
"""Idle connections in all: each costs memory, here and there. Fewer where few files may be open."""

FILES_PER_IDLE = 4
"""Of all files that this process may have open, idle connections are at most one in so many."""


class Pool:
    """All connections of one fetcher. How many are busy is the worker's business."""

    def __init__(self, max_body_bytes: int, *, is_guarded: bool, limit_s: float) -> None:
        """`limit_s` is the time for a connection by an exit. Of others, the caller takes care."""
        self._max_body_bytes = max_body_bytes
        self._is_guarded = is_guarded
        self._resolver = Resolver()
        self._exits = Exits(self._resolver, self._speak, is_guarded=is_guarded, limit_s=limit_s)
        self._loop = asyncio.get_running_loop()
        self._idle: OrderedDict[Connection, tuple[float, deque[Connection]]] = OrderedDict()
        """Since when, and all of the same way; what was idle longest comes first."""
        self._idle_on: dict[Way, deque[Connection]] = {}
        """Idle connections by their way. What has become empty goes with the next sweep."""
        self._max_idle = _max_idle()
        self._sweeping: asyncio.TimerHandle | None = None

    def take(self, way: Way) -> Connection | None:
        """An idle connection: the one that was used last, as it is the least likely to be closed
        by the server just now."""
        here = self._idle_on.get(way)
        while here:
            connection = here.pop()
            del self._idle[connection]
            if connection.is_reusable and connection.is_quiet():
                return connection
            connection.abort()
        return None

    def give_back(self, way: Way, connection: Connection) -> None:
        """It is not needed now. One that cannot be used again is closed."""
        if not connection.is_reusable or not way[0].keeps_connections:
            connection.abort()
            return
        here = self._idle_on.get(way)
        if here is None:
            here = self._idle_on[way] = deque()
        here.append(connection)
        self._idle[connection] = self._loop.time(), here
        if len(self._idle) > self._max_idle:
            self._close_oldest()
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(IDLE_S, self._sweep)

    async def connect(self, way: Way) -> Connection:
        """A new connection, to an address that was checked. Raises FetchError and OSError."""
        route, origin = way
        proxy = route.proxy
        if proxy is None and route != DIRECT and not route.allows_direct:
            # Nothing is sent another way than it was told to be.
            raise Refused(f"no such route: {route.name}")
        is_ipv4 = proxy is not None
        try:
            if proxy is not None:
                return await self._exits.connect(way, proxy)
            addresses = await self._addresses(origin)
            is_ipv4 = all(family == socket.AF_INET for family, *_ in addresses)
            return await self._connect(origin, addresses)
        except OSError as error:
            if not is_own_fault(error, is_ipv4=is_ipv4):
                raise
            self.close_idle()  # So that there is room the next time.
            raise OwnFault(cause(error)) from error

    def close_idle(self) -> None:
        """Close all that is idle."""
        while self._idle:
            self._close_oldest()

    async def close(self) -> None:
        """Close all that is idle, and look up no more names."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        self.close_idle()
        await self._resolver.close()
        await asyncio.sleep(0)  # Transports close in the next turn of the loop.

    async def _connect(self, origin: Origin, addresses: list[AddressInfo]) -> Connection:
        sock = await start_connection(addresses, happy_eyeballs_delay=SECOND_ADDRESS_AFTER_S)
        return await self._speak(sock, origin)

    async def _speak(self, sock: socket.socket, origin: Origin) -> Connection:
        _, connection = await self._loop.create_connection(
            lambda: Connection(self._max_body_bytes),
            sock=sock,
            ssl=self._tls if origin.is_tls else None,
            server_hostname=origin.host if origin.is_tls else None,
        )
        return connection

    async def _addresses(self, origin: Origin) -> list[AddressInfo]:
        found = await self._resolver.resolve(origin.host, origin.port)
        return only_public(origin.host, found) if self._is_guarded else found

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _sweep(self) -> None:
        """Close what was idle for long."""
        self._sweeping = None
        long_ago = self._loop.time() - IDLE_S
        while self._idle and next(iter(self._idle.values()))[0] < long_ago:
            self._close_oldest()
        self._idle_on = {way: here for way, here in self._idle_on.items() if here}
        if self._idle:
            self._sweeping = self._loop.call_later(IDLE_S, self._sweep)

    def _close_oldest(self) -> None:
        oldest, (_, here) = self._idle.popitem(last=False)
        here.remove(oldest)  # It is the first.
        oldest.abort()


def _max_idle() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_IDLE if files < 0 else min(MAX_IDLE, files // FILES_PER_IDLE)
