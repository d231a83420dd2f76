"""Crawls by exits: real proxies, real commands, and what the target saw of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.banning_site import BLOCKS, OWN_ADDRESS, Ban, BanningSite, Limit, assert_only_by
from support.exit_crawls import (
    ExitFolder,
    assert_complete,
    bound,
    pages_of,
    proxies,
    source_of,
)
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.sites import serving
from support.until import until_now

PAGES = 30
EXITS = 4


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def folder(request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer) -> ExitFolder:
    return ExitFolder(tmp_path, redis_server.url if request.param == "redis" else "")


@pytest.fixture
def site() -> Iterator[BanningSite]:
    with serving(BanningSite(PAGES)) as site:
        yield site


def test_all_that_is_sent_goes_by_exits(folder: ExitFolder, site: BanningSite) -> None:
    """Through proxies of both kinds, robots.txt as well; none is used more than the others."""
    with proxies(folder.path, EXITS) as servers:
        folder.put_pool("dc", [server.url for server in servers])
        folder.put_spider(site.urls)
        ended = folder.shoal("crawl", "links.py", "--workers", "2")
        assert ended.code == 0, ended
        assert_only_by(site, [server.source for server in servers])
    assert_complete(folder, site, PAGES)
    assert [seen.path for seen in site.log].count("/robots.txt") == 1
    assert set(site.sources) == {server.source for server in servers}
    assert max(site.sources.values()) <= 3 * min(site.sources.values())


def test_no_exit_no_request(folder: ExitFolder, site: BanningSite) -> None:
    """Every proxy is killed while the crawl is under way: what is left waits, then dies, and says
    why. Nothing leaves from our own address."""
    site.takes_s = 0.05
    with proxies(folder.path, 2) as servers:
        folder.put_pool("dc", [server.url for server in servers], pool_timeout="2s")
        folder.put_spider(site.urls, concurrency_per_host=4)
        with folder.running("crawl", "links.py", "--workers", "2") as crawl:
            until_now("half of the pages", lambda: len(site.log) > PAGES // 2)
            for server in servers:
                server.kill()
            seen = len(site.log)
            ended = crawl.wait()
        assert_only_by(site, [server.source for server in servers])
    assert ended.code == 3, ended
    assert len(site.log) <= seen + 4
    stats = folder.stats("links")
    assert stats.done + stats.dead == PAGES + 1
    told = folder.shoal("dead", "list", "links").out
    assert "no exit of pool dc could be used for 2s: 2 exits, " in told


@pytest.mark.rare
def test_a_list_becomes_empty_while_it_is_used(folder: ExitFolder, site: BanningSite) -> None:
    """What is left waits for its time, and is then told to be without exits."""
    exits = bound(2)
    folder.put_pool("dc", exits, pool_timeout="2s", refresh="1s")
    folder.put_spider(site.urls, rate="5/s")
    with folder.running("crawl", "links.py") as crawl:
        until_now("some pages", lambda: len(site.log) > 5)
        folder.put_pool("dc", [], pool_timeout="2s", refresh="1s")
        ended = crawl.wait()
    assert ended.code == 3, ended
    assert "WARNING pool dc: 0 exits, 0 new, 2 gone" in ended.err
    assert_only_by(site, [source_of(each) for each in exits])
    told = folder.shoal("dead", "list", "links").out
    assert "no exit of pool dc could be used for 2s: it has no exits" in told, told


@pytest.mark.rare
def test_a_crawl_that_goes_on_keeps_its_pool(folder: ExitFolder, site: BanningSite) -> None:
    """Who forgets it is told so: nothing leaves from our own address, and nobody waits for ever."""
    exits = bound(2)
    proxies_txt = folder.write("proxies.txt", "".join(f"{each}\n" for each in exits))
    folder.put_spider(site.urls, proxy_pool=None)
    by_proxies = ("crawl", "links.py", "--proxies", str(proxies_txt))
    assert folder.shoal(*by_proxies, "--max-pages", "5").code == 0
    ended = folder.shoal("crawl", "links.py")
    assert ended.code == 2, ended
    assert ended.err.endswith(
        "shoal: crawl 'links' has gone by pool proxies so far: name it again (--proxies),"
        " or go on without it (--proxy-pool direct)\n"
    )
    ended = folder.shoal("crawl", "links.py", "--proxy-pool", "direct")
    assert ended.code == 2, ended
    assert "wait for exits of pool proxies, which is not known here: name it again" in ended.err
    assert folder.shoal(*by_proxies).code == 0
    assert_only_by(site, [source_of(each) for each in exits])
    assert_complete(folder, site, PAGES)


@pytest.mark.parametrize("ban", first_then_rare(*BLOCKS))
def test_a_block_is_seen_whatever_it_looks_like(
    tmp_path: Path, site: BanningSite, ban: Ban
) -> None:
    """One of the exits is banned. What it met is no page, and is read by another. No frontier has
    to do with what a block looks like."""
    folder = ExitFolder(tmp_path)
    exits = bound(EXITS)
    folder.put_pool("dc", exits)
    folder.put_spider(site.urls)
    banned = source_of(exits[0])
    site.ban(banned, ban)
    assert folder.shoal("crawl", "links.py").code == 0
    assert_complete(folder, site, PAGES)
    assert_only_by(site, [source_of(at) for at in exits])
    states = asyncio.run(folder.exits())
    assert [state.cooling for state in states].count(1) == 1


def test_who_is_banned_at_one_host_serves_another(folder: ExitFolder) -> None:
    with serving(BanningSite(PAGES, hosts=2)) as site:
        exits = bound(3)
        folder.put_pool("dc", exits)
        folder.put_spider(site.urls, concurrency_per_host=3)
        banned = source_of(exits[0])
        here, there = site.hosts
        site.ban(banned, Ban.CHALLENGE, host=here)
        assert folder.shoal("crawl", "links.py", "--workers", "2").code == 0
        assert_complete(folder, site, PAGES)
    assert len(site.arrivals(banned, here)) <= 3
    assert len(pages_of(site.arrivals(banned, there))) >= PAGES // 5


def test_pages_that_are_not_there_quarantine_nobody(folder: ExitFolder, site: BanningSite) -> None:
    site.has_pages = False
    folder.put_pool("dc", bound(3))
    folder.put_spider(site.urls)
    assert folder.shoal("crawl", "links.py").code == 0
    assert folder.stats("links").dropped == PAGES
    states = asyncio.run(folder.exits())
    assert [(state.bad, state.cooling) for state in states] == [(0.0, 0)] * 3


def test_a_pool_without_exits_delays_no_other(folder: ExitFolder) -> None:
    """Half of the pages go by proxies that are not there."""
    with serving(BanningSite(PAGES, hosts=2)) as site:
        here, there = site.urls
        folder.put_pool("dc", bound(2))
        folder.put_pool("gone", ["http://127.0.0.1:9", "socks5://127.0.0.1:9"])
        folder.put_spider([here])
        folder.put_spider([there], name="waiting", proxy_pool="gone")
        with folder.running("crawl", "waiting.py"):
            assert folder.shoal("crawl", "links.py").code == 0
        assert len(pages_of(site.log)) == PAGES + 1
        assert not site.arrivals(host=site.hosts[1])
        assert not site.arrivals(OWN_ADDRESS)


@pytest.mark.rare
def test_a_ban_after_so_many_requests(folder: ExitFolder, site: BanningSite) -> None:
    """Each exit is banned in the end; the crawl is over before all are."""
    exits = bound(8)
    folder.put_pool("dc", exits)
    folder.put_spider(site.urls, concurrency_per_host=4)
    site.limit = Limit(6, Ban.TOO_MANY)
    assert folder.shoal("crawl", "links.py", "--workers", "2").code == 0
    assert_complete(folder, site, PAGES)
    assert_only_by(site, [source_of(at) for at in exits])
