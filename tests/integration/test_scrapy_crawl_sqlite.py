"""Without Redis, the queue is a file in the project's folder, and several processes share it."""

from __future__ import annotations

from pathlib import Path

from support.redis_chaos import assert_adds_up
from support.scrapy_projects import ADDON, Project, assert_in_order, counted
from support.scrapy_site import TroubleSite
from support.scrapy_spiders import THINGS
from support.sites import serving
from support.until import until_now

LISTS = [f"/list/{number}" for number in range(10, 20)]
ITEMS = {f"S{number}": 1 for number in range(100, 200)}
HELD = "/item/100"


def test_two_processes_in_one_folder(tmp_path: Path) -> None:
    with serving(TroubleSite(LISTS)) as site:
        project = Project(tmp_path / "machine", THINGS, ADDON, sites=[site.url])
        site.held.add(HELD)
        with project.crawling("things") as one, project.crawling("things") as two:
            until_now("the page that is held", lambda: HELD in site.paths)
            until_now("two workers", lambda: len(project.queue.workers("things")) == 2)
            site.held.clear()
            ends = [one.wait(), two.wait()]
        stats = project.queue.stats("things")
    for ended in ends:
        assert_in_order(ended)
    assert counted(project.items(), "sku") == ITEMS
    assert set(site.fetches().values()) == {1}
    assert_adds_up(stats)
    assert (stats.state, stats.done, stats.lost) == ("finished", 1 + len(LISTS) + len(ITEMS), 0)
