"""Retries are the frontier's: delayed, counted by Scrapy's settings, dead in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.scrapy_projects import EACH_VERSION, assert_in_order, closing_reason, counted
from support.scrapy_scenes import scene
from support.scrapy_site import RETRY_AFTER_S

pytestmark = pytest.mark.parametrize("version", EACH_VERSION)

IMPATIENT = """
import os

import scrapy


class Impatient(scrapy.Spider):
    name = "things"
    start_urls = os.environ["SITES"].split(",")

    def parse(self, response):
        for link in response.css("a"):
            yield response.follow(link, self.thing, meta={"max_retry_times": 0})

    def thing(self, response):
        yield {"sku": response.css(".sku::text").get()}
"""

NOWHERE = "http://127.0.0.1:9/"
"""Where nobody listens: the port for what is thrown away."""
NOBODY_THERE = f"""
import scrapy


class Things(scrapy.Spider):
    name = "things"
    start_urls = ["{NOWHERE}"]
"""


def test_a_busy_page_is_tried_again_when_it_said(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, ["/busy/1"], version=version) as (site, _, project):
        assert_in_order(project.crawl("things"))
        stats = project.queue.stats("things")
    first, second = (hit.at for hit in site.hits if hit.path == "/busy/1")
    assert second - first >= RETRY_AFTER_S
    assert counted(project.items(), "sku") == {"S1": 1}
    assert (stats.state, stats.retries, stats.done) == ("finished", 1, 2)


def test_retry_times_are_the_tries_after_the_first(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, ["/down/1"], settings={"RETRY_TIMES": 1}, version=version) as at:
        ended = at.project.crawl("things")
        (dead,) = at.dead()
        stats = at.project.queue.stats("things")
    assert closing_reason(ended.err) == "finished"
    assert at.site.fetches() == {"/": 1, "/down/1": 2}
    assert dead["url"] == f"{at.site.url}down/1"
    assert "503" in dead["reason"]
    assert dead["kind"] == "status_5xx"
    assert (stats.state, stats.retries, stats.dead) == ("finished", 1, 1)


@pytest.mark.rare
def test_max_retry_times_of_a_request_wins(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, ["/down/1"], IMPATIENT, version=version) as at:
        at.project.crawl("things")
        (dead,) = at.dead()
        stats = at.project.queue.stats("things")
    assert at.site.fetches() == {"/": 1, "/down/1": 1}
    assert "503" in dead["reason"]
    assert (stats.state, stats.retries, stats.dead) == ("finished", 0, 1)


def test_without_retries_a_busy_page_is_dead_at_once(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, ["/down/1"], settings={"RETRY_ENABLED": False}, version=version) as at:
        at.project.crawl("things")
        stats = at.project.queue.stats("things")
    assert at.site.fetches() == {"/": 1, "/down/1": 1}
    assert (stats.state, stats.done, stats.retries, stats.dead) == ("finished", 1, 0, 1)


def test_a_page_that_is_not_there_is_dropped(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, ["/gone/1", "/item/2"], version=version) as (site, _, project):
        assert_in_order(project.crawl("things"))
        stats = project.queue.stats("things")
    assert site.fetches() == {"/": 1, "/gone/1": 1, "/item/2": 1}
    assert counted(project.items(), "sku") == {"S2": 1}
    assert (stats.state, stats.done, stats.dropped, stats.dead) == ("finished", 2, 1, 0)


CHANGING = """
import os

import scrapy
from scrapy.downloadermiddlewares.retry import get_retry_request


class Changing(scrapy.Spider):
    name = "things"
    start_urls = os.environ["SITES"].split(",")

    def parse(self, response):
        for link in response.css("a"):
            yield response.follow(link, self.thing, meta={"cookiejar": 1})

    def thing(self, response):
        tries = response.meta.get("retry_times", 0)
        if tries < 2:
            again = get_retry_request(response.request, spider=self, reason="refused")
            again.headers["X-Try"] = str(tries + 1)
            again.meta["cookiejar"] = tries + 2
            yield again
        else:
            yield {"sku": response.css(".sku::text").get(), "jar": response.meta["cookiejar"]}
"""


def test_a_retry_that_was_changed_is_sent_as_it_is(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, ["/item/1"], CHANGING, version=version) as (site, _, project):
        assert_in_order(project.crawl("things"))
    assert site.fetches() == {"/": 1, "/item/1": 3}
    assert project.items() == [{"sku": "S1", "jar": 3}]


@pytest.mark.rare
def test_why_there_was_no_answer_is_known_of_every_try(tmp_path: Path, version: str) -> None:
    """The retry middleware tells nobody: it makes another request of what has failed."""
    with scene(tmp_path, ["/item/1"], NOBODY_THERE, {"RETRY_TIMES": 2}, version=version) as at:
        assert closing_reason(at.project.crawl("things").err) == "finished"
        (dead,) = at.dead()
        stats = at.shoal("status", "things", "--json").json()
    assert (dead["url"], dead["kind"]) == (f"{NOWHERE}", "connection")
    assert stats["failures_by_kind"] == {"connection": 3}
    assert stats["failing_hosts"][0]["failures_by_kind"] == {"connection": 3}
