"""The results store, for items and the page log: one port, implemented by SQLite, PostgreSQL and a
Redis stream.

Imports drivers, runtime and core. Knows nothing of frontiers, spiders or fetching.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from types import ModuleType
from typing import TYPE_CHECKING

from shoal.core.addresses import masked
from shoal.drivers.sqlite import path_of
from shoal.errors import ConfigError, MissingExtra
from shoal.results.port import Results
from shoal.results.sqlite.store import SqliteResults

if TYPE_CHECKING:  # It needs the extra `redis`.
    from shoal.results.stream import ResultQueue

POSTGRES_SCHEMES = ("postgresql", "postgres")
STREAM_SCHEMES = ("redis-stream", "rediss-stream")


def open_results(address: str) -> Results:
    """Make the store for an address. It connects when it is first used. Raises ConfigError."""
    scheme = address.partition(":")[0]
    if scheme == "sqlite":
        return SqliteResults(path_of(address))
    if scheme in POSTGRES_SCHEMES:
        store: Results = _postgres().PostgresResults(address)
        return store
    if scheme in STREAM_SCHEMES:
        results: Results = _stream().RedisStreamResults(address)
        return results
    raise ConfigError(
        f"no results store for {masked(address)!r} (supported: sqlite:///path.db,"
        " postgresql://user@host/database, redis-stream://host, rediss-stream://host)"
    )


@asynccontextmanager
async def results_at(address: str) -> AsyncIterator[Results]:
    """The store at an address, checked before use and closed at the end. Raises ConfigError."""
    results = open_results(address)
    try:
        await results.check()
        yield results
    finally:
        await results.close()


def open_queue(address: str) -> ResultQueue:
    """Make the queue of the results that wait in a stream for delivery. Raises ConfigError."""
    if address.partition(":")[0] not in STREAM_SCHEMES:
        raise ConfigError(f"no stream of results: {masked(address)!r} (write redis-stream://host)")
    queue: ResultQueue = _stream().ResultQueue(address)
    return queue


def postgres_schema(from_version: int, now: datetime) -> str:
    """The SQL that makes the tables of the PostgreSQL store, or upgrades them from a version.

    Raises ConfigError if the version is unknown.
    """
    text: str = _postgres().schema_text(from_version, now)
    return text


def _postgres() -> ModuleType:
    try:
        from shoal.results import postgres
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "asyncpg":
            raise
        raise MissingExtra("postgresql:// results", "postgres") from None
    return postgres


def _stream() -> ModuleType:
    try:
        from shoal.results import stream
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        raise MissingExtra("redis-stream:// results", "redis") from None
    return stream
