"""The connection to PostgreSQL: one for each store, reopened after it was lost.

A worker saves one batch at a time, so it can use only one connection; a fleet of fifty workers
needs fifty. Nothing is retried here, except transactions that the server itself rolled back.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

import asyncpg
from asyncpg.exceptions import ClientConfigurationError, TransactionRollbackError

from shoal.core.addresses import masked
from shoal.errors import ConfigError, ShoalError
from shoal.results.postgres.failures import RowRejected, translated

T = TypeVar("T")

CONNECT_S = 10.0
ANSWER_S = 60.0
"""How long to wait for an answer of the server before giving up the connection."""

LONG_S = 600.0
"""The same for work that may take long: schema changes, and counting or removing many rows."""

ROLLBACK_TRIES = 5

_PREPARED = re.compile(r"(?<=[?&])prepared=(?P<value>[^&]*)&?")

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


class PostgresLink:
    """Runs work on a connection whose schema was checked, and updated if needed, on connecting."""

    def __init__(
        self,
        address: str,
        is_ready: Callable[[Connection], Awaitable[bool]],
        make_ready: Callable[[Connection], Awaitable[None]],
    ) -> None:
        self.shown = masked(address)
        self._dsn, self._keeps_statements = _own_option(address)
        self._is_ready = is_ready
        self._make_ready = make_ready
        self._connection: Connection | None = None
        self._one_at_a_time = asyncio.Lock()

    async def run(
        self, work: Callable[[Connection], Awaitable[T]], within_s: float = ANSWER_S
    ) -> T:
        """Run work on the connection. It runs again if the server rolled it back to resolve a
        conflict."""
        async with self._one_at_a_time:
            connection = self._connection
            if connection is None or connection.is_closed():
                connection = await self._connected()
            async with self._talking(within_s):
                return await _done(work, connection)

    async def close(self) -> None:
        """Close the connection and cancel what it is still doing. Otherwise the server would finish
        that and hold its locks meanwhile. Not an error if the server is gone."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            try:
                await connection.close(timeout=CONNECT_S)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                connection.terminate()

    @asynccontextmanager
    async def _talking(self, within_s: float) -> AsyncIterator[None]:
        """Translate errors, and close the connection after a failure that may be its own.
        Otherwise the rest of the failed work could mix with the work that comes next."""
        try:
            with translated(self.shown):
                async with asyncio.timeout(within_s):
                    yield
        except (ShoalError, asyncio.CancelledError) as error:
            if not isinstance(error, RowRejected):
                await self.close()
            raise

    async def _connected(self) -> Connection:
        async with self._talking(ANSWER_S):
            connection = self._connection = await self._connect()
            is_ready = await self._is_ready(connection)
        if not is_ready:
            async with self._talking(LONG_S):
                await self._make_ready(connection)
        return connection

    async def _connect(self) -> Connection:
        settings: dict[str, Any] = {} if self._keeps_statements else {"statement_cache_size": 0}
        try:
            return await asyncpg.connect(
                self._dsn,
                timeout=CONNECT_S,
                server_settings={"application_name": "shoal"},
                **settings,
            )
        except ClientConfigurationError:
            raise
        except ValueError:  # asyncpg's message may contain the password.
            raise ConfigError(
                f"not a PostgreSQL address: {self.shown!r}"
                " (write postgresql://user:password@host:5432/database)"
            ) from None


async def _done(work: Callable[[Connection], Awaitable[T]], connection: Connection) -> T:
    for _ in range(ROLLBACK_TRIES - 1):
        try:
            return await work(connection)
        except TransactionRollbackError:
            continue
    return await work(connection)


def _own_option(address: str) -> tuple[str, bool]:
    """The address for asyncpg, without Shoal's own option `prepared`, and the value of that."""
    found = _PREPARED.search(address)
    if found is None:
        return address, True
    if found["value"] not in ("yes", "no"):
        raise ConfigError(f"{masked(address)}: prepared is yes or no")
    return _PREPARED.sub("", address).rstrip("?&"), found["value"] == "yes"
