"""A Redis for the tests of a module, empty for each of them; and a frontier of either kind."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from support.rarely import first_then_rare
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


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a frontier: a file in the test's folder, and an empty server."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/queue.db"
    request.getfixturevalue("raw")
    server: RedisServer = request.getfixturevalue("server")
    return server.url


@pytest.fixture
def collected() -> Iterator[None]:
    """For those whose servers are left with open connections by the proxies that they kill: Python
    says so now, where it is expected, and not in the middle of another test."""
    yield
    gc.collect()
