"""A pool of connections: reuses idle ones and makes new ones where there are none."""

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
from shoal.fetch.http.exits import SECOND_ADDRESS_AFTER_S, ExitConnector
from shoal.fetch.http.failures import cause, is_own_fault
from shoal.fetch.http.ways import Origin, Way
from shoal.fetch.port import DIRECT

IDLE_S = 15.0
"""How long a connection may be idle before it is closed."""

MAX_IDLE = 500
"""The maximum number of idle connections, as each costs memory at both ends. Lower where the
process may open few files: see `FILES_PER_IDLE`."""

FILES_PER_IDLE = 4
"""At most one in this many of the files that the process may open is an idle connection."""


class ConnectionPool:
    """All connections of one fetcher. The worker limits how many are busy at once."""

    def __init__(self, max_body_bytes: int, *, is_guarded: bool, limit_s: float) -> None:
        """`limit_s` limits connecting through an exit. For direct connections the caller does."""
        self._max_body_bytes = max_body_bytes
        self._is_guarded = is_guarded
        self._resolver = Resolver()
        self._exits = ExitConnector(
            self._resolver, self._handshake, is_guarded=is_guarded, limit_s=limit_s
        )
        self._loop = asyncio.get_running_loop()
        self._idle: OrderedDict[Connection, tuple[float, deque[Connection]]] = OrderedDict()
        """For each idle connection: since when it is idle, and all idle connections of the same
        way. The longest idle comes first."""
        self._idle_on: dict[Way, deque[Connection]] = {}
        """Idle connections by way. The next sweep removes entries that have become empty."""
        self._max_idle = _max_idle()
        self._sweeping: asyncio.TimerHandle | None = None

    def take(self, way: Way) -> Connection | None:
        """Take an idle connection. The one used last comes first: it is the least likely to be
        just closed by the server."""
        here = self._idle_on.get(way)
        while here:
            connection = here.pop()
            del self._idle[connection]
            if connection.is_reusable and connection.is_quiet():
                return connection
            connection.abort()
        return None

    def give_back(self, way: Way, connection: Connection) -> None:
        """Return a connection that is not needed now. It is closed if it cannot be reused."""
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
        """Make a new connection, to a checked address. Raises FetchError and OSError."""
        route, origin = way
        proxy = route.proxy
        if proxy is None and route != DIRECT and not route.allows_direct:
            # A request with a route that cannot be taken must not fall back to a direct one.
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
            self.close_idle()  # Frees sockets and memory for the next attempt.
            raise OwnFault(cause(error)) from error

    def close_idle(self) -> None:
        """Close all idle connections."""
        while self._idle:
            self._close_oldest()

    async def close(self) -> None:
        """Close all idle connections and the resolver."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        self.close_idle()
        await self._resolver.close()
        await asyncio.sleep(0)  # Transports close in the next turn of the loop.

    async def _connect(self, origin: Origin, addresses: list[AddressInfo]) -> Connection:
        sock = await start_connection(addresses, happy_eyeballs_delay=SECOND_ADDRESS_AFTER_S)
        return await self._handshake(sock, origin)

    async def _handshake(self, sock: socket.socket, origin: Origin) -> Connection:
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
        """Close connections that were idle for longer than `IDLE_S`."""
        self._sweeping = None
        long_ago = self._loop.time() - IDLE_S
        while self._idle and next(iter(self._idle.values()))[0] < long_ago:
            self._close_oldest()
        self._idle_on = {way: here for way, here in self._idle_on.items() if here}
        if self._idle:
            self._sweeping = self._loop.call_later(IDLE_S, self._sweep)

    def _close_oldest(self) -> None:
        oldest, (_, here) = self._idle.popitem(last=False)
        here.remove(oldest)  # Cheap: it is the first element.
        oldest.abort()


def _max_idle() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_IDLE if files < 0 else min(MAX_IDLE, files // FILES_PER_IDLE)
