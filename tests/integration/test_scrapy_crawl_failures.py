"""Callbacks and pipelines that fail, and what becomes of their requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.scrapy_projects import APPENDING, EACH_VERSION, closing_reason, counted
from support.scrapy_scenes import scene

pytestmark = pytest.mark.parametrize("version", EACH_VERSION)

PICKY = f"""
from scrapy.exceptions import DropItem
{APPENDING}

class Picky:
    def process_item(self, item, spider):
        if item["sku"] == "S2":
            raise RuntimeError("no room for it")
        if item["sku"] == "S3":
            raise DropItem("not wanted")
        return item
"""
BOTH = {"ITEM_PIPELINES": {"project.pipelines.Picky": 100, "project.pipelines.Appending": 300}}

HALF_WAY = """
import os

import scrapy


class HalfWay(scrapy.Spider):
    name = "things"
    start_urls = os.environ["SITES"].split(",")

    def parse(self, response):
        yield {"sku": "before"}
        yield response.follow("/item/1", self.other)
        raise ValueError("half-way")

    def other(self, response):
        yield {"sku": "followed"}
"""


def test_a_callback_that_raises_is_dead_until_it_is_tried_again(
    tmp_path: Path, version: str
) -> None:
    with scene(tmp_path, ["/item/1", "/broken/2"], version=version) as at:
        ended = at.project.crawl("things")
        assert closing_reason(ended.err) == "finished"
        (dead,) = at.dead()
        assert dead["url"] == f"{at.site.url}broken/2"
        assert dead["reason"].startswith("ValueError: could not convert string to float")
        assert "in thing" in dead["traceback"]
        assert counted(at.project.items(), "sku") == {"S1": 1}

        at.site.is_mended = True
        at.retry_the_dead()
        again = at.project.crawl("things")
        stats = at.project.queue.stats("things")
    assert closing_reason(again.err) == "finished"
    assert counted(at.project.items(), "sku") == {"S1": 1, "S2": 1}
    assert at.site.fetches() == {"/": 1, "/item/1": 1, "/broken/2": 2}
    assert (stats.state, stats.done, stats.dead) == ("finished", 3, 0)


def test_what_a_callback_gave_before_it_raised(tmp_path: Path, version: str) -> None:
    """It is used, as in Scrapy, and the page is dead."""
    with scene(tmp_path, [], HALF_WAY, version=version) as at:
        at.project.crawl("things")
        (dead,) = at.dead()
        stats = at.project.queue.stats("things")
    assert dead["reason"] == "ValueError: half-way"
    assert counted(at.project.items(), "sku") == {"before": 1, "followed": 1}
    assert (stats.state, stats.done, stats.dead) == ("finished", 1, 1)


def test_a_pipeline_that_raises_makes_the_page_dead_and_one_that_drops_does_not(
    tmp_path: Path, version: str
) -> None:
    links = ["/item/1", "/item/2", "/item/3"]
    with scene(tmp_path, links, settings=BOTH, pipelines=PICKY, version=version) as at:
        ended = at.project.crawl("things")
        (dead,) = at.dead()
        stats = at.project.queue.stats("things")
    assert closing_reason(ended.err) == "finished"
    assert dead["url"] == f"{at.site.url}item/2"
    assert dead["reason"] == "RuntimeError: no room for it"
    assert "in process_item" in dead["traceback"]
    assert counted(at.project.items(), "sku") == {"S1": 1}
    assert (stats.state, stats.done, stats.dead) == ("finished", 3, 1)
