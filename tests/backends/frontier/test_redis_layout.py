"""The layout of crawls on Redis: written with new ones, and looked at in each step."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from shoal.errors import NewerFormat
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.redis.layout import LAYOUT
from shoal.frontier.values import Control, CrawlState
from support.frontiers import CRAWL, Client, pages
from support.redis_servers import RedisServer

KEY = f"shoal:{{{CRAWL}}}:crawl"


@pytest.fixture
async def client(redis_server: RedisServer) -> AsyncIterator[Client]:
    redis_server.client().flushall()
    frontier = RedisFrontier(redis_server.url)
    yield Client(frontier, "worker", CRAWL)
    await frontier.close()


async def test_new_crawls_have_a_number(client: Client, redis_server: RedisServer) -> None:
    await client.add(*pages(1))
    assert redis_server.client().hget(KEY, "layout") == str(LAYOUT).encode()


async def test_crawls_of_before_have_none(client: Client, redis_server: RedisServer) -> None:
    """They are those of the first layout, and stay as they are."""
    await client.start(*pages(3))
    redis_server.client().hdel(KEY, "layout")
    await client.start()
    await client.control(Control.SEAL)
    assert await client.work_off() == 3
    assert (await client.stats()).state is CrawlState.FINISHED
    assert not redis_server.client().hexists(KEY, "layout")


@pytest.mark.parametrize("layout", ["2", "10", "1.5", "", "new\nline"])
async def test_any_other_is_newer(client: Client, redis_server: RedisServer, layout: str) -> None:
    await client.start(*pages(3))
    redis_server.client().hset(KEY, "layout", layout)
    with pytest.raises(NewerFormat):
        await client.lease()
    with pytest.raises(NewerFormat):
        await client.frontier.robots(CRAWL, "a.example")


async def test_who_lists_all_crawls_is_told_once_that_one_is_left_out(
    client: Client, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    await client.start()
    await Client(client.frontier, "worker", "other").start()
    redis_server.client().hset(KEY, "layout", LAYOUT + 1)
    for _ in range(3):
        assert [stats.crawl for stats in await client.frontier.crawls()] == ["other"]
    (said,) = [record.getMessage() for record in caplog.records if "newer" in record.getMessage()]
    assert f"crawl '{CRAWL}' was written by a newer shoal (layout 2, this one knows 1)" in said
    assert said.endswith("; it is left out")


async def test_a_server_that_was_restarted_is_noted_beside_one(
    client: Client, redis_server: RedisServer
) -> None:
    await client.start()
    other = Client(client.frontier, "worker", "other")
    await other.start(*pages(1))
    server = redis_server.client()
    server.hset(KEY, "layout", LAYOUT + 1)
    server.script_flush()
    assert len(await other.lease()) == 1
