"""Redis is killed, stopped, or comes back empty, in the middle of a crawl."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.crashes import has_crashed
from support.links import GatedSite, put_spider
from support.processes import Ended, Folder, Running, seeded_random
from support.redis_chaos import (
    BACK,
    DURABLE,
    WAITING,
    all_hits,
    assert_links_are_complete,
    assert_losses_explain_repeats,
    assert_rate_holds,
)
from support.redis_servers import RedisServer
from support.sites import serving
from support.until import until_now

pytestmark = pytest.mark.alone

PAGES, PER_SECOND = 120, 60
RATE = f"{PER_SECOND}/s"
WORKERS = 2
PROCESSES = WORKERS + 1
CRAWL = ("crawl", "links.py", "--workers", str(WORKERS))
LEASE_S = 6.0
"""Longer than a waiting worker needs to notice that the server is back."""

HASTY_SPIDER = """
from shoal.drivers.redis import link
link.ANSWER_S = link.CONNECT_S = 1.0
from links import Links
"""


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with serving(GatedSite(PAGES)) as site:
        yield site
        site.allowed = 10**9


def folder_at(path: Path, server: RedisServer, site: GatedSite, **settings: object) -> Folder:
    folder = Folder(path, {"SHOAL_FRONTIER": server.url})
    put_spider(folder, [site], **settings)
    return folder


def wait_for_moment(site: GatedSite, name: str) -> None:
    """Let the crawl reach a random request, and wait until more are in flight."""
    site.allowed = seeded_random(name).randrange(1, PAGES)
    until_now(f"request {site.allowed} and more", lambda: len(site.hits) > site.allowed)


def wait_until_all_wait(crawl: Running) -> None:
    until_now("all processes to notice", lambda: crawl.err.count(WAITING) == PROCESSES)


def assert_said_once(ended: Ended) -> None:
    assert ended.code == 0, ended
    assert (ended.err.count(WAITING), ended.err.count(BACK)) == (PROCESSES, PROCESSES), ended.err
    assert not has_crashed(ended.err), ended.err


@pytest.mark.rare
def test_it_is_killed_and_comes_back_after_all_leases_have_expired(
    tmp_path: Path, site: GatedSite
) -> None:
    with RedisServer(tmp_path / "redis", *DURABLE) as server:
        folder = folder_at(tmp_path, server, site, rate=RATE, lease_s=LEASE_S)
        with folder.running(*CRAWL) as crawl:
            wait_for_moment(site, "kill of Redis")
            until_now("the workers", lambda: len(crawl.workers()) == WORKERS)
            server.kill()
            expired_at = time.monotonic() + LEASE_S
            site.allowed = 10**9
            wait_until_all_wait(crawl)
            until_now("the leases to expire", lambda: time.monotonic() > expired_at)
            server.start()
            ended = crawl.wait()
        assert_said_once(ended)
        stats = assert_links_are_complete(folder, [site], PAGES)
    assert stats.lost == 0
    assert len(site.paths) == PAGES + 1
    assert len(site.robots_hits) == 1
    assert_rate_holds(all_hits(site), PER_SECOND)


@pytest.mark.rare
def test_it_stands_still_for_a_while(tmp_path: Path, site: GatedSite) -> None:
    """When Redis goes on, it executes calls for which nobody waits any more."""
    with RedisServer(tmp_path / "redis", *DURABLE) as server:
        folder = folder_at(tmp_path, server, site, rate=RATE, lease_s=10.0)
        folder.write("hasty.py", HASTY_SPIDER)
        with folder.running("crawl", "hasty.py:Links", "--workers", str(WORKERS)) as crawl:
            wait_for_moment(site, "stop of Redis")
            until_now("the workers", lambda: len(crawl.workers()) == WORKERS)
            server.pause()
            site.allowed = 10**9
            wait_until_all_wait(crawl)
            server.resume()
            ended = crawl.wait()
        assert_said_once(ended)
        stats = assert_links_are_complete(folder, [site], PAGES)
    assert_losses_explain_repeats([site], stats)
    assert_rate_holds(all_hits(site), PER_SECOND)


def test_it_comes_back_without_its_data(tmp_path: Path, site: GatedSite) -> None:
    with RedisServer(tmp_path / "redis") as server:
        folder = folder_at(tmp_path, server, site, rate="none")
        with folder.running(*CRAWL) as crawl, folder.running("worker", "links.py") as worker:
            wait_for_moment(site, "kill of a forgetful Redis")
            until_now("all workers", lambda: len(folder.workers("links")) == WORKERS + 1)
            until_now("an item", lambda: len(folder.export("links")) > 0)
            server.kill()
            site.allowed = 10**9
            server.start()
            for command in (crawl, worker):
                assert_lost_data(command.wait())
        again = folder.shoal(*CRAWL)
        assert (again.code, again.out) == (2, "")
        assert f"{server.url} knows no crawl 'links', which has run there" in again.err
        assert len(again.err.splitlines()) == 1
        assert folder.shoal(*CRAWL, "--fresh").code == 0
        assert_links_are_complete(folder, [site], PAGES)


def assert_lost_data(ended: Ended) -> None:
    """Check that the last line says what has happened. Lines about waiting may precede it."""
    *news, verdict = ended.err.splitlines()
    assert ended.code == 1, ended
    assert verdict.startswith("shoal: redis://127.0.0.1:")
    assert "has lost crawl 'links': it was restarted without its data" in verdict
    assert not [line for line in news if line.startswith("shoal: ")]
    assert not has_crashed(ended.err), ended.err
