"""Stats of a fleet in a hash on a real Redis: counted once, whatever is away in between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from scrapy import Spider
from scrapy.crawler import Crawler

from shoal.errors import StorageBusy
from shoal.scrapy import stats as stats_module
from shoal.scrapy.link import ScriptLink
from shoal.scrapy.stats import RedisStatsCollector
from support.redis_servers import RedisServer
from support.server_process import free_port
from support.until import until

KEY = "shop:stats"


class Shop(Spider):
    name = "shop"


@asynccontextmanager
async def collecting(url: str, **settings: Any) -> AsyncIterator[RedisStatsCollector]:
    """A collector as Scrapy opens and ends it."""
    crawler = Crawler(Shop, {"REDIS_URL": url, "STATS_DUMP": False, **settings})
    collector = RedisStatsCollector(crawler)
    collector.open_spider()
    try:
        yield collector
    finally:
        collector.close_spider(reason="finished")
        await collector._stop()


def fleet(raw: redis.Redis, key: str = KEY) -> dict[str, str]:
    found: dict[Any, Any] = raw.hgetall(key)
    return {name.decode(): value.decode() for name, value in found.items()}


async def test_the_hash_has_it_in_the_end(server: RedisServer, raw: redis.Redis) -> None:
    async with collecting(server.url) as collector:
        collector.inc_value("pages")
        collector.inc_value("pages", 4)
        collector.inc_value("seconds", 0.5)  # type: ignore[arg-type]
        collector.set_value("reason", "finished")
        collector.set_value("at", datetime(2024, 1, 1, tzinfo=UTC))
        collector.set_value("nothing", None)
        collector.max_value("depth", 3)
        collector.max_value("depth", 2)
        collector.min_value("free", 7.5)
        collector.inc_value("from_ten", start=10)
        assert collector.get_value("pages") == 5

    assert fleet(raw) == {
        "pages": "5",
        "seconds": "0.5",
        "reason": "finished",
        "at": "1704067200.0",
        "nothing": "null",
        "depth": "3",
        "free": "7.5",
        "from_ten": "11",
    }


async def test_a_fleet_adds_up(server: RedisServer, raw: redis.Redis) -> None:
    async with collecting(server.url) as one, collecting(server.url) as two:
        for collector, number in ((one, 2), (two, 5)):
            collector.inc_value("pages", number)
            collector.max_value("depth", number)
            collector.min_value("free", number)
            collector.inc_value("from_ten", start=10)
        assert (one.get_value("pages"), two.get_value("pages")) == (2, 5)
        assert two.get_stats()["depth"] == 5

    assert fleet(raw) == {"pages": "7", "depth": "5", "free": "2", "from_ten": "12"}


async def test_it_is_sent_while_the_spider_runs(
    server: RedisServer, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stats_module, "SEND_EVERY_S", 0.01)
    async with collecting(server.url) as collector:
        for _ in range(3):
            collector.inc_value("pages")
            await until(
                "all pages to be counted",
                lambda: fleet(raw).get("pages") == str(collector.get_value("pages")),
            )


async def test_setting_and_adding_in_one_go(server: RedisServer, raw: redis.Redis) -> None:
    async with collecting(server.url) as collector:
        collector.inc_value("a", 7)
        collector.set_value("a", 1)
        collector.inc_value("a")
        collector.set_stats({"b": 2})
        collector.inc_value("b")

    assert fleet(raw) == {"a": "2", "b": "3"}


async def test_what_is_text_there_becomes_a_number(server: RedisServer, raw: redis.Redis) -> None:
    raw.hset(KEY, mapping={"a": "hello", "b": "hello", "c": "1.5"})
    async with collecting(server.url, SCHEDULER_PERSIST=True) as collector:
        collector.inc_value("a", 2)
        collector.max_value("b", 3)
        collector.inc_value("c", 2)
        collector.max_value("d", "text")

    assert fleet(raw) == {"a": "2", "b": "3", "c": "3.5", "d": "text"}


async def test_the_key(server: RedisServer, raw: redis.Redis) -> None:
    async with collecting(server.url, STATS_KEY="counts:%(spider)s") as collector:
        collector.inc_value("pages")

    assert fleet(raw, "counts:shop") == {"pages": "1"}


@pytest.mark.parametrize(("persist", "pages"), [(True, "8"), (False, "1")])
async def test_a_new_run_goes_on_or_starts_over(
    server: RedisServer,
    raw: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
    persist: bool,
    pages: str,
) -> None:
    async with collecting(server.url, SCHEDULER_PERSIST=persist) as collector:
        collector.inc_value("pages", 7)
    assert fleet(raw)["pages"] == "7", "closing deletes nothing"
    monkeypatch.setattr(stats_module, "GONE_S", 0.0)
    async with collecting(server.url, SCHEDULER_PERSIST=persist) as collector:
        collector.inc_value("pages")

    assert fleet(raw)["pages"] == pages


async def test_who_joins_a_living_fleet_deletes_nothing(
    server: RedisServer, raw: redis.Redis
) -> None:
    async with collecting(server.url) as one:
        one.inc_value("pages", 7)
        await until("one sender", lambda: raw.hlen(f"{KEY}:senders") == 1)
        async with collecting(server.url) as two:
            two.inc_value("pages", 1)

    assert fleet(raw)["pages"] == "8"


async def test_redis_restarts(
    server: RedisServer,
    raw: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(stats_module, "SEND_EVERY_S", 0.01)
    async with collecting(server.url) as collector:
        collector.inc_value("pages", 2)
        await until("the first numbers", lambda: fleet(raw))
        server.kill()
        collector.inc_value("pages", 3)
        await until("a word in the log", lambda: "waiting for the hash of stats" in caplog.text)
        collector.inc_value("pages", 4)
        server.start()

    assert fleet(raw) == {"pages": "9"}


async def test_a_lost_answer_counts_nothing_twice(
    server: RedisServer, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, lost = ScriptLink.run, iter([True, True])

    async def run_and_lose(link: ScriptLink, *args: Any) -> None:
        await run(link, *args)
        if next(lost, False):
            raise StorageBusy("no answer")

    monkeypatch.setattr(ScriptLink, "run", run_and_lose)
    async with collecting(server.url) as collector:
        collector.inc_value("pages", 2)
        await until("the first numbers", lambda: fleet(raw))
        collector.inc_value("pages", 3)

    assert fleet(raw) == {"pages": "5"}
    assert next(lost, None) is None, "two answers were lost"


async def test_closing_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stats_module, "CLOSING_S", 0.1)
    async with collecting(f"redis://127.0.0.1:{free_port()}") as collector:
        collector.inc_value("pages")

    assert "the last stats were not sent to Redis" in caplog.text


async def test_a_key_that_is_somebody_elses(
    server: RedisServer, raw: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    raw.set(f"{KEY}:senders", "something")
    async with collecting(server.url) as collector:
        collector.inc_value("pages")
        await until("a word in the log", lambda: "stats are not sent to Redis" in caplog.text)
        assert collector.get_value("pages") == 1


async def test_what_was_not_kept_does_not_count_as_sent(
    server: RedisServer, raw: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    raw.set(KEY, "something")
    async with collecting(server.url) as collector:
        collector.inc_value("pages")
        await until("the warning", lambda: "stats are not sent to Redis" in caplog.text)
        assert raw.keys(f"{KEY}:senders") == []


async def test_what_scrapy_2_13_passes(server: RedisServer, raw: redis.Redis) -> None:
    """It names the spider everywhere. Newer ones warn of that, and so are not asked here."""
    crawler = Crawler(Shop, {"REDIS_URL": server.url, "STATS_DUMP": False})
    crawler.spider = spider = Shop()
    collector = RedisStatsCollector(crawler)
    cls = RedisStatsCollector
    cls.open_spider(collector, spider)
    cls.inc_value(collector, "pages", spider=spider)
    cls.set_value(collector, "reason", "x", spider=spider)
    cls.max_value(collector, "depth", 1, spider=spider)
    cls.min_value(collector, "free", 1, spider=spider)
    cls.close_spider(collector, spider, "finished")
    await collector._stop()

    assert fleet(raw) == {"pages": "1", "reason": "x", "depth": "1", "free": "1"}
