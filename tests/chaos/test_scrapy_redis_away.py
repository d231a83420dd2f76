"""Redis goes away in the middle of a Scrapy crawl and comes back: nothing is lost."""

from __future__ import annotations

import time
from math import inf
from pathlib import Path

import pytest

from support.crashes import has_crashed
from support.rarely import first_then_rare
from support.redis_chaos import BACK, WAITING, assert_adds_up
from support.scrapy_projects import EACH_VERSION, closing_reason, counted, wait_for_log
from support.scrapy_scenes import scene
from support.until import until_now

LISTS = [f"/list/{number}" for number in range(10, 40)]
ITEMS = {f"S{number}": 1 for number in range(100, 400)}
MOMENT = 50


@pytest.mark.parametrize("away_s", first_then_rare(0.0, 20.0))
def test_redis_is_killed_and_started_again(tmp_path: Path, away_s: float) -> None:
    with scene(tmp_path, LISTS) as (site, server, project):
        site.allowed = MOMENT
        with project.crawling("things") as crawl:
            until_now("a good part of the crawl", lambda: len(site.hits) >= MOMENT)
            server.kill()
            site.allowed = inf
            wait_for_log(crawl, WAITING)
            time.sleep(away_s)
            assert not crawl.has_ended(), crawl.err
            server.start()
            ended = crawl.wait()
        stats = project.queue.stats("things")
    assert ended.code == 0, ended.err
    assert closing_reason(ended.err) == "finished"
    assert BACK in ended.err
    assert not has_crashed(ended.err), ended.err
    assert counted(project.items(), "sku") == ITEMS
    assert_adds_up(stats)
    assert (stats.state, stats.done, stats.lost) == ("finished", 1 + len(LISTS) + len(ITEMS), 0)


@pytest.mark.parametrize("version", EACH_VERSION)
def test_redis_comes_back_without_its_data(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, LISTS, version=version) as (site, server, project):
        site.allowed = MOMENT
        with project.crawling("things") as crawl:
            until_now("a good part of the crawl", lambda: len(site.hits) >= MOMENT)
            with server.client() as client:
                client.flushall()
            site.allowed = inf
            ended = crawl.wait()
    assert ended.code == 1
    assert closing_reason(ended.err) == "shoal_failed"
    assert "has lost crawl 'things'" in ended.err
    assert "SCHEDULER_FLUSH_ON_START" in ended.err
