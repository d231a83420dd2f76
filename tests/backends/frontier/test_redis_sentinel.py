"""A master with a replica and sentinels: a crawl outlives the master."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from shoal.errors import ConfigError, StorageBusy
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.values import Entry, TaskState
from support.frontiers import CRAWL, Client, pages
from support.redis_groups import RedisSentinel
from support.redis_servers import RedisServer
from support.until import in_time, until

T = TypeVar("T")


@pytest.fixture
def sentinel(tmp_path: Path) -> Iterator[RedisSentinel]:
    with RedisSentinel(tmp_path) as sentinel:
        yield sentinel


@pytest.fixture
async def client(sentinel: RedisSentinel) -> AsyncIterator[Client]:
    frontier = RedisFrontier(sentinel.url)
    yield Client(frontier, "worker", CRAWL)
    await frontier.close()


async def answer_or_none(call: Callable[[], Awaitable[T]]) -> T | None:
    """None as long as the store is away. Only StorageBusy says that it will be back."""
    try:
        return await call()
    except StorageBusy:
        return None


async def test_the_master_is_killed(sentinel: RedisSentinel, client: Client) -> None:
    await client.start(*pages(3))
    held = await client.lease_one()
    epoch = (await client.ask(0)).epoch
    acknowledged: list[Entry] = []

    async def add_until_it_fails() -> None:
        number = 0
        while True:
            entries = pages(5, host=f"h{number}.example")
            await client.add(*entries)
            acknowledged.extend(entries)
            number += 1

    adding = asyncio.create_task(add_until_it_fails())
    await until("tasks to be taken", lambda: len(acknowledged) >= 50)
    sentinel.kill_master()
    with pytest.raises(StorageBusy):
        await in_time("an error", adding)
    with pytest.raises(StorageBusy):
        await client.ask()

    grant = await until("the replica to lead", lambda: answer_or_none(client.ask))
    assert sentinel.master_port() != sentinel.servers[0].port
    assert grant.epoch != epoch
    assert len(grant.leases) == 1
    for entry in acknowledged:
        assert await client.state(entry) in (TaskState.WAITING, TaskState.LEASED)
    assert await client.renew(held) == []
    await client.end(held)
    await client.end(grant.leases[0])
    done = await client.work_off()
    stats = await client.stats()
    assert stats.added == stats.done == done + 2
    # What was not acknowledged may be there too.
    assert len(acknowledged) + 3 <= stats.added <= len(acknowledged) + 8


@pytest.mark.parametrize("login", ["", "?sentinel_password=hunter2"])
async def test_sentinels_have_a_password(tmp_path: Path, login: str) -> None:
    with RedisServer(tmp_path, "--sentinel", password="other") as server:
        frontier = RedisFrontier(f"redis+sentinel://127.0.0.1:{server.port}/mymaster{login}")
        with pytest.raises(ConfigError, match="sentinel_password") as raised:
            await frontier.crawls()
        await frontier.close()
    assert "hunter2" not in str(raised.value)
    assert len(str(raised.value)) < 200
