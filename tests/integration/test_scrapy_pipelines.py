"""Items into lists on a real Redis, without waiting in the reactor's way."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from datetime import date
from typing import Any

import pytest
import redis
import scrapy
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.pipelines import ItemPipelineManager
from scrapy.settings import Settings

from shoal.errors import ConfigError
from shoal.scrapy.pipelines import Pusher, RedisPipeline
from support.redis_servers import RedisServer
from support.until import in_time, until

KEY = "shop:items"


class Shop(Spider):
    name = "shop"


class Product(scrapy.Item):
    sku = scrapy.Field()


@pytest.fixture
async def pipeline(server: RedisServer, raw: redis.Redis) -> AsyncIterator[RedisPipeline]:
    pipeline = RedisPipeline.from_crawler(crawler_of(server))
    yield pipeline
    await pipeline._close()


def crawler_of(server: RedisServer, **settings: Any) -> Crawler:
    crawler = Crawler(Shop, {"REDIS_URL": server.url, **settings})
    crawler.spider = Shop()
    return crawler


def pushed(raw: redis.Redis, key: str = KEY) -> list[Any]:
    return [json.loads(data) for data in raw.lrange(key, 0, -1)]


async def test_an_item_has_passed_when_it_is_in_redis(
    pipeline: RedisPipeline, raw: redis.Redis
) -> None:
    item = Product(sku="S1")

    assert await pipeline.process_item(item) is item
    assert pushed(raw) == [{"sku": "S1"}]


async def test_all_that_scrapy_can_write(pipeline: RedisPipeline, raw: redis.Redis) -> None:
    await pipeline.process_item({"on": date(2024, 5, 1), "name": "Größe"})

    assert pushed(raw) == [{"on": "2024-05-01", "name": "Größe"}]


async def test_the_spider_may_be_passed_as_old_scrapys_do(
    pipeline: RedisPipeline, raw: redis.Redis
) -> None:
    class Other(Spider):
        name = "other"

    await pipeline.process_item({"a": 1}, Other())
    assert pushed(raw, "other:items") == [{"a": 1}]


def test_scrapy_finds_nothing_deprecated_in_it(server: RedisServer) -> None:
    """Warnings are errors here."""
    path = "shoal.scrapy.pipelines.RedisPipeline"
    manager = ItemPipelineManager.from_crawler(crawler_of(server, ITEM_PIPELINES={path: 1}))

    assert [type(pipeline) for pipeline in manager.middlewares] == [RedisPipeline]


def reversed_json(item: Any) -> bytes:
    return json.dumps(item).encode()[::-1]


async def test_settings(server: RedisServer, raw: redis.Redis) -> None:
    crawler = crawler_of(
        server,
        REDIS_ITEMS_KEY="%(spider)s:found",
        REDIS_ITEMS_SERIALIZER=f"{__name__}.reversed_json",
    )
    pipeline = RedisPipeline.from_crawler(crawler)
    await pipeline.process_item({"a": 1})
    await pipeline._close()

    assert raw.lrange("shop:found", 0, -1) == [b'}1 :"a"{']


class ByKind(RedisPipeline):
    def item_key(self, item: Any, spider: Any) -> str:
        return f"{spider.name}:{item['kind']}"


async def test_a_key_for_each_item(server: RedisServer, raw: redis.Redis) -> None:
    pipeline = ByKind.from_crawler(crawler_of(server))
    await asyncio.gather(*(pipeline.process_item({"kind": kind}) for kind in "abab"))
    await pipeline._close()

    assert pushed(raw, "shop:a") == [{"kind": "a"}] * 2
    assert pushed(raw, "shop:b") == [{"kind": "b"}] * 2


class OldWay(RedisPipeline):
    """As projects have it that took scrapy-redis apart."""

    def __init__(self, server: Any, **kwargs: Any) -> None:
        super().__init__(server, **kwargs)
        self.threads: list[int] = []

    def _process_item(self, item: Any, spider: Any) -> Any:
        self.threads.append(threading.get_ident())
        self.server.sadd(self.item_key(item, spider), self.serialize(item))
        return item


async def test_a_subclass_with_its_own_way_has_it_in_a_thread(
    server: RedisServer, raw: redis.Redis
) -> None:
    pipeline = OldWay.from_crawler(crawler_of(server))
    await pipeline.process_item({"a": 1})
    await pipeline._close()

    assert raw.smembers(KEY) == {b'{"a": 1}'}
    assert pipeline.threads != [threading.get_ident()]
    pipeline.server.close()


def test_a_given_server_is_kept() -> None:
    given = object()

    assert RedisPipeline(given, key="x").server is given
    assert RedisPipeline.from_settings(Settings({"REDIS_ITEMS_KEY": "x"})).key == "x"


async def test_items_that_come_during_a_push_go_together() -> None:
    pushes: list[tuple[bytes, ...]] = []
    answers = asyncio.Event()

    async def rpush(*data: bytes) -> None:
        pushes.append(data)
        await in_time("the test to let it answer", answers.wait())

    pusher = Pusher(rpush)
    pushing = [asyncio.create_task(pusher.push(b"%d" % number)) for number in range(5)]
    await until("the first push", lambda: pushes)
    pushing += [asyncio.create_task(pusher.push(b"%d" % number)) for number in range(5, 9)]
    pushing[6].cancel()
    await asyncio.sleep(0)
    assert not any(task.done() for task in pushing[:5]), "none has passed before the answer"
    answers.set()
    await in_time("all pushes", asyncio.gather(*pushing, return_exceptions=True))

    assert pushes == [(b"0", b"1", b"2", b"3", b"4"), (b"5", b"7", b"8")]


async def test_redis_is_waited_for(
    server: RedisServer,
    pipeline: RedisPipeline,
    raw: redis.Redis,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await pipeline.process_item({"n": 0})
    server.kill()
    items = [asyncio.create_task(pipeline.process_item({"n": number})) for number in (1, 2)]
    await until("a word in the log", lambda: "waiting for the list of items" in caplog.text)
    assert not any(item.done() for item in items)
    server.start()
    await in_time("all items", asyncio.gather(*items))

    assert pushed(raw) == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_a_key_that_is_somebody_elses(pipeline: RedisPipeline, raw: redis.Redis) -> None:
    raw.set(KEY, "something")

    for _ in range(2):
        with pytest.raises(ConfigError, match="WRONGTYPE"):
            await pipeline.process_item({"a": 1})
    raw.delete(KEY)
    await pipeline.process_item({"a": 2})
    assert pushed(raw) == [{"a": 2}]
