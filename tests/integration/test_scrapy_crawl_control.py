"""A Scrapy crawl is looked after like any other: named, paused, cancelled; and Scrapy's own
extensions work as ever."""

from __future__ import annotations

import json
from pathlib import Path

from support.scrapy_projects import ADDON, Project, assert_in_order
from support.scrapy_scenes import scene, wait_for_beats
from support.scrapy_spiders import THINGS
from support.until import until_now

LISTS = [f"/list/{number}" for number in range(10, 20)]


def test_feeds_stats_and_the_name_of_the_crawl(tmp_path: Path) -> None:
    settings = {
        "SHOAL_CRAWL": "monday",
        "SHOAL_RATE": "500/s",
        "FEEDS": {"feed.json": {"format": "json"}},
    }
    with scene(tmp_path, ["/item/1", "/item/2"], settings=settings) as at:
        ended = at.project.crawl("things")
        stats = at.project.queue.stats("monday")
    assert_in_order(ended)
    assert (stats.state, stats.done, stats.items) == ("finished", 3, 2)
    assert stats.rules.rate == "500/s"
    feed = json.loads((at.project.path / "feed.json").read_bytes())
    assert sorted(item["sku"] for item in feed) == ["S1", "S2"]
    assert "'item_scraped_count': 2" in ended.err
    (line,) = (line for line in ended.err.splitlines() if "crawl 'monday' on" in line)
    assert at.server.url in line
    assert "500/s" in line


def test_a_paused_crawl_waits_and_goes_on(tmp_path: Path) -> None:
    with scene(tmp_path, LISTS) as at, at.project.crawling("things") as crawl:
        at.site.held.update(LISTS)
        until_now("the first page", lambda: at.site.hits)
        at.shoal("pause", "things")
        at.site.held.clear()
        until_now("what was in flight", lambda: at.project.queue.stats("things").leased == 0)
        before = len(at.site.hits)
        wait_for_beats(at.project.queue, "things", workers=1)
        assert len(at.site.hits) == before
        assert not crawl.has_ended(), crawl.err
        at.shoal("resume", "things")
        assert_in_order(crawl.wait())
        assert at.project.queue.stats("things").done == 111


def test_a_cancelled_crawl_closes(tmp_path: Path) -> None:
    with scene(tmp_path, LISTS) as at, at.project.crawling("things") as crawl:
        at.site.held.update(LISTS)
        until_now("the first page", lambda: at.site.hits)
        at.shoal("cancel", "things")
        at.site.held.clear()
        ended = crawl.wait()
        stats = at.project.queue.stats("things")
    assert ended.code == 0, ended.err
    assert (stats.state, stats.remaining) == ("cancelled", 0)


def test_a_wrong_address_is_one_clear_line(tmp_path: Path) -> None:
    settings = {**ADDON, "SHOAL_FRONTIER": "ftp://127.0.0.1/"}
    project = Project(tmp_path / "machine", THINGS, settings, sites=["http://127.0.0.1:1/"])
    with project.crawling("things") as crawl:
        ended = crawl.wait()
    assert "no frontier for 'ftp://127.0.0.1/'" in ended.err
    assert not project.items()


def test_a_redis_that_is_not_there_at_the_start_is_one_clear_line(tmp_path: Path) -> None:
    with scene(tmp_path, ["/item/1"]) as at:
        at.server.kill()
        with at.project.crawling("things") as crawl:
            ended = crawl.wait()
    assert f"[shoal] ERROR: {at.server.url}: " in ended.err
    assert not at.site.hits
