"""What else Scrapy's spiders and extensions do with requests, and that it works as ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.redis_chaos import assert_adds_up
from support.scrapy_projects import EACH_VERSION, assert_in_order, closing_reason, counted
from support.scrapy_scenes import scene

pytestmark = pytest.mark.parametrize("version", EACH_VERSION)

HEAD = """
import os

import scrapy
from scrapy import signals
from scrapy.exceptions import CloseSpider
from scrapy.utils.defer import maybe_deferred_to_future


class Base(scrapy.Spider):
    name = "things"
    start_urls = os.environ["SITES"].split(",")

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.thing)

    def thing(self, response):
        yield {"sku": response.css(".sku::text").get()}

"""
CLOSING = f"""{HEAD}
class Closing(Base):
    def thing(self, response):
        yield from super().thing(response)
        if not os.path.exists("closed"):
            open("closed", "w").close()
            raise CloseSpider("enough")
"""
INLINE = f"""{HEAD}
class Inline(Base):
    async def thing(self, response):
        more = scrapy.Request(response.url.replace("item", "secret"))
        answer = await maybe_deferred_to_future(self.crawler.engine.download(more))
        yield {{"sku": response.css(".sku::text").get(), "more": answer.status}}
"""
IDLE = f"""{HEAD}
class Idle(Base):
    asked = False

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signal=signals.spider_idle)
        return spider

    def idle(self):
        if not self.asked:
            self.asked = True
            url = self.start_urls[0] + "item/9"
            self.crawler.engine.crawl(scrapy.Request(url, callback=self.thing))
"""
FILES = f"""{HEAD}
class Files(Base):
    def parse(self, response):
        yield {{"sku": "front", "file_urls": [response.urljoin("/item/7")]}}
"""
FILE_SETTINGS = {
    "FILES_STORE": "files",
    "ITEM_PIPELINES": {
        "scrapy.pipelines.files.FilesPipeline": 1,
        "project.pipelines.Appending": 300,
    },
}
NO_ANSWER = f"""{HEAD}
class NoAnswer(Base):
    def parse(self, response):
        yield scrapy.Request("http://127.0.0.1:1/", self.thing, errback=self.failed)

    def failed(self, failure):
        yield {{"sku": "failed"}}
"""
LISTS = [f"/item/{number}" for number in range(50)]


@pytest.mark.rare
def test_a_spider_that_closes_itself_can_be_continued(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, LISTS, CLOSING, version=version) as (_, _, project):
        first = project.crawl("things")
        half = project.queue.stats("things")
        second = project.crawl("things")
        stats = project.queue.stats("things")
    assert closing_reason(first.err) == "enough"
    assert_adds_up(half)
    assert (half.leased, half.lost, half.dead) == (0, 0, 0)
    assert closing_reason(second.err) == "finished"
    assert counted(project.items(), "sku") == {f"S{number}": 1 for number in range(50)}
    assert (stats.state, stats.done, stats.dead) == ("finished", 51, 0)


@pytest.mark.rare
def test_downloads_inside_a_callback(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, ["/item/1"], INLINE, version=version) as (site, _, project):
        ended = project.crawl("things")
        stats = project.queue.stats("things")
    assert closing_reason(ended.err) == "finished"
    assert project.items() == [{"sku": "S1", "more": 403}]
    assert site.fetches() == {"/": 1, "/item/1": 1, "/secret/1": 1}
    assert (stats.state, stats.done) == ("finished", 2)


def test_a_request_made_when_the_spider_is_idle(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, ["/item/1"], IDLE, version=version) as (_, _, project):
        assert_in_order(project.crawl("things"))
        stats = project.queue.stats("things")
    assert counted(project.items(), "sku") == {"S1": 1, "S9": 1}
    assert (stats.state, stats.done) == ("finished", 3)


def test_files_are_downloaded_before_the_request_is_finished(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, [], FILES, FILE_SETTINGS, version=version) as (site, _, project):
        assert_in_order(project.crawl("things"))
        stats = project.queue.stats("things")
        (item,) = project.items()
        file = project.path / "files" / item["files"][0]["path"]
    assert b"S7" in file.read_bytes()
    assert site.fetches() == {"/": 1, "/item/7": 1}
    assert (stats.state, stats.done) == ("finished", 1)


@pytest.mark.rare
def test_no_answer_at_all_is_dead_and_an_errback_hears_of_it(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, [], NO_ANSWER, {"RETRY_TIMES": 1}, version=version) as at:
        ended = at.project.crawl("things")
        dead = at.dead()
        stats = at.project.queue.stats("things")
    assert closing_reason(ended.err) == "finished"
    # Scrapy 2.13.0 by itself calls no errback where there was no answer.
    assert counted(at.project.items(), "sku") == ({} if version == "oldest" else {"failed": 1})
    assert [task["url"] for task in dead] == ["http://127.0.0.1:1/"]
    assert (stats.state, stats.retries, stats.done, stats.dead) == ("finished", 1, 1, 1)
