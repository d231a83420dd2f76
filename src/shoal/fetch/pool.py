"""Connections by where they lead: kept while they are idle, made where there is none."""

from __future__ import annotations

import asyncio
import ssl
from functools import cached_property

import msgspec
from aiohappyeyeballs import start_connection

from shoal.fetch.connection import Connection
from shoal.fetch.dns import AddressInfo, Resolver
from shoal.fetch.guard import only_public

IDLE_S = 15.0
"""A connection that nobody has needed for so long is closed."""

SECOND_ADDRESS_AFTER_S = 0.25
"""If the first address of a name does not answer by then, the next one is tried beside it."""


class Origin(msgspec.Struct, frozen=True):
    """Where a connection leads."""

    is_tls: bool
    host: str
    port: int


class Pool:
    """All connections of one fetcher. How many there are is the worker's business."""

    def __init__(self, max_body_bytes: int, *, is_guarded: bool) -> None:
        self._max_body_bytes = max_body_bytes
        self._is_guarded = is_guarded
        self._resolver = Resolver()
        self._loop = asyncio.get_running_loop()
        self._idle: dict[Origin, list[tuple[float, Connection]]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def take(self, origin: Origin) -> Connection | None:
        """An idle connection: the one that was used last, as it is the least likely to be closed
        by the server just now."""
        idle = self._idle.get(origin)
        while idle:
            _, connection = idle.pop()
            if connection.is_reusable:
                return connection
        return None

    def give_back(self, origin: Origin, connection: Connection) -> None:
        """It is not needed now. One that cannot be used again is closed."""
        if not connection.is_reusable:
            connection.abort()
            return
        self._idle.setdefault(origin, []).append((self._loop.time(), connection))
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(IDLE_S, self._sweep)

    async def connect(self, origin: Origin) -> Connection:
        """A new connection, to an address that was checked. Raises Refused and OSError."""
        addresses = await self._addresses(origin)
        sock = await start_connection(addresses, happy_eyeballs_delay=SECOND_ADDRESS_AFTER_S)
        _, connection = await self._loop.create_connection(
            lambda: Connection(self._max_body_bytes),
            sock=sock,
            ssl=self._tls if origin.is_tls else None,
            server_hostname=origin.host if origin.is_tls else None,
        )
        return connection

    async def close(self) -> None:
        """Close all that is idle."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for idle in self._idle.values():
            for _, connection in idle:
                connection.abort()
        self._idle.clear()
        self._resolver.close()
        await asyncio.sleep(0)  # Transports close in the next turn of the loop.

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
        oldest = self._loop.time() - IDLE_S
        for origin, idle in list(self._idle.items()):
            for since, connection in idle:
                if since < oldest:
                    connection.abort()
            kept = [entry for entry in idle if entry[1].is_reusable]
            if kept:
                self._idle[origin] = kept
            else:
                del self._idle[origin]
        if self._idle:
            self._sweeping = self._loop.call_later(IDLE_S, self._sweep)
