"""Many workers on one site, some of which are killed, stop, or join later: the site never gets more
requests at once than allowed, and every page is read once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.config import Rules
from support.crowds import CrowdedSite, crowd, wait_for_request
from support.links import put_spider
from support.processes import Folder, seeded_random
from support.redis_chaos import (
    DURABLE,
    all_hits,
    assert_links_are_complete,
    assert_rate_holds,
)
from support.redis_groups import RedisCluster
from support.redis_servers import RedisServer
from support.sites import serving
from support.tcp_proxy import TcpProxy
from support.until import until_now

WORKERS = 8
STARTERS = 4
LEASE_S = 2.0
ROOM = Rules().concurrency_per_host
PER_SECOND = 20


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis", *DURABLE) as server:
        yield server


def assert_is_shared(
    path: Path, frontier: str, *, room: int = ROOM, pages: int, harms: int
) -> None:
    """Let eight workers crawl a site, harm some of them at random moments, and check the site."""
    chance = seeded_random("harms to workers that share a site")
    with serving(CrowdedSite(pages, chance)) as site:
        folder = folder_for(path, site, frontier, concurrency_per_host=room)
        with crowd(folder, starters=STARTERS, others=WORKERS - STARTERS) as workers:
            for moment in sorted(chance.sample(range(1, pages), harms)):
                wait_for_request(site, moment)
                workers.harm(chance)
            workers.wait()
        assert site.most == room
        assert_links_are_complete(folder, [site], pages)


def folder_for(path: Path, site: CrowdedSite, frontier: str, **settings: object) -> Folder:
    folder = Folder(path, {"SHOAL_FRONTIER": frontier} if frontier else {})
    put_spider(folder, [site], **{"rate": "none", "lease_s": LEASE_S, **settings})
    return folder


def test_on_sqlite(tmp_path: Path) -> None:
    assert_is_shared(tmp_path, "", pages=500, harms=4)


@pytest.mark.rare
def test_on_sqlite_for_long(tmp_path: Path) -> None:
    assert_is_shared(tmp_path, "", pages=4_000, harms=24)


@pytest.mark.rare
def test_on_redis(tmp_path: Path, server: RedisServer) -> None:
    assert_is_shared(tmp_path, server.url, pages=500, harms=4)


@pytest.mark.rare
def test_on_redis_for_long(tmp_path: Path, server: RedisServer) -> None:
    assert_is_shared(tmp_path, server.url, pages=4_000, harms=24)


@pytest.mark.rare
def test_on_a_cluster(tmp_path: Path, redis_cluster: RedisCluster) -> None:
    assert_is_shared(tmp_path, redis_cluster.url, pages=2_000, harms=12)


@pytest.mark.rare
@pytest.mark.parametrize(("room", "pages"), [(1, 120), (3, 360)])
@pytest.mark.parametrize("is_redis", [False, True], ids=["sqlite", "redis"])
def test_with_less_room_than_workers(
    tmp_path: Path, server: RedisServer, room: int, pages: int, is_redis: bool
) -> None:
    frontier = server.url if is_redis else ""
    assert_is_shared(tmp_path, frontier, room=room, pages=pages, harms=4)


@pytest.mark.rare
@pytest.mark.alone
@pytest.mark.parametrize("is_redis", [False, True], ids=["sqlite", "redis"])
def test_a_rate_is_a_rate(tmp_path: Path, server: RedisServer, is_redis: bool) -> None:
    chance = seeded_random("harms to workers that keep a rate")
    pages = 200
    with serving(CrowdedSite(pages, chance)) as site:
        frontier = server.url if is_redis else ""
        folder = folder_for(tmp_path, site, frontier, rate=f"{PER_SECOND}/s")
        with crowd(folder, starters=STARTERS, others=WORKERS - STARTERS) as workers:
            for moment in sorted(chance.sample(range(1, pages), 4)):
                wait_for_request(site, moment)
                workers.harm(chance)
            workers.wait()
        assert site.most <= ROOM
        assert_rate_holds(all_hits(site), PER_SECOND)
        assert_links_are_complete(folder, [site], pages)


@pytest.mark.rare
def test_redis_is_killed_and_comes_back(tmp_path: Path, server: RedisServer) -> None:
    chance = seeded_random("the ends of a server")
    pages = 1_500
    with serving(CrowdedSite(pages, chance)) as site:
        folder = folder_for(tmp_path, site, server.url)
        with crowd(folder, starters=STARTERS, others=WORKERS - STARTERS) as workers:
            for moment in sorted(chance.sample(range(1, pages), 3)):
                wait_for_request(site, moment)
                workers.harm(chance)
                server.kill()
                server.start()
            workers.wait()
        assert site.most == ROOM
        assert_links_are_complete(folder, [site], pages)


@pytest.mark.rare
@pytest.mark.parametrize("harm", ["cut", "freeze"])
def test_one_worker_loses_its_network(tmp_path: Path, server: RedisServer, harm: str) -> None:
    """After a while its share goes to the others. Then it comes back."""
    chance = seeded_random("the moment")
    pages = 2_000
    with serving(CrowdedSite(pages, chance)) as site, TcpProxy(server.port) as network:
        folder = folder_for(tmp_path, site, server.url)
        with crowd(folder, starters=STARTERS, others=2) as workers:
            away = {"SHOAL_FRONTIER": f"redis://127.0.0.1:{network.port}/0"}
            name = workers.join(away)
            moment = chance.randrange(100, 400)
            wait_for_request(site, moment)
            until_now("its visits", lambda: site.visits[name] > 0)
            getattr(network, harm)()
            wait_for_request(site, len(site.hits) + 600)
            network.heal()
            workers.wait()
        assert site.most == ROOM
        assert_links_are_complete(folder, [site], pages)
