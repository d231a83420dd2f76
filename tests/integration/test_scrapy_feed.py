"""Feeds on a real Redis: nothing is lost, nothing is given to two, whatever dies in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider

from shoal.errors import ConfigError, ShoalError, StorageFailed
from shoal.scrapy.feeds.feed import Feed, Message
from shoal.scrapy.feeds.feeder import Feeder
from shoal.scrapy.feeds.messages import request_of
from shoal.scrapy.link import ScriptLink
from shoal.scrapy.spiders import RedisCrawlSpider, RedisMixin, RedisSpider
from support.markdown import ROOT, blocks
from support.redis_groups import RedisCluster
from support.redis_servers import RedisServer
from support.until import in_time, until

KEY = "shop:start_urls"
TAKEN, REJECTED = f"{KEY}:taken", f"{KEY}:rejected"


@pytest.fixture
async def feed(server: RedisServer, raw: redis.Redis) -> AsyncIterator[Feed]:
    async with opened(server) as feed:
        yield feed


@asynccontextmanager
async def opened(
    server: RedisServer, keys: Sequence[str] = (KEY,), held_s: float = 3600.0
) -> AsyncIterator[Feed]:
    feed = Feed(server.url, keys, held_s=held_s)
    try:
        yield feed
    finally:
        await feed.close()


def url(number: int) -> str:
    return f"https://shop.example/{number}"


def datas(messages: Iterable[Message]) -> list[str]:
    return [message.data.decode() for message in messages]


class TestTaking:
    async def test_a_list_is_taken_from_its_left(self, feed: Feed, raw: redis.Redis) -> None:
        raw.rpush(KEY, *map(url, range(5)))

        assert datas(await feed.take(3)) == [url(0), url(1), url(2)]
        assert datas(await feed.take(3)) == [url(3), url(4)]
        assert await feed.take(3) == []

    async def test_a_set(self, feed: Feed, raw: redis.Redis) -> None:
        raw.sadd(KEY, *map(url, range(5)))

        taken = [*await feed.take(2), *await feed.take(9)]
        assert sorted(datas(taken)) == [url(number) for number in range(5)]

    async def test_of_a_sorted_set_the_highest_comes_first(
        self, feed: Feed, raw: redis.Redis
    ) -> None:
        raw.zadd(KEY, {url(number): number for number in range(5)})

        assert datas(await feed.take(2)) == [url(4), url(3)]
        assert datas(await feed.take(9)) == [url(2), url(1), url(0)]

    async def test_the_kind_may_change(self, feed: Feed, raw: redis.Redis) -> None:
        raw.rpush(KEY, url(1))
        await feed.take(1)
        raw.sadd(KEY, url(2))

        assert datas(await feed.take(1)) == [url(2)]

    async def test_the_first_key_comes_first(self, server: RedisServer, raw: redis.Redis) -> None:
        raw.rpush("low", url(1), url(2))
        raw.rpush("high", url(3))
        async with opened(server, ["high", "low"]) as feed:
            taken = await feed.take(2)

            assert [(message.key, message.data.decode()) for message in taken] == [
                ("high", url(3)),
                ("low", url(1)),
            ]
            await feed.done(taken)
            assert await feed.waiting() == 1

    async def test_equal_messages_are_two(self, feed: Feed, raw: redis.Redis) -> None:
        raw.rpush(KEY, url(1), url(1))

        first, second = await feed.take(2)
        assert first.id != second.id
        assert await feed.waiting() == 2

    async def test_a_message_may_be_any_bytes(self, feed: Feed, raw: redis.Redis) -> None:
        odd = bytes(range(256))
        raw.rpush(KEY, odd, b"")

        taken = await feed.take(2)
        assert [message.data for message in taken] == [odd, b""]
        await feed.done(taken)
        assert raw.keys() == []

    async def test_a_key_of_another_kind(self, feed: Feed, raw: redis.Redis) -> None:
        raw.hset(KEY, "a", "b")

        with pytest.raises(ConfigError, match=f"{KEY} is a hash"):
            await feed.take(1)
        assert raw.hgetall(KEY) == {b"a": b"b"}


class TestBringingHome:
    async def test_what_is_done_is_gone(self, feed: Feed, raw: redis.Redis) -> None:
        raw.rpush(KEY, url(1), url(2))
        first, second = await feed.take(2)
        assert raw.zcard(TAKEN) == 2

        await feed.done([first])
        assert await feed.waiting() == 1
        await feed.done([second])
        await feed.done([second])
        await feed.done([])
        assert raw.keys() == []

    async def test_what_is_given_back_is_taken_at_once_and_first(
        self, feed: Feed, raw: redis.Redis
    ) -> None:
        raw.rpush(KEY, url(1), url(2))
        taken = await feed.take(1)
        await feed.give_back(taken)

        assert await feed.take(1) == taken
        assert raw.lrange(KEY, 0, -1) == [url(2).encode()]

    async def test_what_is_done_cannot_be_given_back(self, feed: Feed, raw: redis.Redis) -> None:
        raw.rpush(KEY, url(1))
        taken = await feed.take(1)
        await feed.done(taken)
        await feed.give_back(taken)

        assert await feed.take(1) == []

    async def test_what_is_rejected_is_kept_with_its_reason(
        self, feed: Feed, raw: redis.Redis
    ) -> None:
        raw.rpush(KEY, "hello", b"\xff")
        text, binary = await feed.take(2)
        await feed.reject(text, "no URL")
        await feed.reject(binary, "no text")
        await feed.reject(text, "no URL")

        kept = [json.loads(record) for record in raw.lrange(REJECTED, 0, -1)]
        assert kept == [
            {"reason": "no text", "data_base64": "/w=="},
            {"reason": "no URL", "data": "hello"},
        ]
        assert await feed.waiting() == 0


class TestDying:
    async def test_what_a_dead_one_had_is_taken_when_its_time_is_over(
        self, server: RedisServer, raw: redis.Redis
    ) -> None:
        raw.rpush(KEY, url(1), url(2))
        async with opened(server, held_s=0.001) as dying:
            lost = await dying.take(1)
        async with opened(server) as other:
            found = await until("the end of its time", lambda: other.take(1))

            assert found == lost, "with its old id, by which the frontier knows it"
            assert datas(await other.take(9)) == [url(2)]

    async def test_the_clock_was_set_back_meanwhile(
        self, server: RedisServer, raw: redis.Redis
    ) -> None:
        raw.rpush(KEY, url(1))
        async with opened(server, held_s=2 * 3600.0) as dying:
            await dying.take(1)
        async with opened(server, held_s=0.001) as other:
            found = await until("the end of the longest time", lambda: other.take(1))
            assert datas(found) == [url(1)]

    async def test_more_than_ten_thousand(self, feed: Feed, raw: redis.Redis) -> None:
        for kind in (raw.rpush, raw.sadd):
            kind(KEY, *map(url, range(10_500)))
            taken = await feed.take(100_000)
            taken += await feed.take(100_000)
            assert sorted(datas(taken)) == sorted(map(url, range(10_500)))
            await feed.done(taken)
            assert await feed.waiting() == 0

    async def test_what_cannot_be_put_aside_stays(self, feed: Feed, raw: redis.Redis) -> None:
        raw.rpush(KEY, url(1))
        raw.set(REJECTED, "somebody else's")
        (message,) = await feed.take(1)
        with pytest.raises(ShoalError):
            await feed.reject(message, "bad")
        assert raw.zcard(TAKEN) == 1

    async def test_nobody_gets_what_another_has(
        self, server: RedisServer, feed: Feed, raw: redis.Redis
    ) -> None:
        raw.rpush(KEY, url(1))
        await feed.take(1)
        async with opened(server) as other:
            assert await other.take(1) == []
            assert await other.waiting() == 1

    async def test_two_at_once_never_get_the_same(
        self, server: RedisServer, raw: redis.Redis
    ) -> None:
        raw.rpush(KEY, *map(url, range(500)))

        async def drain(feed: Feed) -> list[Message]:
            got: list[Message] = []
            while taken := await feed.take(7):
                got += taken
                await feed.done(taken)
            return got

        async with opened(server) as one, opened(server) as two:
            first, second = await asyncio.gather(drain(one), drain(two))

        assert sorted(datas(first + second)) == sorted(map(url, range(500)))
        assert first, "both had their share"
        assert second, "both had their share"
        assert raw.keys() == []

    async def test_redis_restarts_in_between(self, server: RedisServer, raw: redis.Redis) -> None:
        raw.rpush(KEY, url(1), url(2))
        async with opened(server) as feed:
            taken = await feed.take(1)
            server.restart()
            await feed.done(taken)

            assert datas(await feed.take(9)) == [url(2)]

    async def test_redis_is_waited_for(
        self, server: RedisServer, raw: redis.Redis, caplog: pytest.LogCaptureFixture
    ) -> None:
        raw.rpush(KEY, url(1))
        async with opened(server) as feed:
            server.kill()
            taking = asyncio.create_task(feed.take(1))
            await until("a word in the log", lambda: "waiting for the feed" in caplog.text)
            server.start()

            assert datas(await taking) == [url(1)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    with RedisCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


async def test_a_key_for_which_a_cluster_has_no_place(cluster: RedisCluster) -> None:
    feed = Feed(cluster.url, ["odd{}"])

    with pytest.raises(ConfigError, match="needs a hash tag"):
        await feed.take(1)
    await feed.close()


@pytest.mark.parametrize("key", ["plain", "with:{tag}:x", "half{"])
async def test_a_feed_on_a_cluster(cluster: RedisCluster, key: str) -> None:
    feed = Feed(cluster.url, [key])
    client = redis.RedisCluster.from_url(f"redis://127.0.0.1:{cluster.servers[0].port}")
    try:
        client.rpush(key, url(1), "hello")
        good, bad = await feed.take(2)
        await feed.reject(bad, "no URL")
        await feed.give_back([good])
        assert await feed.take(2) == [good]
        await feed.done([good])
        assert await feed.waiting() == 0
    finally:
        await feed.close()
        client.close()


async def test_rights_that_are_enough(server: RedisServer, raw: redis.Redis) -> None:
    """Those that the guide names."""
    page = ROOT / "docs/guides/scrapy-redis.md"
    (rights,) = (block.text.split() for block in blocks(page) if block.language == "conf")
    server.cli("ACL", "SETUSER", "me", "reset", "on", ">pw", "~shop:*", *rights)
    address = f"redis://me:pw@127.0.0.1:{server.port}"
    raw.rpush(KEY, url(1), "hello")
    await live(address)
    raw.sadd(KEY, url(1), "hello")
    await live(address)
    raw.zadd(KEY, {url(1): 1, "hello": 2})
    await live(address)

    link = ScriptLink(address)
    await link.command("RPUSH", "shop:items", "{}")
    for sender, number in (("a", 1), ("b", 1), ("b", 2)):
        changes = ("add", "x", "0.5", "1", "add", "y", "2", "0", "max", "z", "3", "")
        keys = ["shop:stats", "shop:stats:senders"]
        await link.run("stats_send", keys, sender, number, 0, 1, *changes)
    await link.close()
    # The second sender finds that the first is gone, and starts over.
    assert raw.hgetall("shop:stats") == {b"x": b"2", b"y": b"4", b"z": b"3"}


async def live(address: str) -> None:
    """Do to a feed of two messages all that can be done."""
    feed = Feed(address, [KEY])
    first, second = await feed.take(2)
    await feed.give_back([first])
    await feed.reject(second, "no URL")
    await feed.done(await feed.take(1))
    assert await feed.waiting() == 0
    await feed.close()


class Kitchen:
    """A scheduler that takes what it is given, as far as a test lets it."""

    def __init__(self) -> None:
        self.is_hungry = True
        self.asked = 0
        self.added: list[tuple[str, str]] = []
        self.fails_with: Exception | None = None
        self.may_add = asyncio.Event()
        self.may_add.set()

    async def add(self, requests: Sequence[Request], origin: str) -> None:
        self.asked += 1
        await in_time("the test to let it", self.may_add.wait())
        if self.fails_with:
            raise self.fails_with
        self.added += [(request.url, origin) for request in requests]

    @property
    def urls(self) -> list[str]:
        return [url for url, _ in self.added]


def plain(data: bytes) -> list[Request]:
    return [request_of(data, "utf-8")]


@asynccontextmanager
async def feeding(
    feed: Feed, kitchen: Kitchen, make: Callable[[bytes], Iterable[Request]] = plain
) -> AsyncIterator[asyncio.Task[None]]:
    feeder = Feeder(feed, kitchen, make, batch=4)
    task = asyncio.create_task(feeder.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await feeder.close()


class TestFeeding:
    async def test_all_messages_get_into_the_frontier_once(
        self, feed: Feed, raw: redis.Redis
    ) -> None:
        raw.rpush(KEY, *map(url, range(10)))
        kitchen = Kitchen()
        async with feeding(feed, kitchen):
            await until("an empty feed", lambda: not raw.keys())

        assert kitchen.urls == [url(number) for number in range(10)]
        assert len({origin for _, origin in kitchen.added}) == 10

    async def test_nothing_is_taken_by_those_who_have_enough(
        self, feed: Feed, raw: redis.Redis
    ) -> None:
        raw.rpush(KEY, url(1))
        kitchen = Kitchen()
        kitchen.is_hungry = False
        async with feeding(feed, kitchen):
            await asyncio.sleep(0)
            assert raw.llen(KEY) == 1
            kitchen.is_hungry = True
            await until("hunger to be noticed", lambda: kitchen.added)

    async def test_a_message_stays_taken_until_the_frontier_has_it(
        self, feed: Feed, raw: redis.Redis
    ) -> None:
        raw.rpush(KEY, url(1), url(2))
        kitchen = Kitchen()
        kitchen.may_add.clear()
        async with feeding(feed, kitchen):
            await until("what was taken to be added", lambda: kitchen.asked)

        # Cancelled in the middle of adding: both are there for the next one, at once.
        assert raw.zcount(TAKEN, 0, 0) == 2

    async def test_garbage_is_put_aside_and_the_rest_goes_on(
        self, feed: Feed, raw: redis.Redis, caplog: pytest.LogCaptureFixture
    ) -> None:
        raw.rpush(KEY, "hello", url(1), '{"meta": {}}')
        kitchen = Kitchen()
        async with feeding(feed, kitchen):
            await until("garbage to be put aside", lambda: raw.llen(REJECTED) == 2)
            await until("the rest to be moved", lambda: not raw.exists(TAKEN))

        assert kitchen.urls == [url(1)]
        assert f"{REJECTED}: it has no url" in caplog.text

    async def test_a_method_that_raises_is_no_end(
        self, feed: Feed, raw: redis.Redis, caplog: pytest.LogCaptureFixture
    ) -> None:
        def make(data: bytes) -> Iterable[Request]:
            yield Request(url(0))
            yield Request(url(int(data)))

        raw.rpush(KEY, "x", "7")
        kitchen = Kitchen()
        async with feeding(feed, kitchen, make):
            await until("the good one", lambda: kitchen.added)

        assert kitchen.urls == [url(0), url(7)]
        (kept,) = raw.lrange(REJECTED, 0, -1)
        assert json.loads(kept)["reason"].startswith("ValueError: invalid literal")
        assert "Traceback" in caplog.text

    async def test_a_message_without_requests_is_done(self, feed: Feed, raw: redis.Redis) -> None:
        raw.rpush(KEY, url(1))
        async with feeding(feed, Kitchen(), lambda data: []):
            await until("an empty feed", lambda: not raw.keys())

    async def test_requests_that_cannot_be_queued_are_put_aside(
        self, feed: Feed, raw: redis.Redis
    ) -> None:
        raw.rpush(KEY, url(1))
        kitchen = Kitchen()
        kitchen.fails_with = ShoalError("meta['x'] is a socket")
        async with feeding(feed, kitchen):
            await until("a rejection", lambda: raw.llen(REJECTED))

        assert json.loads(raw.lrange(REJECTED, 0, -1)[0])["reason"] == "meta['x'] is a socket"

    async def test_a_frontier_that_fails_costs_no_message(
        self, feed: Feed, raw: redis.Redis
    ) -> None:
        raw.rpush(KEY, url(1), url(2))
        kitchen = Kitchen()
        kitchen.fails_with = StorageFailed("disk full")
        async with feeding(feed, kitchen) as task:
            with pytest.raises(StorageFailed, match="disk full"):
                await task

        assert raw.zcount(TAKEN, 0, 0) == 2

    async def test_closing_does_not_wait_for_a_redis_that_is_away(
        self,
        server: RedisServer,
        feed: Feed,
        raw: redis.Redis,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr("shoal.scrapy.feeds.feeder.CLOSING_S", 0.1)
        raw.rpush(KEY, url(1))
        kitchen = Kitchen()
        kitchen.may_add.clear()
        try:
            async with feeding(feed, kitchen):
                await until("what was taken to be added", lambda: kitchen.asked)
                server.kill()
        finally:
            server.start()

        assert "messages stay taken for a while" in caplog.text
        assert raw.zcard(TAKEN) == 1


class Shop(RedisSpider):
    name = "shop"


class Rules(RedisCrawlSpider):
    name = "rules"


def spider_of(
    cls: type[RedisMixin], settings: dict[str, Any] | None = None, **attributes: Any
) -> Any:
    """A spider as Scrapy makes it."""
    kind: Any = type(cls.__name__, (cls,), attributes)
    crawler = Crawler(kind, settings)
    return kind.from_crawler(crawler)


class TestSpiders:
    def test_the_defaults_of_scrapy_redis(self) -> None:
        shop = spider_of(Shop)

        assert (shop.redis_key, shop.redis_batch_size) == ("shop:start_urls", 16)
        assert (shop.redis_encoding, shop.max_idle_time) == ("utf-8", 0)

    def test_settings_and_attributes(self) -> None:
        settings = {
            "REDIS_START_URLS_KEY": "in:%(name)s",
            "REDIS_START_URLS_BATCH_SIZE": 5,
            "REDIS_ENCODING": "latin-1",
            "MAX_IDLE_TIME_BEFORE_CLOSE": "30",
        }
        by_settings = spider_of(Rules, settings)
        assert (by_settings.redis_key, by_settings.redis_batch_size) == ("in:rules", 5)
        assert (by_settings.redis_encoding, by_settings.max_idle_time) == ("latin-1", 30)

        by_class = spider_of(
            *(Rules, settings), redis_key="own", redis_batch_size="7", max_idle_time=1
        )
        assert (by_class.redis_key, by_class.redis_batch_size) == ("own", 7)
        assert by_class.max_idle_time == 1

    def test_several_keys(self) -> None:
        shop = spider_of(Shop, redis_key=["%(name)s:a", "b", "b"])

        assert shop._feed_keys == ["shop:a", "b"]

    @pytest.mark.parametrize("key", [" ", ["a", ""]])
    def test_an_empty_key(self, key: str | list[str]) -> None:
        with pytest.raises(ConfigError, match="'shop' has an empty redis_key"):
            spider_of(Shop, redis_key=key)

    def test_allowed_domains_can_be_read_twice(self) -> None:
        for given in (filter(None, ["a", ""]), ["a"]):
            shop = spider_of(Shop, allowed_domains=given)
            assert list(shop.allowed_domains) == list(shop.allowed_domains) == ["a"]

    def test_setting_up_twice_is_setting_up_once(self) -> None:
        shop = spider_of(Shop)
        shop.setup_redis()
        shop.setup_redis(shop.crawler)

        assert shop.redis_key == "shop:start_urls"

    def test_its_server_is_a_blocking_client(self, server: RedisServer, raw: redis.Redis) -> None:
        shop = spider_of(Shop, {"REDIS_URL": server.url})
        raw.set("a", "b")

        assert shop.server.get("a") == b"b"
        shop.server.close()

    async def test_start_urls_and_start_requests_are_kept(self) -> None:
        assert [request async for request in spider_of(Shop).start()] == []
        shop = spider_of(Shop, start_urls=[url(1)])
        assert [request.url async for request in shop.start()] == [url(1)]

        def start_requests(self: RedisMixin) -> Iterable[Any]:
            yield Request(url(2))
            yield from RedisMixin.start_requests(self)

        shop = spider_of(Shop, start_urls=[url(1)], start_requests=start_requests)
        assert [request.url async for request in shop.start()] == [url(2), url(1)]

    def test_it_stays_open_unless_nothing_came_for_long(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = 1000.0
        monkeypatch.setattr("time.monotonic", lambda: now)
        patient, shop = spider_of(Shop), spider_of(Shop, max_idle_time=30)
        shop._note_page()
        now += 29.0
        with pytest.raises(DontCloseSpider):
            shop.spider_idle()
        now += 1.0
        shop.spider_idle()
        with pytest.raises(DontCloseSpider):
            patient.spider_idle()

    def test_one_request_several_or_none(self) -> None:
        for answer in ([Request(url(1))], (Request(url(1)) for _ in range(1)), Request(url(1))):
            shop = spider_of(Shop, make_request_from_data=lambda self, data, a=answer: a)
            assert [request.url for request in shop._requests_from(b"x")] == [url(1)]
        for number in range(2):
            shop = spider_of(Shop, make_request_from_data=lambda self, data, n=number: n and [])
            assert list(shop._requests_from(b"x")) == []

    def test_data_is_text_for_those_who_have_it_decoded(self) -> None:
        given: list[Any] = []
        for decode in (False, True):
            shop = spider_of(
                Shop,
                {"REDIS_DECODE_RESPONSES": decode},
                make_request_from_data=lambda self, data: given.append(data),
            )
            shop._requests_from(b"x")

        assert given == [b"x", "x"]
