"""A master is killed in the middle of a crawl, and a replica takes over.

Replication is asynchronous, so work that the replica had not received is repeated. Pages may be
fetched twice, but nothing is lost or stored twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.crashes import has_crashed
from support.links import GatedSite, put_spider
from support.processes import Folder, seeded_random
from support.redis_chaos import BACK, WAITING, assert_links_are_complete
from support.redis_groups import RedisCluster, RedisSentinel
from support.redis_servers import RedisServer
from support.sites import serving
from support.until import until_now

pytestmark = pytest.mark.rare

HOSTS, PAGES = 4, 40
WORKERS = 3
CRAWL = ("crawl", "links.py", "--workers", str(WORKERS))


@pytest.fixture
def sites() -> Iterator[list[GatedSite]]:
    with ExitStack() as stack:
        sites = [stack.enter_context(serving(GatedSite(PAGES))) for _ in range(HOSTS)]
        yield sites
        open_all(sites)


def open_all(sites: Sequence[GatedSite]) -> None:
    for site in sites:
        site.allowed = 10**9


def crawl_while_one_is_killed(
    folder: Folder, sites: Sequence[GatedSite], moment: int, master: RedisServer
) -> None:
    put_spider(folder, sites, rate="none", lease_s=10.0)
    for site in sites:
        site.allowed = moment
    with folder.running(*CRAWL) as crawl:
        until_now("requests under way", lambda: all(len(site.hits) > moment for site in sites))
        master.kill()
        open_all(sites)
        ended = crawl.wait()
    assert ended.code == 0, ended
    assert not has_crashed(ended.err), ended.err
    assert 0 < ended.err.count(WAITING) == ended.err.count(BACK), ended.err
    assert_links_are_complete(folder, sites, PAGES)


def test_sentinels_promote_the_replica(tmp_path: Path, sites: list[GatedSite]) -> None:
    random = seeded_random("kill of the master")
    with RedisSentinel(tmp_path / "redis") as redis:
        folder = Folder(tmp_path, {"SHOAL_FRONTIER": redis.url})
        lost = redis.master()
        crawl_while_one_is_killed(folder, sites, random.randrange(1, PAGES), lost)
        assert redis.master() is not lost


@pytest.mark.rare
def test_one_of_a_clusters_masters(tmp_path: Path, sites: list[GatedSite]) -> None:
    random = seeded_random("kill of a master of three")
    with RedisCluster(tmp_path / "redis", replicas=1) as redis:
        folder = Folder(tmp_path, {"SHOAL_FRONTIER": redis.url})
        lost = random.choice(redis.masters())
        crawl_while_one_is_killed(folder, sites, random.randrange(1, PAGES), lost)
        assert lost not in redis.masters()
        assert len(redis.masters()) == 3
