"""A Redis for the tests of a module, empty for each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from support.redis_servers import RedisServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One that is kept on disk."""
    with RedisServer(tmp_path_factory.mktemp("redis"), "--appendonly", "yes") as server:
        yield server


@pytest.fixture
def raw(server: RedisServer) -> Iterator[redis.Redis]:
    """A client of it."""
    with server.client() as client:
        client.flushall()
        yield client
