"""Servers that tests share: one for each test module, empty for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.frontiers import checked
from support.postgres_servers import QUICK, PostgresServer
from support.redis_backend import RedisBackend
from support.redis_servers import RedisServer


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(Path(tmp_path_factory.mktemp("redis"))) as server:
        yield server


@pytest.fixture
async def on_redis(redis_server: RedisServer) -> AsyncIterator[RedisBackend]:
    """A frontier on an empty server, under a clock of ours."""
    redis_server.client().flushall()
    backend = RedisBackend(redis_server.url)
    async with checked(backend):
        yield backend


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[PostgresServer]:
    with PostgresServer(**QUICK) as server:
        yield server
