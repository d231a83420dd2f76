"""The inbox when several empty it, when they die over it, and when something else is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import redis

from shoal.errors import StorageBusy
from shoal.frontier.redis import inbox
from shoal.frontier.values import Added, Entry
from support.frontiers import CRAWL, Client
from support.redis_backend import RedisBackend
from support.redis_inbox import INBOX, LOCK, REJECTED, push, read, rejected, url, urls_of
from support.redis_servers import RedisServer
from support.until import until


@pytest.fixture
def raw(redis_server: RedisServer) -> redis.Redis:
    return redis_server.client()


class TestTogether:
    async def test_two_collectors_take_nothing_twice_and_lose_nothing(
        self, on_redis: RedisBackend, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inbox, "BATCH", 7)
        clients = [on_redis.another(f"worker-{number}") for number in range(3)]
        await clients[0].start(concurrency_per_host=1000)
        push(raw, *map(url, range(200)), *["nonsense"] * 20)

        async def work(client: Client) -> int:
            added = 0
            while raw.llen(INBOX):
                taken = await client.frontier.collect(CRAWL, read)
                assert taken.duplicates == 0
                added += taken.added
            return added

        assert sum(await asyncio.gather(*map(work, clients))) == 200
        assert sorted(await urls_of(clients[0])) == sorted(map(url, range(200)))
        assert len(rejected(raw)) == 20
        assert not raw.exists(LOCK)

    async def test_one_that_has_lost_its_lock_removes_nothing(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        """It was stopped while it read; others have emptied the inbox, and it has filled again."""
        client, other = on_redis.client(), on_redis.another()
        await client.start()
        push(raw, url(0), url(1))
        seen: list[bytes] = []

        def stopped(text: bytes) -> Entry:
            if not seen:
                raw.delete(LOCK)
                raw.rpop(INBOX, 2)
                push(raw, url(2), url(3))
                raw.set(LOCK, "another's")
            seen.append(text)
            return read(text)

        assert (await client.frontier.collect(CRAWL, stopped)).added == 2
        assert raw.lrange(INBOX, 0, -1) == [url(3).encode(), url(2).encode()]
        assert raw.get(LOCK) == b"another's"
        assert await other.frontier.collect(CRAWL, read) == Added()
        raw.delete(LOCK)
        assert await other.frontier.collect(CRAWL, read) == Added(2, 0)

    async def test_one_that_died_before_the_clock_was_set_back_lets_go_in_time(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        await client.start()
        push(raw, url(0))
        raw.set(LOCK, "another's", px=2 * 3_600_000)
        assert await client.frontier.collect(CRAWL, read) == Added()
        assert 0 < raw.pttl(LOCK) <= inbox.LOCK_MS
        raw.pexpire(LOCK, 1)
        await until("the end of the lock", lambda: not raw.exists(LOCK))
        assert await client.frontier.collect(CRAWL, read) == Added(1, 0)

    async def test_one_that_dies_lets_go_in_time(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        await client.start()
        push(raw, url(0))

        def dying(_: bytes) -> Entry:
            assert 0 < raw.pttl(LOCK) <= inbox.LOCK_MS
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await client.frontier.collect(CRAWL, dying)
        assert await client.frontier.collect(CRAWL, read) == Added(1, 0)


class TestTrouble:
    async def test_entries_outlive_an_add_that_fails(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        await client.start()
        push(raw, url(0), "nonsense", url(1))

        def filling(text: bytes) -> Entry:
            raw.config_set("maxmemory", 1)
            return read(text)

        try:
            with pytest.raises(StorageBusy, match="memory"):
                await client.frontier.collect(CRAWL, filling)
            assert raw.llen(INBOX) == 3
        finally:
            raw.config_set("maxmemory", 0)
        assert not raw.exists(LOCK, REJECTED)
        assert await client.frontier.collect(CRAWL, read) == Added(2, 0)

    @pytest.mark.parametrize(
        "put",
        [
            lambda raw: raw.set(INBOX, "text"),
            lambda raw: raw.sadd(INBOX, "member"),
            lambda raw: raw.hset(INBOX, "field", "value"),
        ],
    )
    async def test_something_else_is_in_its_place(
        self,
        on_redis: RedisBackend,
        raw: redis.Redis,
        caplog: pytest.LogCaptureFixture,
        put: Callable[[redis.Redis], object],
    ) -> None:
        client = on_redis.client()
        await client.start()
        put(raw)
        assert (await client.stats()).inbox == 0
        assert await client.frontier.collect(CRAWL, read) == Added()
        aside = f"shoal:not-a-list:{{{INBOX}}}"
        assert raw.exists(aside)
        assert aside in caplog.text
        push(raw, url(0))
        assert await client.frontier.collect(CRAWL, read) == Added(1, 0)
