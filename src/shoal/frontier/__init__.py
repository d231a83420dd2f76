"""The frontier, the queue that a fleet shares: one port, with SQLite and Redis behind it.
Imports drivers, runtime and core; knows of no results, no spider and no network.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shoal.core.addresses import masked
from shoal.drivers.sqlite import path_of
from shoal.errors import ConfigError, MissingExtra
from shoal.frontier.port import Frontier
from shoal.frontier.sqlite.frontier import SqliteFrontier

REDIS_SCHEMES = ("redis", "rediss", "redis+sentinel", "redis+cluster")


def open_frontier(address: str) -> Frontier:
    """The frontier at an address. Nothing is touched before the first call."""
    scheme = address.partition(":")[0]
    if scheme == "sqlite":
        return SqliteFrontier(path_of(address))
    if scheme in REDIS_SCHEMES:
        return _redis_frontier(address)
    raise ConfigError(
        f"no frontier for {masked(address)!r} (supported: sqlite:///path.db, redis://host,"
        " rediss://host, redis+sentinel://h1,h2/service, redis+cluster://h1,h2)"
    )


@asynccontextmanager
async def frontier_at(address: str) -> AsyncIterator[Frontier]:
    """The frontier at an address, closed in the end."""
    frontier = open_frontier(address)
    try:
        yield frontier
    finally:
        await frontier.close()


def _redis_frontier(address: str) -> Frontier:
    try:
        from shoal.frontier.redis import RedisFrontier
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        raise MissingExtra("a redis:// frontier", "redis") from None
    return RedisFrontier(address)
