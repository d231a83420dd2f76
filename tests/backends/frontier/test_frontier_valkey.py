"""The Redis frontier on Valkey: the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contract.frontier_suite import *  # noqa: F403
from support.frontiers import Backend, checked
from support.redis_backend import RedisBackend
from support.redis_servers import RedisServer, valkey_binary

pytestmark = pytest.mark.rare


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    folder = Path(tmp_path_factory.mktemp("valkey"))
    with RedisServer(folder, binary=valkey_binary()) as server:
        yield server


@pytest.fixture
async def backend(server: RedisServer) -> AsyncIterator[Backend]:
    server.client().flushall()
    async with checked(RedisBackend(server.url)) as backend:
        yield backend
