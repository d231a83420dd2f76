"""The Redis frontier on a cluster of three masters, a crawl sharded over all: the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contract.frontier_suite import *  # noqa: F403
from support.frontiers import Backend, checked
from support.redis_backend import RedisBackend
from support.redis_groups import RedisCluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    with RedisCluster(Path(tmp_path_factory.mktemp("cluster"))) as cluster:
        yield cluster


@pytest.fixture
async def backend(cluster: RedisCluster) -> AsyncIterator[Backend]:
    cluster.flush()
    async with checked(RedisBackend(cluster.url)) as backend:
        yield backend
