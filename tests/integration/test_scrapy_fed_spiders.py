"""Spiders of scrapy-redis in real processes: their feeds, their ends, their stats."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from support.scrapy_projects import EACH_VERSION, assert_in_order, closing_reason, wait_for_log
from support.scrapy_scenes import Scene, scene
from support.until import until_now

KEY = "fed:start_urls"
TAKEN, REJECTED = f"{KEY}:taken", f"{KEY}:rejected"

SPIDERS = """
import os
import signal
from pathlib import Path

from shoal.scrapy.spiders import RedisSpider


class Fed(RedisSpider):
    name = "fed"

    def parse(self, response, note=None):
        sent = response.request
        yield {
            "sku": response.css(".sku::text").get(),
            "note": note,
            "method": sent.method,
            "accept": sent.headers.get("X-Test", b"").decode(),
            "cookie": sent.headers.get("Cookie", b"").decode(),
            "priority": sent.priority,
        }


class Dying(Fed):
    name = "dying"
    redis_key = "fed:start_urls"

    def make_request_from_data(self, data):
        if not Path("died").exists():
            Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().make_request_from_data(data)
"""
SETTINGS: dict[str, object] = {
    "ADDONS": {},
    "SCHEDULER": "shoal.scrapy.scheduler.Scheduler",
    "SCHEDULER_QUEUE_CLASS": "shoal.scrapy.queue.SpiderPriorityQueue",
    "DUPEFILTER_CLASS": "shoal.scrapy.dupefilter.RFPDupeFilter",
    "STATS_CLASS": "shoal.scrapy.stats.RedisStatsCollector",
    "ITEM_PIPELINES": {"shoal.scrapy.pipelines.RedisPipeline": 400},
}


@pytest.fixture(params=EACH_VERSION)
def fed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """A project on the oldest and on the newest Scrapy."""
    version = request.param
    with scene(tmp_path, [], SPIDERS, SETTINGS, pipelines="", version=version) as found:
        yield found


def items(client: redis.Redis, spider: str = "fed") -> dict[str, dict[str, object]]:
    rows = [json.loads(row) for row in client.lrange(f"{spider}:items", 0, -1)]
    return {row["sku"]: row for row in rows}


def test_messages_of_every_kind_and_an_end_when_none_come(fed: Scene) -> None:
    everything = {
        "url": f"{fed.site.url}item/2",
        "method": "POST",
        "headers": {"X-Test": "yes"},
        "cookies": {"a": "b"},
        "priority": 3,
        "cb_kwargs": {"note": "from the feed"},
        "field": "value",
    }
    fed.project.set(MAX_IDLE_TIME_BEFORE_CLOSE=1)
    with fed.server.client() as client:
        secret = (fed.project.path / "scrapy.cfg").as_uri()
        client.rpush(KEY, f"{fed.site.url}item/1", "hello\x1b[2J\n", json.dumps(everything), secret)
        ended = fed.project.crawl("fed")

        assert_in_order(ended)
        plain, full = items(client)["S1"], items(client)["S2"]
        rejected = [json.loads(record) for record in client.lrange(REJECTED, 0, -1)]
        stats = client.hgetall("fed:stats")
        left = client.exists(KEY, TAKEN)
    assert (plain["method"], plain["note"], plain["priority"]) == ("GET", None, 0)
    assert full == {
        **{"sku": "S2", "note": "from the feed", "method": "POST"},
        **{"accept": "yes", "cookie": "a=b", "priority": 3},
    }
    assert {record["reason"] for record in rejected} == {
        r"not a URL: 'hello\x1b[2J' (it must begin with https:// or http://)",
        f"not an http(s) URL: {secret!r}",
    }
    assert ended.err.count(f"a message was put aside in {REJECTED}") == 2
    assert "\x1b" not in ended.err
    assert left == 0
    assert stats[b"item_scraped_count"] == stats[b"response_received_count"] == b"2"
    assert stats[b"finish_reason"] == b"finished"


def test_a_process_that_dies_with_a_message_in_its_hands_loses_nothing(fed: Scene) -> None:
    with fed.server.client() as client:
        client.sadd(KEY, *(f"{fed.site.url}item/{number}" for number in range(1, 4)))
        with fed.project.crawling("dying") as crawl:
            until_now("its end", crawl.has_ended)
        taken = client.zrange(TAKEN, 0, -1)
        assert (client.scard(KEY), len(taken)) == (0, 3)
        client.zadd(TAKEN, dict.fromkeys(taken, 0))  # Their time is over.
        with fed.project.crawling("dying") as crawl:
            until_now("all items", lambda: len(items(client, "dying")) == 3)
            until_now("no message in its hands", lambda: not client.exists(TAKEN))
            crawl.send(signal.SIGTERM)
            assert_in_order(crawl.wait(), "shutdown")
        assert client.llen("dying:items") == 3


@pytest.mark.rare
def test_a_key_that_is_no_feed_closes_the_spider(fed: Scene) -> None:
    with fed.server.client() as client:
        client.set(KEY, "something")
        ended = fed.project.crawl("fed")

    assert closing_reason(ended.err) == "feed_failed"
    assert f"{KEY} is a string" in ended.err
    assert "Traceback" not in ended.err


def test_another_scheduler_closes_the_spider(fed: Scene) -> None:
    fed.project.set(SCHEDULER="scrapy.core.scheduler.Scheduler")
    ended = fed.project.crawl("fed")

    assert closing_reason(ended.err) == "feed_failed"
    assert 'this needs SCHEDULER = "shoal.scrapy.scheduler.Scheduler"' in ended.err


def test_redis_is_away_for_a_while(fed: Scene) -> None:
    with fed.project.crawling("fed") as crawl, fed.server.client() as client:
        wait_for_log(crawl, "Start URLs come from Redis")
        fed.server.kill()
        wait_for_log(crawl, "waiting for the feed")
        fed.server.start()
        client.rpush(KEY, f"{fed.site.url}item/1")
        until_now("the item", lambda: items(client))
        crawl.send(signal.SIGTERM)
        ended = crawl.wait()

    assert closing_reason(ended.err) == "shutdown"


def test_the_filter_works_with_the_scheduler_of_scrapy(fed: Scene) -> None:
    spider = """
import scrapy


class Twice(scrapy.Spider):
    name = "twice"

    async def start(self):
        for number in (1, 2, 1):
            yield scrapy.Request(f"{self.settings['SITE']}item/{number}")

    def parse(self, response):
        yield {"sku": response.css(".sku::text").get()}
"""
    (fed.project.path / "project/spiders/twice.py").write_text(spider)
    fed.project.set(SCHEDULER="scrapy.core.scheduler.Scheduler", SITE=fed.site.url)
    with fed.server.client() as client:
        assert_in_order(fed.project.crawl("twice"))

        assert items(client, "twice").keys() == {"S1", "S2"}
        assert client.llen("twice:items") == 2
        assert client.keys("dupefilter:*") == []
