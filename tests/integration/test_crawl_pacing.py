"""Hosts decide their own pace: `rate = "auto"`, and one that is down is left in peace."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web

from shoal.core.policy import (
    AUTO_FLOOR_S,
    AUTO_START_S,
    BREAKER_AFTER,
    PROBE_FIRST_S,
    REFUSALS_IN_A_ROW,
    SEND_SLACK_S,
)
from shoal.frontier.values import Host
from support.links import numbered_pages, paths_of, put_spider
from support.processes import Folder
from support.sites import Site, html, serving
from support.until import until_now

pytestmark = pytest.mark.alone

PAGES = 30
MANY = 90

MISSPELT = """
from shoal import Spider

class Links(Spider):
    start_urls = ["{url}"]
    allow_private = True

    def parse(self, page):
        yield from page.follow_all("a", handler=self.product)

    def product(self, page):
        yield {{"title": page.css("h2::text").get().strip()}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


class MoodySite(Site):
    """Answers 500 to its numbered pages while it is down."""

    def __init__(self) -> None:
        super().__init__(self._moody)
        self._page = numbered_pages(PAGES)
        self.down = False

    async def _moody(self, path: str) -> web.Response:
        if self.down and path not in ("/", "/robots.txt"):
            return html("out of order", 500)
        return await self._page(path)


class PatchySite(Site):
    """Every so-maniest page answers 503 a few times before it can be had."""

    def __init__(self, every: int, times: int) -> None:
        super().__init__(self._patchy)
        self._page = numbered_pages(MANY)
        self.bad = set(paths_of(MANY)[::every]) - {"/"}
        self._times = times

    async def _patchy(self, path: str) -> web.Response:
        if path in self.bad and self.paths.count(path) <= self._times:
            return html("not now", 503)
        return await self._page(path)


def pauses_of(folder: Folder) -> list[float]:
    """For each host when it was last left alone because it refused; 0.0 if it never was."""
    with closing(sqlite3.connect(folder.path / "shoal.db")) as connection:
        return [moment for (moment,) in connection.execute("SELECT pushed_at FROM hosts")]


def longest_gap_s(site: Site) -> float:
    """The longest time between two requests."""
    hits = list(site.hits)
    return max(after.at - before.at for before, after in pairwise(hits))


def host_of(folder: Folder) -> Host:
    (host,) = folder.hosts("links")
    return host


def test_auto_begins_with_care_and_follows_the_hosts_answers(folder: Folder) -> None:
    with serving(Site(numbered_pages(10))) as site:
        put_spider(folder, [site])
        assert folder.shoal("crawl", "links.py", "--rate", "auto").code == 0
        robots, first, second = [*site.robots_hits, *site.hits][:3]
    for before, after in ((robots, first), (first, second)):
        assert after.at - before.at > AUTO_START_S - SEND_SLACK_S
    host = host_of(folder)
    assert AUTO_FLOOR_S <= host.penalty_s < AUTO_START_S
    assert host.latency_s > 0


def test_a_page_that_refuses_now_and_then_stops_nobody(folder: Folder) -> None:
    with serving(PatchySite(every=17, times=2)) as one, serving(PatchySite(17, 2)) as two:
        put_spider(folder, [one, two])
        assert folder.shoal("crawl", "links.py", "--rate", "none").code == 0
        for site in (one, two):
            assert len(site.bad) > REFUSALS_IN_A_ROW
            assert len(site.hits) == 1 + MANY + 2 * len(site.bad)
    assert pauses_of(folder) == [0.0, 0.0]


def test_a_handlers_mistake_is_no_failure_of_the_host(folder: Folder) -> None:
    """The host sends what it should: it is not slowed down, and not named among those that fail."""
    with serving(PatchySite(every=9, times=1)) as site:
        folder.write("links.py", MISSPELT.format(url=site.url))
        assert folder.shoal("crawl", "links.py", "--rate", "none").code == 3
    stats = folder.shoal("status", "links", "--json").json()
    assert (stats["done"], stats["dead"], stats["retries"]) == (1, MANY, len(site.bad))
    assert [host["failed"] for host in stats["failing_hosts"]] == [len(site.bad)]
    assert stats["failure_concentration"] == pytest.approx(len(site.bad) / (len(site.bad) + MANY))
    assert "hosts (1 with 10% of all failures)" in folder.shoal("status", "links").out
    assert pauses_of(folder) == [0.0]


@pytest.mark.rare
def test_a_host_that_goes_down_is_probed_until_it_is_back(folder: Folder) -> None:
    with serving(MoodySite()) as site:
        site.down = True
        put_spider(folder, [site], concurrency_per_host=4)
        with folder.running("crawl", "links.py", "--rate", "none", "--workers", "2") as crawl:
            until_now("the requests", lambda: len(site.hits) > BREAKER_AFTER)
            until_now("the failures", lambda: host_of(folder).is_broken)
            until_now("a probe", lambda: longest_gap_s(site) > PROBE_FIRST_S - SEND_SLACK_S)
            # The front page, the failures, what was in flight at the last of them, the probe.
            assert len(site.hits) <= 1 + BREAKER_AFTER + 3 + 1
            site.down = False
            assert crawl.wait().code == 0
    assert sorted(item["url"] for item in folder.export("links")) == sorted(
        site.url + path[1:] for path in paths_of(PAGES)
    )
    host = host_of(folder)
    assert (host.failures, host.failed > BREAKER_AFTER) == (0, True)
