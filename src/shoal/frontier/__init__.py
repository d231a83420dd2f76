"""The frontier: the queue that a fleet shares. One port, implemented on SQLite and on Redis, where
a broker may carry tasks. Imports drivers, runtime and core; knows nothing of results, spiders or
fetching.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shoal.core.addresses import masked
from shoal.drivers.sqlite import path_of
from shoal.errors import ConfigError, MissingExtra
from shoal.frontier.addresses import BROKER_SCHEMES, REDIS_SCHEMES, Place, place_of, scheme_of
from shoal.frontier.port import Frontier
from shoal.frontier.sqlite.frontier import SqliteFrontier


def open_frontier(address: str, state: str | None = None) -> Frontier:
    """Open the frontier at an address. If that is a broker, `state` is the address of its state.
    Connects on the first call. Raises ConfigError or MissingExtra."""
    place = place_of(address, state)
    scheme = scheme_of(address)
    if scheme == "sqlite":
        return SqliteFrontier(path_of(address))
    if scheme in (*REDIS_SCHEMES, *BROKER_SCHEMES):
        return _redis_frontier(place)
    raise ConfigError(
        f"no frontier for {masked(address)!r} (supported: sqlite:///path.db, redis://host,"
        " rediss://host, redis+sentinel://h1,h2/service, redis+cluster://h1,h2; with --state:"
        " amqp://host, sqs://region/prefix)"
    )


@asynccontextmanager
async def frontier_at(address: str, state: str | None = None) -> AsyncIterator[Frontier]:
    """Open the frontier at an address, and close it at the end."""
    frontier = open_frontier(address, state)
    try:
        yield frontier
    finally:
        await frontier.close()


def _redis_frontier(place: Place) -> Frontier:
    try:
        if place.sizes is not None:
            from shoal.frontier.broker.opening import open_carried

            return open_carried(place, place.sizes)
        from shoal.frontier.redis import RedisFrontier
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        raise MissingExtra("a redis:// frontier", "redis") from None
    return RedisFrontier(place.address)
