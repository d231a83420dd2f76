"""A project made for scrapy-redis, its imports and settings renamed, and its items in Redis."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import redis

from support.rarely import first_then_rare
from support.scrapy_projects import assert_in_order, closing_reason, counted
from support.scrapy_scenes import scene
from support.until import until_now

SPIDERS = """
import os

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from shoal.scrapy.spiders import RedisCrawlSpider, RedisSpider


def read(response):
    return {"sku": response.css(".sku::text").get(), "url": response.url}


class Directory(CrawlSpider):
    name = "directory"
    allowed_domains = ["127.0.0.1"]
    start_urls = os.environ["SITES"].split(",")
    rules = [
        Rule(LinkExtractor(allow="/list/"), follow=True),
        Rule(LinkExtractor(allow="/item/"), callback="parse_thing"),
    ]

    def parse_thing(self, response):
        yield read(response)


class Fed(RedisSpider):
    name = "fed"
    redis_key = "fed:start_urls"

    def __init__(self, *args, domain="", **kwargs):
        self.allowed_domains = [name for name in domain.split(",") if name]
        super().__init__(*args, **kwargs)

    def parse(self, response):
        yield read(response) | {"note": response.meta.get("note")}


class FedCrawler(RedisCrawlSpider):
    name = "fed_crawler"
    redis_key = "fed_crawler:start_urls"
    rules = (Rule(LinkExtractor(), callback="parse_page", follow=True),)

    def parse_page(self, response):
        yield read(response)
"""
PIPELINES = """
class Stamping:
    def process_item(self, item, spider):
        return {**item, "spider": spider.name}
"""
SETTINGS: dict[str, object] = {
    "ADDONS": {},
    "SCHEDULER": "shoal.scrapy.scheduler.Scheduler",
    "SCHEDULER_PERSIST": True,
    "DUPEFILTER_CLASS": "shoal.scrapy.dupefilter.RFPDupeFilter",
    "ITEM_PIPELINES": {
        "project.pipelines.Stamping": 300,
        "shoal.scrapy.pipelines.RedisPipeline": 400,
    },
}
LINKS = ["/list/1", "/list/2", "/item/3"]
ITEMS = {f"S{number}": 1 for number in [*range(10, 30), 3]}


def stored(client: redis.Redis, spider: str) -> list[dict[str, str]]:
    """What the pipeline has put into Redis."""
    return [json.loads(row) for row in client.lrange(f"{spider}:items", 0, -1)]


def test_a_crawl_spider_of_the_project(tmp_path: Path) -> None:
    with (
        scene(tmp_path, LINKS, SPIDERS, SETTINGS, pipelines=PIPELINES) as (_, server, project),
        server.client() as client,
    ):
        assert_in_order(project.crawl("directory"))
        items = stored(client, "directory")
    assert counted(items, "sku") == ITEMS
    assert {item["spider"] for item in items} == {"directory"}


def test_a_fed_spider_waits_for_more_until_it_is_told_to_stop(tmp_path: Path) -> None:
    with (
        scene(tmp_path, LINKS, SPIDERS, SETTINGS, pipelines=PIPELINES) as (site, server, project),
        server.client() as client,
        project.crawling("fed", "-a", "domain=127.0.0.1") as crawl,
    ):
        client.lpush("fed:start_urls", f"{site.url}item/1")
        until_now("the first item", lambda: stored(client, "fed"))
        task = {"url": f"{site.url}item/2", "meta": {"note": "from the feed"}}
        client.lpush("fed:start_urls", json.dumps(task))
        until_now("the second item", lambda: len(stored(client, "fed")) == 2)
        assert not crawl.has_ended()
        crawl.send(signal.SIGTERM)
        ended = crawl.wait()
        items = stored(client, "fed")
        stats = project.queue.stats("fed")
        left = client.llen("fed:start_urls")
    assert ended.code == 0, ended.err
    assert closing_reason(ended.err) == "shutdown"
    assert {item["sku"]: item["note"] for item in items} == {"S1": None, "S2": "from the feed"}
    assert (stats.done, stats.lost, stats.leased, left) == (2, 0, 0, 0)


@pytest.mark.parametrize("kills", first_then_rare(1, 0))
def test_a_fed_crawler_follows_its_rules(tmp_path: Path, kills: int) -> None:
    with (
        scene(tmp_path, LINKS, SPIDERS, SETTINGS, pipelines=PIPELINES) as (site, server, project),
        server.client() as client,
    ):
        client.lpush("fed_crawler:start_urls", site.url)
        for _ in range(kills):
            site.held.add("/list/1")
            with project.crawling("fed_crawler") as crawl:
                until_now("the page that is held", lambda: "/list/1" in site.paths)
                crawl.kill_all()
            site.held.clear()
        with project.crawling("fed_crawler") as crawl:
            until_now("all items", lambda: _skus(client) >= ITEMS.keys())
            crawl.send(signal.SIGTERM)
            ended = crawl.wait()
    assert closing_reason(ended.err) == "shutdown"


def _skus(client: redis.Redis) -> set[str]:
    return {item["sku"] for item in stored(client, "fed_crawler") if item["sku"]}
