"""Results, the store of items and the page log: one port, with SQLite, PostgreSQL and a Redis
stream behind it. Imports drivers, runtime and core; knows of no queue, no spider and no network.
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

if TYPE_CHECKING:  # It needs an extra.
    from shoal.results.stream import ResultQueue

POSTGRES_SCHEMES = ("postgresql", "postgres")
STREAM_SCHEMES = ("redis-stream", "rediss-stream")


def open_results(address: str) -> Results:
    """The store at an address. Nothing is opened before it is used. Raises ConfigError."""
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
    """The store at an address, looked at before it is used and closed in the end."""
    results = open_results(address)
    try:
        await results.check()
        yield results
    finally:
        await results.close()


def open_queue(address: str) -> ResultQueue:
    """The results that wait in a stream, for those who store them. Raises ConfigError."""
    if address.partition(":")[0] not in STREAM_SCHEMES:
        raise ConfigError(f"no stream of results: {masked(address)!r} (write redis-stream://host)")
    queue: ResultQueue = _stream().ResultQueue(address)
    return queue


def postgres_schema(from_version: int, now: datetime) -> str:
    """The tables of the PostgreSQL store as SQL, from what a version had. Raises ConfigError."""
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
