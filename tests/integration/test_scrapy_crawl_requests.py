"""What a project's requests are on the way through the queue: redirected, repeated, refused."""

from __future__ import annotations

from pathlib import Path

from support.scrapy_projects import assert_in_order, closing_reason, counted
from support.scrapy_scenes import scene

REPEATING = """
import os

import scrapy


class Repeating(scrapy.Spider):
    name = "things"
    start_urls = os.environ["SITES"].split(",")

    def parse(self, response):
        for number in range(3):
            yield response.follow("/item/1", self.thing, dont_filter=True, meta={"number": number})
            yield response.follow("/item/2", self.thing)

    def thing(self, response):
        yield {"sku": response.css(".sku::text").get()}
"""
LOCKED = """
import os
import threading

import scrapy


class Locked(scrapy.Spider):
    name = "things"
    start_urls = os.environ["SITES"].split(",")

    def parse(self, response):
        yield response.follow("/item/1", self.thing)
        yield response.follow("/item/2", self.thing, meta={"guard": {"lock": threading.Lock()}})

    def thing(self, response):
        yield {"sku": response.css(".sku::text").get()}
"""


def test_a_redirect_leads_to_a_page_that_is_read_once(tmp_path: Path) -> None:
    with scene(tmp_path, ["/moved/1", "/item/1", "/moved/2"]) as (site, _, project):
        assert_in_order(project.crawl("things"))
        stats = project.queue.stats("things")
    assert counted(project.items(), "sku") == {"S1": 1, "S2": 1}
    assert site.fetches() == {"/": 1, "/moved/1": 1, "/moved/2": 1, "/item/1": 1, "/item/2": 1}
    assert (stats.state, stats.done) == ("finished", 5)


def test_dont_filter_is_honoured_each_time(tmp_path: Path) -> None:
    with scene(tmp_path, [], REPEATING) as (site, _, project):
        assert_in_order(project.crawl("things"))
    assert site.fetches() == {"/": 1, "/item/1": 3, "/item/2": 1}
    assert counted(project.items(), "sku") == {"S1": 3, "S2": 1}


def test_what_cannot_be_queued_is_named_and_not_lost_silently(tmp_path: Path) -> None:
    with scene(tmp_path, [], LOCKED) as at:
        ended = at.project.crawl("things")
        (dead,) = at.dead()
    assert closing_reason(ended.err) == "finished"
    assert counted(at.project.items(), "sku") == {"S1": 1}
    assert dead["url"] == at.site.url
    for text in (dead["reason"], ended.err):
        assert f"{at.site.url}item/2" in text
        assert "guard" in text
        assert "things" in text
