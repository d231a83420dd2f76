"""Fixtures of servers that tests share: one per test process, empty for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.frontiers import checked
from support.postgres_servers import QUICK, PostgresServer
from support.rabbitmq_servers import RabbitServer
from support.redis_backend import RedisBackend
from support.redis_groups import RedisCluster
from support.redis_servers import RedisServer, TlsFiles
from support.sqs_servers import SqsMinistack, SqsServer


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(Path(tmp_path_factory.mktemp("redis"))) as server:
        yield server


@pytest.fixture
def redis_server(shared_redis: RedisServer) -> RedisServer:
    shared_redis.flush()
    return shared_redis


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    with RedisCluster(Path(tmp_path_factory.mktemp("cluster"))) as cluster:
        yield cluster


@pytest.fixture
def redis_cluster(shared_cluster: RedisCluster) -> RedisCluster:
    shared_cluster.flush()
    return shared_cluster


@pytest.fixture
async def on_redis(redis_server: RedisServer) -> AsyncIterator[RedisBackend]:
    """A frontier on an empty server, with a fake clock."""
    backend = RedisBackend(redis_server.url)
    async with checked(backend):
        yield backend


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with PostgresServer(**QUICK) as server:
        yield server


@pytest.fixture(scope="session")
def rabbitmq_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitServer]:
    """A node that keeps its queues, so tests must use different names."""
    folder = tmp_path_factory.mktemp("rabbitmq")
    with RabbitServer(folder / "node", tls=TlsFiles(folder / "tls")) as server:
        yield server


@pytest.fixture(scope="session")
def sqs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqsServer]:
    """A server that keeps its queues, so tests must use different names."""
    with SqsMinistack(tmp_path_factory.mktemp("sqs")) as server:
        yield server
