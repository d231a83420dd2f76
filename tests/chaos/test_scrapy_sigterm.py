"""SIGTERM: a Scrapy process finishes its requests in flight, gives the rest back, and ends."""

from __future__ import annotations

import signal
from math import inf
from pathlib import Path

import pytest

from support.processes import seeded_random
from support.redis_chaos import assert_adds_up
from support.scrapy_projects import EACH_VERSION, closing_reason, counted, wait_for_log
from support.scrapy_scenes import scene
from support.until import until_now

pytestmark = pytest.mark.parametrize("version", EACH_VERSION)

LISTS = [f"/list/{number}" for number in range(10, 40)]
ITEMS = {f"S{number}": 1 for number in range(100, 400)}
HELD = "/item/1"
SEEDS = 200
MANY_SEEDS = f"""
import os

import scrapy


class Seeds(scrapy.Spider):
    name = "seeds"

    async def start(self):
        for number in range({SEEDS}):
            yield scrapy.Request(os.environ["SITES"] + f"item/{{number}}", dont_filter=True)

    def parse(self, response):
        yield {{"sku": response.css(".sku::text").get()}}
"""


@pytest.mark.rare
def test_a_second_run_does_what_the_first_gave_back(tmp_path: Path, version: str) -> None:
    moment = seeded_random("SIGTERM of Scrapy").randrange(2, 200)
    with scene(tmp_path, LISTS, version=version) as (site, _, project):
        site.allowed = moment
        with project.crawling("things") as crawl:
            until_now(f"request {moment}", lambda: len(site.hits) >= moment)
            crawl.send(signal.SIGTERM)
            wait_for_log(crawl, "shutting down gracefully")
            site.allowed = inf
            stopped = crawl.wait()
        assert stopped.code == 0, stopped.err
        assert closing_reason(stopped.err) == "shutdown"
        half = project.queue.stats("things")
        assert_adds_up(half)
        assert (half.leased, half.lost, half.state) == (0, 0, "running")
        assert half.waiting > 0
        ended = project.crawl("things")
        stats = project.queue.stats("things")
    assert closing_reason(ended.err) == "finished"
    assert counted(project.items(), "sku") == ITEMS
    assert (stats.state, stats.lost, stats.dead) == ("finished", 0, 0)
    assert set(site.fetches().values()) == {1}


def test_what_is_in_flight_is_finished(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, [HELD], version=version) as (site, _, project):
        site.held.add(HELD)
        with project.crawling("things") as crawl:
            until_now("the request", lambda: HELD in site.paths)
            crawl.send(signal.SIGTERM)
            wait_for_log(crawl, "Closing spider (shutdown)")
            site.held.clear()
            stopped = crawl.wait()
        stats = project.queue.stats("things")
    assert closing_reason(stopped.err) == "shutdown"
    assert counted(project.items(), "sku") == {"S1": 1}
    assert (stats.done, stats.lost, stats.remaining) == (2, 0, 0)


@pytest.mark.rare
def test_a_second_signal_ends_it_at_once_and_nothing_is_lost(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, [HELD], version=version) as (site, _, project):
        site.held.add(HELD)
        with project.crawling("things") as crawl:
            until_now("the request", lambda: HELD in site.paths)
            crawl.send(signal.SIGTERM)
            wait_for_log(crawl, "Closing spider (shutdown)")
            crawl.send(signal.SIGTERM)
            crawl.wait()
        site.held.clear()
        ended = project.crawl("things")
        stats = project.queue.stats("things")
    assert closing_reason(ended.err) == "finished"
    assert counted(project.items(), "sku") == {"S1": 1}
    assert (stats.state, stats.done, stats.remaining) == ("finished", 2, 0)


@pytest.mark.rare
def test_what_start_had_not_yet_given_is_given_by_the_next_run(
    tmp_path: Path, version: str
) -> None:
    moment = seeded_random(f"SIGTERM while {version} Scrapy starts").randrange(1, SEEDS // 2)
    with scene(tmp_path, [], MANY_SEEDS, version=version) as (site, _, project):
        site.allowed = moment
        with project.crawling("seeds") as crawl:
            until_now(f"request {moment}", lambda: len(site.hits) >= moment)
            crawl.send(signal.SIGTERM)
            wait_for_log(crawl, "shutting down gracefully")
            site.allowed = inf
            stopped = crawl.wait()
        assert closing_reason(stopped.err) == "shutdown"
        ended = project.crawl("seeds")
        stats = project.queue.stats("seeds")
    assert closing_reason(ended.err) == "finished"
    assert site.fetches() == {f"/item/{number}": 1 for number in range(SEEDS)}
    assert counted(project.items(), "sku") == {f"S{number}": 1 for number in range(SEEDS)}
    assert (stats.state, stats.done, stats.lost) == ("finished", SEEDS, 0)
