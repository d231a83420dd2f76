"""Bans of exits are remembered: over time, across restarts, and by all workers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from math import inf
from pathlib import Path

import pytest

from shoal.core.exit_policy import COOL_FIRST_S, PROBE_EVERY_S, SITE_S
from support.banning_site import Ban, BanningSite, Limit, assert_only_by
from support.exit_crawls import ExitFolder, assert_complete, bound, source_of
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.sites import serving
from support.until import until_now

pytestmark = pytest.mark.rare

PAGES = 40
LONG_S = 100 * COOL_FIRST_S
"""The lease time of these crawls: longer than any time that a test lets pass."""


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def folder(request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer) -> ExitFolder:
    return ExitFolder(tmp_path, redis_server.url if request.param == "redis" else "")


@pytest.fixture
def site() -> Iterator[BanningSite]:
    with serving(BanningSite(PAGES)) as site:
        yield site


def test_a_banned_exit_gets_nothing_until_its_time_and_then_one(
    folder: ExitFolder, site: BanningSite
) -> None:
    """The crawl is killed and goes on with other processes: the ban still holds."""
    exits = bound(3)
    folder.put_pool("dc", exits)
    folder.put_spider(site.urls, concurrency_per_host=3, lease_s=LONG_S)
    banned = source_of(exits[0])
    site.takes_s = 0.03
    site.ban(banned, Ban.CHALLENGE)
    with folder.running("crawl", "links.py", "--workers", "2") as crawl:
        until_now("a third of the pages", lambda: len(site.log) > PAGES // 3)
        crawl.kill_all()
    met = len(site.arrivals(banned))
    assert 1 <= met <= 3, "what had left before the first answer came, and no more"
    with folder.running("crawl", "links.py", "--workers", "2") as crawl:
        until_now("two thirds of the pages", lambda: len(site.log) > PAGES * 2 // 3)
        assert len(site.arrivals(banned)) == met
        folder.pass_time(COOL_FIRST_S)
        until_now("its probation", lambda: len(site.arrivals(banned)) > met)
        assert crawl.wait().code == 0
    assert len(site.arrivals(banned)) == met + 1
    assert_complete(folder, site, PAGES)
    assert_only_by(site, [source_of(at) for at in exits])


def test_a_site_that_forbids_everybody_is_left_in_peace(
    folder: ExitFolder, site: BanningSite
) -> None:
    """The host is slowed down and most of the pool is spared, for when the site answers again.

    The site forbids after few good answers: the more there were, the more blocks it takes until
    the host is slowed down.
    """
    site.forbids_after = 6
    folder.put_pool("dc", bound(12))
    folder.put_spider(site.urls, concurrency_per_host=4, lease_s=LONG_S, max_blocks=50)
    with folder.running("crawl", "links.py", "--workers", "2") as crawl:
        until_now("a page that is forbidden", lambda: len(site.log) > site.forbids_after)
        until_now("the host to be slowed", lambda: folder.hosts("links")[0].penalty_s > 0)
        seen = len(site.log)
        cooling = sum(state.cooling for state in asyncio.run(folder.exits()))
        assert cooling < 12 - 2, "most of the pool is spared"
        site.forbids_after = inf
        folder.pass_time(SITE_S)
        assert crawl.wait().code == 0
    assert seen <= 8 + 4 + 30
    assert sum(state.cooling for state in asyncio.run(folder.exits())) <= cooling
    assert_complete(folder, site, PAGES)


def test_up_where_it_is_blocked_and_down_again(folder: ExitFolder, site: BanningSite) -> None:
    """While the cheap exits are banned, the expensive ones are used."""
    cheap, dear = bound(12), bound(4, first=12)
    folder.put_pool("dc", cheap, escalate_to="res")
    folder.put_pool("res", dear, cost={"per_request": 1.0}, budget="1000/day")
    folder.put_spider(site.urls, concurrency_per_host=2, lease_s=LONG_S, max_blocks=50)
    site.takes_s = 0.1
    by_dear = [source_of(at) for at in dear]

    def served() -> int:
        return sum(site.sources[source] for source in by_dear)

    with folder.running("crawl", "links.py", "--workers", "2") as crawl:
        until_now("some pages", lambda: len(site.log) > 3)
        for exit_ in cheap:
            site.ban(source_of(exit_), Ban.FORBIDDEN)
        until_now("the dear exits", lambda: served() > 2)
        site.lift()
        while (lanes := asyncio.run(folder.lanes())) and lanes[0].tier_pool == "res":
            before = len(site.log)
            folder.pass_time(PROBE_EVERY_S)
            until_now("one more request", partial(_has_more, site, before))
        assert lanes, "it has come down before the crawl was over"
        back = len(site.log)
        assert crawl.wait().code == 0
    assert_complete(folder, site, PAGES)
    assert_only_by(site, [*map(source_of, cheap), *by_dear])
    late = [seen.source for seen in site.log[back + 2 :]]
    assert late
    assert not set(late) & set(by_dear)
    spent = asyncio.run(folder.pools())["res"].spent
    assert spent.total == spent.requests == served()


def _has_more(site: BanningSite, than: int) -> bool:
    return len(site.log) > than


def test_a_budget_is_never_overspent(folder: ExitFolder, site: BanningSite) -> None:
    """When the budget is spent, the other tasks wait, and die with that reason."""
    folder.put_pool("res", bound(3), cost={"per_request": 1.0}, budget="10/day", pool_timeout="2s")
    folder.put_spider(site.urls, proxy_pool="res", concurrency_per_host=4)
    assert folder.shoal("crawl", "links.py", "--workers", "4").code == 3
    assert len(site.log) == 10
    assert "budget spent" in folder.shoal("dead", "list", "links").out
    assert asyncio.run(folder.pools())["res"].spent.total == 10.0


def test_every_exit_is_banned_in_the_end(folder: ExitFolder, site: BanningSite) -> None:
    """If all exits are banned, no ban is lifted early: tasks wait until the first has cooled
    down."""
    exits = bound(2)
    folder.put_pool("dc", exits)
    folder.put_spider(site.urls, concurrency_per_host=1, lease_s=LONG_S, max_blocks=50)
    site.limit = Limit(5, Ban.FORBIDDEN, for_s=0.5)
    with folder.running("crawl", "links.py") as crawl:
        until_now("all to be banned", lambda: sum(seen.ban is not None for seen in site.log) >= 2)
        until_now("all to cool down", lambda: _all_cool(folder))
        seen = len(site.log)
        assert not crawl.has_ended()
        site.limit = None
        site.lift()
        folder.pass_time(COOL_FIRST_S)
        until_now("more", lambda: len(site.log) > seen)
        assert crawl.wait().code == 0
    assert_complete(folder, site, PAGES)


def _all_cool(folder: ExitFolder) -> bool:
    return all(state.cooling for state in asyncio.run(folder.exits()))
