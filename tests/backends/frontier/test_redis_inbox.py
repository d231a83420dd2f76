"""The inbox: anybody's LPUSH becomes tasks, and what is no task stops nothing."""

from __future__ import annotations

import logging

import pytest
import redis

from shoal.core.task import Task, encode
from shoal.frontier.redis import inbox
from shoal.frontier.redis.names import inbox_key, rejected_key
from shoal.frontier.values import Added, Control, CrawlState, Verdict
from shoal.seeds.seeding import collect
from support.frontiers import CRAWL, open_rules, outcome, pages, pulse
from support.redis_backend import RedisBackend
from support.redis_inbox import REJECTED, push, read, rejected, url, urls_of
from support.redis_servers import RedisServer


@pytest.fixture
def raw(redis_server: RedisServer) -> redis.Redis:
    return redis_server.client()


class TestTaken:
    async def test_urls_and_tasks(self, on_redis: RedisBackend, raw: redis.Redis) -> None:
        client = on_redis.client()
        await client.start()
        assert not await client.frontier.beat(CRAWL, pulse())
        task = Task(url=url(1), job_type="product", priority=5, meta={"page": 1})
        push(raw, f"  {url(0)}\n", encode(task), b'{"url": "http://b.example/", "depth": 2}')
        assert (await client.stats()).inbox == 3
        assert await client.frontier.beat(CRAWL, pulse())
        assert await client.frontier.collect(CRAWL, read) == Added(3, 0)
        leased = {lease.task.url: lease.task for lease in await client.lease(9)}
        task.site = "a.example"
        assert leased[url(1)] == task
        assert leased["http://b.example/"].depth == 2
        stats = await client.stats()
        assert (stats.inbox, stats.refused, stats.added) == (0, 0, 3)
        assert not await client.frontier.beat(CRAWL, pulse())

    async def test_the_oldest_first(self, on_redis: RedisBackend, raw: redis.Redis) -> None:
        client = on_redis.client()
        await client.start(concurrency_per_host=1000)
        push(raw, *map(url, range(500)))
        await client.frontier.collect(CRAWL, read)
        push(raw, url(500))
        while (await client.frontier.collect(CRAWL, read)).added:
            pass
        assert await urls_of(client) == list(map(url, range(501)))

    async def test_what_is_known_is_a_duplicate(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(2))
        push(raw, url(0), url(1), url(2), url(2))
        assert await client.frontier.collect(CRAWL, read) == Added(1, 3)

    async def test_what_is_dead_is_known_unless_it_says_retry(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(2))
        while leases := await client.lease(9):
            await client.finish(*(outcome(lease, Verdict.DEAD) for lease in leases))
        push(raw, url(0), url(1))
        assert await client.frontier.collect(CRAWL, read) == Added(0, 2)
        push(raw, encode(Task(url=url(1), retry=True)))
        assert await client.frontier.collect(CRAWL, read) == Added(0, 0, 1)
        assert await urls_of(client) == [url(1)]
        stats = await client.stats()
        assert (stats.inbox, stats.refused, stats.dead) == (0, 0, 1)

    async def test_an_empty_one(self, on_redis: RedisBackend) -> None:
        await on_redis.client().start()
        assert await on_redis.frontier.collect(CRAWL, read) == Added()

    async def test_of_a_crawl_that_nobody_made(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        push(raw, url(0))
        assert await on_redis.frontier.collect(CRAWL, read) == Added(1, 0)
        assert (await on_redis.client().stats()).state is CrawlState.NEW

    async def test_of_a_finished_crawl(self, on_redis: RedisBackend, raw: redis.Redis) -> None:
        client = on_redis.client()
        await client.start(*pages(1))
        await client.control(Control.SEAL)
        await client.work_off()
        assert (await client.stats()).state is CrawlState.FINISHED
        push(raw, url(7))
        await client.frontier.collect(CRAWL, read)
        assert await client.work_off() == 1

    async def test_of_an_odd_name(self, on_redis: RedisBackend, raw: redis.Redis) -> None:
        name = "{a}%:é"
        assert (inbox_key(name), rejected_key(name)) == (
            "shoal:%7Ba%7D%25:é:inbox",
            "shoal:%7Ba%7D%25:é:rejected",
        )
        await on_redis.frontier.start(name, open_rules())
        raw.lpush(inbox_key(name), url(0))
        assert await on_redis.frontier.collect(name, read) == Added(1, 0)

    async def test_all_of_it(self, on_redis: RedisBackend, raw: redis.Redis) -> None:
        """As workers do it: batch after batch."""
        client = on_redis.client()
        await client.start()
        push(raw, *map(url, range(450)), *["nonsense"] * 450)
        assert (await collect(client.frontier, CRAWL, open_rules())).added == 450
        stats = await client.stats()
        assert (stats.inbox, stats.refused) == (0, 450)


class TestRejected:
    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b"", "not a URL"),
            (b"no url", "not a URL"),
            (b"ftp://a.example/", "not an http"),
            (b"http://a.example/\xff\xfe", "utf-8"),
            (b"\x80\x04\x95", "utf-8"),
            (b"{", "truncated"),
            (b"{}", "url"),
            (b'{"url": 7}', "url"),
            (b'{"url": "http://a.example/", "color": "red"}', "color"),
            (b'{"url": "http://a.example/", "priority": 99999999999}', "priority"),
            (b'{"url": "http://a.example/", "depth": 1e99}', ""),
            (b'{"url": "http://a.example/", "depth": -7}', "depth"),
            (b'{"url": "http://a.example/", "retry_count": -5}', "retry_count"),
            (b'{"url": "http://a.example/", "depth": 99999999999999999999}', "depth"),
            (b'{"url": "http://a.example/", "meta": ' + b'{"a":' * 2000, "nested"),
            (b'{"url": "http://a.example/\\ud800"}', ""),
            (b"[" * 100_000, "longer than 8000"),
            (b"http://a.example/" + b"x" * 10_000_000, "longer than 8000"),
        ],
    )
    async def test_with_a_reason_and_without_stopping_others(
        self, on_redis: RedisBackend, raw: redis.Redis, line: bytes, reason: str
    ) -> None:
        client = on_redis.client()
        await client.start()
        push(raw, url(0), line, url(1))
        assert await client.frontier.collect(CRAWL, read) == Added(2, 0)
        (aside,) = rejected(raw)
        assert reason in aside.reason
        assert aside.reason
        assert line.decode("utf-8", "replace").startswith(aside.entry)
        assert len(raw.lindex(REJECTED, 0) or b"") < 30_000
        stats = await client.stats()
        assert (stats.inbox, stats.refused, stats.waiting) == (0, 1, 2)

    async def test_only_the_newest_are_kept(
        self, on_redis: RedisBackend, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inbox, "REJECTED_KEPT", 3)
        await on_redis.client().start()
        push(raw, *(f"nonsense {number}" for number in range(9)))
        await on_redis.frontier.collect(CRAWL, read)
        assert [aside.entry for aside in rejected(raw)] == [f"nonsense {n}" for n in (8, 7, 6)]

    async def test_one_line_in_the_log(
        self, on_redis: RedisBackend, raw: redis.Redis, caplog: pytest.LogCaptureFixture
    ) -> None:
        await on_redis.client().start()
        caplog.clear()
        push(raw, '{"url": "x", "\\u001b[31m\\nred": 1}', *["nonsense"] * 50)
        await on_redis.frontier.collect(CRAWL, read)
        (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
        text = record.getMessage()
        assert "51 entries" in text
        assert REJECTED in text
        assert text.isprintable()
