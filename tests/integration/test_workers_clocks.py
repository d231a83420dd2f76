"""Workers whose clocks are ten minutes apart: the frontier's time decides which scrape is newer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from aiohttp import web

from shoal import Item, Page, Spider, crawl
from shoal.core.records import StoredItem
from shoal.results import results_at
from shoal.results.port import EVERYTHING, PageLog
from support.redis_servers import RedisServer
from support.scrapy_projects import ADDON, Project
from support.sites import Site, html, serving

AHEAD_S = 600.0
NAME = "clocks"


class Reading(Item, key="sku"):
    sku: str
    seen_at: str


class Clocks(Spider):
    name = NAME
    rate = "none"
    robots = False

    def parse(self, page: Page) -> Iterator[Reading]:
        yield Reading(sku="one", seen_at=page.url)


SCRAPY = f"""
import time

import scrapy


class Reading(scrapy.Item):
    __key__ = "sku"
    sku = scrapy.Field()
    seen_at = scrapy.Field()


class Clocks(scrapy.Spider):
    name = {NAME!r}

    def __init__(self, url, ahead, **arguments):
        super().__init__(**arguments)
        self.start_urls = [url]
        clock, ahead_s = time.time, float(ahead)
        time.time = lambda: clock() + ahead_s

    def parse(self, response):
        yield Reading(sku="one", seen_at=response.url)
"""


@pytest.fixture
def site() -> Iterator[Site]:
    async def answer(path: str) -> web.Response:
        return html(path)

    with serving(Site(answer)) as site:
        yield site


async def stored(address: str) -> tuple[list[StoredItem], list[PageLog]]:
    async with results_at(address) as results:
        items = [item async for item in results.items(NAME, EVERYTHING)]
        pages = [page for item in items for page in await results.pages_of(NAME, item.fingerprint)]
    return items, pages


def assert_the_later_won(address: str, url: str) -> None:
    (item,), (page,) = asyncio.run(stored(address))
    assert json.loads(item.data)["seen_at"] == url
    now = time.time()
    for moment in (item.scraped_at, page.started_at):
        assert now - AHEAD_S / 2 < moment <= now
    assert 0 <= page.duration_s < AHEAD_S / 2


@pytest.mark.parametrize("frontier", ["sqlite", "redis"])
def test_the_later_scrape_wins(
    site: Site,
    server: RedisServer,
    raw: redis.Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    frontier: str,
) -> None:
    stores: dict[str, Any] = {
        "frontier": server.url if frontier == "redis" else f"sqlite:///{tmp_path}/queue.db",
        "results": f"sqlite:///{tmp_path}/results.db",
    }
    clock = time.time
    for path, ahead_s in (("first", AHEAD_S), ("second", 0.0)):
        with monkeypatch.context() as patched:
            patched.setattr(time, "time", lambda ahead_s=ahead_s: clock() + ahead_s)
            spider = type("Clocks", (Clocks,), {"start_urls": [site.url + path]})
            assert crawl(spider, allow_private=True, **stores).stats.dead == 0
    assert site.paths == ["/first", "/second"]
    assert_the_later_won(stores["results"], site.url + "second")


@pytest.mark.rare
def test_in_scrapy_too(site: Site, server: RedisServer, raw: redis.Redis, tmp_path: Path) -> None:
    results = f"sqlite:///{tmp_path}/results.db"
    settings = {**ADDON, "REDIS_URL": server.url, "SHOAL_RESULTS": results}
    project = Project(tmp_path / "machine", SCRAPY, settings)
    for path, ahead_s in (("first", AHEAD_S), ("second", 0.0)):
        project.crawl(NAME, "-a", f"url={site.url}{path}", "-a", f"ahead={ahead_s}")
    assert site.paths == ["/first", "/second"]
    assert_the_later_won(results, site.url + "second")
