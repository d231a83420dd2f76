"""Crawls through exits: workers and proxies are killed, and nothing is lost, duplicated or sent
from this machine's own address."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from shoal.core.exit_policy import OUT_LIMIT_S, UNREACHED_LIMIT_S
from support.banning_site import BanningSite, assert_only_by
from support.exit_crawls import ExitFolder, assert_complete, pages_of, proxies
from support.processes import is_alive, seeded_random
from support.redis_servers import RedisServer
from support.sites import serving
from support.until import until_now

PAGES = 120
KILLS = 3
LONG_S = 100_000.0


@pytest.fixture(params=["sqlite", "redis"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer) -> ExitFolder:
    return ExitFolder(tmp_path, redis_server.url if request.param == "redis" else "")


@pytest.mark.rare
def test_workers_are_killed(folder: ExitFolder) -> None:
    chance = seeded_random("kills of workers that go by exits")
    with serving(BanningSite(PAGES)) as site, proxies(folder.path, 3) as servers:
        site.takes_s = 0.05
        folder.put_pool("dc", [server.url for server in servers])
        folder.put_spider(site.urls, concurrency_per_host=6, lease_s=LONG_S)
        with folder.running("crawl", "links.py", "--workers", "3") as crawl:
            for moment in sorted(chance.sample(range(1, PAGES), KILLS)):
                until_now(f"request {moment}", lambda m=moment: len(site.log) > m)  # type: ignore[misc]
                victim = chance.choice(until_now("a worker", crawl.workers))
                os.kill(victim, signal.SIGKILL)
                until_now("its end", lambda v=victim: not is_alive(v))  # type: ignore[misc]
            ended = crawl.wait()
        assert ended.code == 0, ended
        assert_only_by(site, [server.source for server in servers])
        # Proxies may still be handling requests of the last victim: at most as many again.
        assert site.most_at_host(site.hosts[0]) <= 2 * 6
    assert_complete(folder, site, PAGES)
    stats = folder.stats("links")
    assert len(pages_of(site.log)) <= PAGES + 1 + stats.lost
    assert all(state.leased == 0 for state in folder.exits_now()), "no exit is lent for ever"


@pytest.mark.rare
def test_every_proxy_is_killed_and_comes_back(folder: ExitFolder) -> None:
    """Interrupted requests are tried again. Meanwhile none is sent without a proxy."""
    chance = seeded_random("the ends of proxies")
    with serving(BanningSite(PAGES)) as site, proxies(folder.path, 3) as servers:
        site.takes_s = 0.05
        folder.put_pool("dc", [server.url for server in servers])
        folder.put_spider(site.urls, concurrency_per_host=6, lease_s=LONG_S, max_retries=20)
        with folder.running("crawl", "links.py", "--workers", "3") as crawl:
            for moment in sorted(chance.sample(range(1, PAGES), 2)):
                until_now(f"request {moment}", lambda m=moment: len(site.log) > m)  # type: ignore[misc]
                for server in servers:
                    server.kill()
                until_now("that nobody can be used", lambda: "ready" if _none(folder) else "")
                for server in servers:
                    server.start()
                folder.pass_time(max(OUT_LIMIT_S, UNREACHED_LIMIT_S))
            ended = crawl.wait()
        assert ended.code == 0, ended
        assert_only_by(site, [server.source for server in servers])
    assert_complete(folder, site, PAGES)


def _none(folder: ExitFolder) -> bool:
    """Whether no exit can be used: each is out or cools down."""
    return all(state.cooling or state.out_until for state in folder.exits_now())
