"""Async callbacks, async pipelines and errbacks: a request is finished when they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.scrapy_projects import EACH_VERSION, assert_in_order, closing_reason, counted
from support.scrapy_scenes import scene
from support.until import until_now

pytestmark = pytest.mark.parametrize("version", EACH_VERSION)

SPIDER = """
import asyncio
import os

import scrapy


class Things(scrapy.Spider):
    name = "things"

    async def start(self):
        for url in os.environ["SITES"].split(","):
            yield scrapy.Request(url)

    async def parse(self, response):
        await asyncio.to_thread(len, response.body)
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, self.thing, errback=self.failed, cb_kwargs={"href": href})

    async def thing(self, response, href):
        await asyncio.to_thread(len, response.body)
        yield {"sku": response.css(".sku::text").get(), "href": href}

    async def failed(self, failure):
        await asyncio.to_thread(len, "")
        request = failure.request
        if "/gone/3" in request.url:
            raise RuntimeError("no errback for this")
        yield {"sku": failure.value.response.status, "href": request.cb_kwargs["href"]}
        url = request.url.replace("gone", "item")
        yield scrapy.Request(url, self.thing, cb_kwargs={"href": "back"})
"""
PIPELINE = """
import asyncio
import json
from pathlib import Path


class Appending:
    async def process_item(self, item, spider):
        started = Path("started")
        while started.exists() and not Path("go").exists():
            await asyncio.sleep(0.005)
            Path("waiting").touch()
        await asyncio.to_thread(self.write, item)
        return item

    def write(self, item):
        with open("items.jsonl", "ab", buffering=0) as file:
            file.write(json.dumps(dict(item)).encode() + b"\\n")
"""


def test_callbacks_and_errbacks_may_be_async(tmp_path: Path, version: str) -> None:
    links = ["/item/1", "/gone/2", "/gone/3"]
    with scene(tmp_path, links, SPIDER, pipelines=PIPELINE, version=version) as at:
        ended = at.project.crawl("things")
        (dead,) = at.dead()
        stats = at.project.queue.stats("things")
    assert closing_reason(ended.err) == "finished"
    found = {(item["sku"], item["href"]) for item in at.project.items()}
    assert found == {("S1", "/item/1"), (404, "/gone/2"), ("S2", "back")}
    assert (dead["url"], dead["reason"]) == (
        f"{at.site.url}gone/3",
        "RuntimeError: no errback for this",
    )
    assert (stats.state, stats.done, stats.dead, stats.dropped) == ("finished", 3, 1, 1)


def test_a_request_is_not_finished_while_a_pipeline_works_on_its_item(
    tmp_path: Path, version: str
) -> None:
    with scene(tmp_path, ["/item/1"], SPIDER, pipelines=PIPELINE, version=version) as at:
        project, queue = at.project, at.project.queue
        (project.path / "started").touch()
        with project.crawling("things") as crawl:
            until_now("the pipeline", (project.path / "waiting").exists)
            until_now("the front page", lambda: queue.stats("things").done == 1)
            assert queue.stats("things").leased == 1
            crawl.kill_all()
        (project.path / "started").unlink()
        assert_in_order(project.crawl("things"))
        stats = queue.stats("things")
    assert counted(project.items(), "sku") == {"S1": 1}
    assert (stats.state, stats.done, stats.lost) == ("finished", 2, 1)
