"""What start() may do: never end, raise, or mean another crawl by its arguments."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from support.scrapy_projects import EACH_VERSION, assert_in_order, closing_reason
from support.scrapy_scenes import scene
from support.until import until_now

ENDLESS = """
import itertools
import os

import scrapy


class Endless(scrapy.Spider):
    name = "things"

    async def start(self):
        for number in itertools.count():
            yield scrapy.Request(f"{os.environ['SITES']}item/{number}")

    def parse(self, response):
        yield {"sku": response.css(".sku::text").get()}
"""

RAISING = """
import os

import scrapy


class Raising(scrapy.Spider):
    name = "things"

    async def start(self):
        yield scrapy.Request(f"{os.environ['SITES']}item/1")
        raise LookupError("the list of shops is gone")

    def parse(self, response):
        yield {"sku": response.css(".sku::text").get()}
"""

BY_ARGUMENT = """
import os

import scrapy


class ByArgument(scrapy.Spider):
    name = "things"
    custom_settings = {"SHOAL_CRAWL": "things-%(number)s"}

    async def start(self):
        yield scrapy.Request(f"{os.environ['SITES']}item/{self.number}")

    def parse(self, response):
        yield {"sku": response.css(".sku::text").get()}
"""


@pytest.mark.parametrize("version", EACH_VERSION)
def test_pages_are_read_while_start_goes_on_for_ever(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, [], ENDLESS, version=version) as at:
        with at.project.crawling("things") as crawl:
            until_now("items", lambda: len(at.project.items()) >= 100)
            crawl.send(signal.SIGTERM)
            ended = crawl.wait()
        stats = at.project.queue.stats("things")
    assert closing_reason(ended.err) == "shutdown"
    assert (stats.leased, stats.lost) == (0, 0)


def test_a_start_that_raises_is_said_and_no_success(tmp_path: Path) -> None:
    with scene(tmp_path, [], RAISING) as at:
        ended = at.project.queue.shoal("crawl", "scrapy:things", env={"SITES": at.site.url})
    assert ended.code == 1
    assert "things: start() raised LookupError: the list of shops is gone" in ended.err


@pytest.mark.rare
def test_arguments_can_name_the_crawl(tmp_path: Path) -> None:
    with scene(tmp_path, [], BY_ARGUMENT) as at:
        for number in ("1", "2"):
            assert_in_order(at.project.crawl("things", "-a", f"number={number}"))
            assert at.project.queue.stats(f"things-{number}").done == 1
        env = {"SITES": at.site.url}
        ended = at.project.queue.shoal("crawl", "scrapy:things", "number=3", env=env)
        assert ended.code == 0, ended
        assert at.project.queue.stats("things-3").done == 1
    assert [item["sku"] for item in at.project.items()] == ["S1", "S2", "S3"]
