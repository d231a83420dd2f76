"""Coordinators that are killed and stopped: every run begins once, with all its seeds."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from aiohttp import web

from shoal.frontier.values import CrawlState
from support.coordinators import Office
from support.links import numbered_pages, put_spider
from support.processes import Folder, Running, children_of
from support.redis_servers import RedisServer
from support.sites import Site, html, serving
from support.until import until_now

pytestmark = pytest.mark.rare

PAGES = 5
SEEDS = 1200

GATED = """
import time
from pathlib import Path

from shoal import Spider

class Gated(Spider):
    rate = "none"
    robots = False
    allow_private = True

    def start(self):
        for number in range({seeds}):
            if number == {seeds} // 2 + 1:
                while not Path("gate").exists():
                    time.sleep(0.01)
            yield f"{url}{{number}}"

    def parse(self, page):
        yield {{"url": page.url}}
"""


async def any_page(path: str) -> web.Response:
    return html(path)


def put_gated_spider(folder: Folder, url: str) -> None:
    """Write `links.py`: the second half of its seeds waits for a file called `gate`."""
    folder.write("links.py", GATED.format(seeds=SEEDS, url=url))


def test_a_run_begins_though_the_leader_is_killed_a_second_before(tmp_path: Path) -> None:
    with (
        RedisServer(tmp_path / "redis") as server,
        serving(Site(numbered_pages(PAGES))) as site,
    ):
        folder = Folder(tmp_path, {"SHOAL_FRONTIER": server.url, "SHOAL_RATE": "none"})
        put_spider(folder, [site])
        office = Office(folder)
        with folder.running("serve") as first, folder.running("worker"):
            office.leads(first)
            with folder.running("serve") as second:
                until_now("the second one", lambda: "standing by" in second.err)
                due_at = office.schedule_soon()
                time.sleep(max(due_at - 1 - time.time(), 0))
                first.kill_all()
                (run,) = until_now("the run's end", office.past)
                assert office.leader() == second.pid
    assert (run.due_at, run.state) == (due_at, "finished")
    assert (run.total, run.done, run.failed) == (PAGES + 1, PAGES + 1, 0)
    print(f"began {run.fired_at - due_at:.1f} s after it was due")


def begin_seeding(office: Office, leader: Running) -> str:
    """Begin a run, and wait until its first seeds are in. Returns its crawl."""
    office.leads(leader)
    crawl = office.begin()
    until_now("the run", lambda: crawl in office.runs())
    until_now("the seeding process", lambda: children_of(leader.pid))
    until_now("seeds", lambda: has_begun(office.folder, crawl))
    return crawl


def has_begun(folder: Folder, crawl: str) -> bool:
    listed = folder.shoal("status", crawl, "--json")
    return listed.code == 0 and listed.json()["added"] >= 500


def test_a_leader_is_killed_in_the_middle_of_seeding(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    put_gated_spider(folder, "http://a.example/")
    office = Office(folder)
    office.schedule()
    with folder.running("serve") as first:
        crawl = begin_seeding(office, first)
        with folder.running("serve") as second:
            until_now("the second one", lambda: "standing by" in second.err)
            first.kill_all()
            folder.write("gate", "")
            office.leads(second)
            until_now("the seeds", lambda: office.runs()[crawl].is_seeded)
        stats = folder.stats(crawl)
        assert (stats.added, stats.waiting) == (SEEDS, SEEDS)
        assert stats.duplicates >= 500
        assert stats.state is CrawlState.RUNNING


def test_a_leader_that_was_stopped_wakes_up_when_all_is_over(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as server, serving(Site(any_page)) as site:
        folder = Folder(tmp_path, {"SHOAL_FRONTIER": server.url})
        put_gated_spider(folder, site.url)
        office = Office(folder)
        office.schedule()
        with folder.running("serve") as first, folder.running("worker"):
            crawl = begin_seeding(office, first)
            os.killpg(first.pid, signal.SIGSTOP)
            folder.write("gate", "")
            with folder.running("serve") as second:
                office.leads(second)
                (run,) = until_now("the run's end", office.past)
                assert (run.crawl, run.state, run.done) == (crawl, "finished", SEEDS)
                os.killpg(first.pid, signal.SIGCONT)
                until_now("the first one to notice", lambda: "leading no longer" in first.err)
                until_now("its seeding process's end", lambda: not children_of(first.pid))
                until_now("the first one to stand by", lambda: "standing by" in first.err)
                assert office.leader() == second.pid
                assert (office.runs(), office.past()) == ({}, [run])
        stats = folder.stats(crawl)
        assert stats.state is CrawlState.FINISHED
        assert (stats.added, stats.done) == (SEEDS, SEEDS)
        assert len(site.hits) == SEEDS
