"""Hosts decide their own pace: `rate = "auto"`, and one that is down is left in peace."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web

from shoal.frontier.values import Host
from shoal.policy import AUTO_FLOOR_S, AUTO_START_S, BREAKER_AFTER, PROBE_FIRST_S, SEND_SLACK_S
from support.links import numbered_pages, paths_of, put_spider
from support.processes import Folder
from support.sites import Site, html, serving
from support.until import until_now

pytestmark = pytest.mark.alone

PAGES = 30


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
