"""The intervals of requests through exits, measured at the target: per host, per exit, and per pair
of both; with several workers, and two independent crawls."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.banning_site import BanningSite, assert_only_by
from support.exit_crawls import ExitFolder, bound, source_of
from support.rarely import first_then_rare
from support.redis_chaos import assert_rate_holds
from support.redis_servers import RedisServer
from support.sites import serving

pytestmark = pytest.mark.alone

PAGES = 20
PER_HOST, PER_EXIT, PER_PAIR = 12, 5, 3
AT_ONCE = 2
AGENTS = {"links": "crawl-one", "others": "crawl-two"}


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def folder(request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer) -> ExitFolder:
    return ExitFolder(tmp_path, redis_server.url if request.param == "redis" else "")


def test_no_window_is_too_full(folder: ExitFolder) -> None:
    exits = bound(4)
    with serving(BanningSite(PAGES, hosts=2)) as site:
        site.takes_s = 0.2
        folder.put_pool(
            "dc",
            exits,
            rate=f"{PER_EXIT}/s",
            rate_per_host=f"{PER_PAIR}/s",
            concurrency=AT_ONCE,
        )
        for name, agent in AGENTS.items():
            folder.put_spider(site.urls, name=name, rate=f"{PER_HOST}/s", user_agent=agent)
        command = ("--workers", "2")
        with (
            folder.running("crawl", "links.py", *command) as one,
            folder.running("crawl", "others.py", *command) as two,
        ):
            assert one.wait().code == two.wait().code == 0
        log = site.log
    assert_only_by(site, [source_of(at) for at in exits])
    assert len(log) == 2 * 2 * (PAGES + 2)
    for exit_ in exits:
        source = source_of(exit_)
        assert_rate_holds(site.arrivals(source), PER_EXIT)
        assert site.most_at_once(source) <= AT_ONCE
        for host in site.hosts:
            assert_rate_holds(site.arrivals(source, host), PER_PAIR)
    for host in site.hosts:
        for agent in AGENTS.values():
            seen = [at for at in site.arrivals(host=host) if agent in at.headers]
            assert_rate_holds(seen, PER_HOST)
