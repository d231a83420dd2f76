"""The Redis frontier on a cluster of three masters, a crawl sharded over all: the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from contract.frontier_suite import *  # noqa: F403
from support.frontiers import Backend, checked
from support.redis_backend import RedisBackend
from support.redis_groups import RedisCluster

pytestmark = pytest.mark.rare  # One server runs the same scripts, and is tried by every change.


@pytest.fixture
async def backend(redis_cluster: RedisCluster) -> AsyncIterator[Backend]:
    async with checked(RedisBackend(redis_cluster.url)) as backend:
        yield backend
