"""The limits of a Scrapy project hold for all its processes together."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.redis_chaos import assert_rate_holds
from support.scrapy_projects import EACH_VERSION, assert_in_order, closing_reason, counted
from support.scrapy_scenes import scene, wait_for_beats
from support.until import until_now

pytestmark = [pytest.mark.parametrize("version", EACH_VERSION), pytest.mark.rare]

PAGES, PER_SECOND = 30, 5
LINKS = [f"/item/{number}" for number in range(PAGES)]
ITEMS = {f"S{number}": 1 for number in range(PAGES)}


def test_a_download_delay_is_that_of_the_fleet(tmp_path: Path, version: str) -> None:
    settings = {"DOWNLOAD_DELAY": 1 / PER_SECOND}
    with scene(tmp_path, LINKS, settings=settings, version=version) as (site, _, project):
        site.held.add(LINKS[-1])
        other = project.copy(tmp_path / "other")
        with project.crawling("things") as one, other.crawling("things") as two:
            until_now("the first page", lambda: site.hits)
            until_now("both machines", lambda: len(project.queue.workers("things")) == 2)
            site.held.clear()
            ends = [one.wait(), two.wait()]
        stats = project.queue.stats("things")
    for ended in ends:
        assert_in_order(ended)
    assert_rate_holds(site.hits, PER_SECOND)
    assert counted(project.items() + other.items(), "sku") == ITEMS
    assert project.items(), "one machine did all the work"
    assert other.items(), "one machine did all the work"
    assert stats.lost == 0


def test_concurrency_per_domain_is_that_of_the_fleet(tmp_path: Path, version: str) -> None:
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 3}
    with scene(tmp_path, LINKS, settings=settings, version=version) as (site, _, project):
        site.held.update(LINKS)
        other = project.copy(tmp_path / "other")
        with project.crawling("things") as one, other.crawling("things") as two:
            until_now("three requests at once", lambda: len(site.hits) >= 1 + 3)
            wait_for_beats(project.queue, "things", 2)
            assert len(site.hits) == 1 + 3
            site.held.clear()
            ends = [one.wait(), two.wait()]
    for ended in ends:
        assert_in_order(ended)
    assert counted(project.items() + other.items(), "sku") == ITEMS


SIDE_DOWNLOADS = """
import os

import scrapy


class Things(scrapy.Spider):
    name = "things"
    start_urls = os.environ["SITES"].split(",")

    async def parse(self, response):
        engine = self.crawler.engine
        for link in response.css("a"):
            request = response.follow(link, meta=response.meta)
            if hasattr(engine, "download_async"):
                page = await engine.download_async(request)
            else:
                from scrapy.utils.defer import maybe_deferred_to_future

                page = await maybe_deferred_to_future(engine.download(request))
            yield {"sku": page.css(".sku::text").get()}
"""


@pytest.mark.parametrize("throttled", [False, True])
def test_what_does_not_go_through_the_queue_keeps_scrapys_own_delay(
    tmp_path: Path, version: str, throttled: bool
) -> None:
    links = LINKS[:8]
    delay_s = 1 / PER_SECOND
    settings = {
        "DOWNLOAD_DELAY": delay_s,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "AUTOTHROTTLE_ENABLED": throttled,
        "AUTOTHROTTLE_START_DELAY": delay_s,
    }
    with scene(tmp_path, links, SIDE_DOWNLOADS, settings, version=version) as (site, _, project):
        ended = project.crawl("things")
    assert closing_reason(ended.err) == "finished"
    assert counted(project.items(), "sku") == {f"S{number}": 1 for number in range(8)}
    assert_rate_holds(site.hits[1:], PER_SECOND + 1)  # Scrapy spaces requests to the millisecond.
