"""How workers divide a site among themselves, and what happens to the share of one that leaves."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.config import Rules
from support.crowds import EVEN_S, STARTERS, Crowd, CrowdedSite, crowd
from support.links import put_spider
from support.processes import Folder
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.sites import serving
from support.until import until_now

PAGES = 20_000
"""Far more than are crawled, so that all workers are busy when a test ends."""
ROOM = Rules().concurrency_per_host
FOR_EVER_S = 3600.0
EACH = 150
"""The average number of pages per worker over which the division is measured."""

pytestmark = pytest.mark.alone


@pytest.fixture
def site() -> Iterator[CrowdedSite]:
    with serving(CrowdedSite(PAGES, takes_s=EVEN_S)) as site:
        yield site


@pytest.fixture(params=first_then_rare("redis", "sqlite"))
def folder(request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer) -> Folder:
    on_redis = {"SHOAL_FRONTIER": redis_server.url}
    return Folder(tmp_path, on_redis if request.param == "redis" else {})


def begin(folder: Folder, site: CrowdedSite, lease_s: float = FOR_EVER_S) -> None:
    put_spider(folder, [site], rate="none", lease_s=lease_s)


def wait_until_all_have_theirs(site: CrowdedSite, workers: Crowd) -> None:
    """Wait until each worker has at least an even share in flight."""
    names = [STARTERS, *workers.others]
    until_now(
        "an even share of each",
        lambda: all(site.in_flight[name] >= ROOM // len(names) for name in names),
    )


def wait_for_a_turn_of_each(site: CrowdedSite, names: set[str], turn: int) -> None:
    before = site.visits.copy()
    until_now(f"turn {turn} of all", lambda: (site.visits - before).keys() == names)


@pytest.mark.parametrize("count", first_then_rare(4, 2, 8))
def test_all_do_as_much(folder: Folder, site: CrowdedSite, count: int) -> None:
    begin(folder, site)
    with crowd(folder, starters=1, others=count - 1) as workers:
        wait_until_all_have_theirs(site, workers)
        done = site.visits_of_next(EACH * count)
    assert len(done) == count
    assert min(done.values()) > 0.8 * EACH, done
    assert max(done.values()) < 1.2 * EACH, done
    assert site.most == ROOM


@pytest.mark.rare
def test_with_less_room_than_workers_they_take_turns(folder: Folder, site: CrowdedSite) -> None:
    put_spider(folder, [site], rate="none", concurrency_per_host=1)
    with crowd(folder, starters=1, others=3) as workers:
        names = {STARTERS, *workers.others}
        for turn in range(2):
            wait_for_a_turn_of_each(site, names, turn)
    assert site.most == 1


@pytest.mark.rare
def test_one_that_joins_has_its_share_soon(folder: Folder, site: CrowdedSite) -> None:
    begin(folder, site)
    with crowd(folder, starters=1) as workers:
        until_now("all for one", lambda: site.in_flight[STARTERS] == ROOM)
        workers.join()
        wait_until_all_have_theirs(site, workers)
    assert site.most == ROOM


@pytest.mark.rare
def test_one_that_leaves_hands_its_share_on_at_once(folder: Folder, site: CrowdedSite) -> None:
    """The others do not wait for its leases to expire, which they never do here."""
    begin(folder, site)
    with crowd(folder, starters=1, others=1) as workers:
        wait_until_all_have_theirs(site, workers)
        (leaver,) = workers.others.values()
        leaver.send(signal.SIGTERM)
        assert leaver.wait().code == 0
        until_now("all for the other", lambda: site.in_flight[STARTERS] == ROOM)
    assert site.most == ROOM


@pytest.mark.rare
def test_what_one_had_that_was_killed_is_others_after_its_lease(
    folder: Folder, site: CrowdedSite
) -> None:
    begin(folder, site, lease_s=1.0)
    with crowd(folder, starters=1, others=1) as workers:
        wait_until_all_have_theirs(site, workers)
        (victim,) = workers.others.values()
        victim.kill_all()
        until_now("all for the other", lambda: site.in_flight[STARTERS] == ROOM)
    assert site.most == ROOM


@pytest.mark.rare
def test_what_one_had_that_was_killed_is_nobodys_before(folder: Folder, site: CrowdedSite) -> None:
    begin(folder, site)
    with crowd(folder, starters=1, others=1) as workers:
        wait_until_all_have_theirs(site, workers)
        site.visits_of_next(2 * ROOM)
        (victim,) = workers.others.values()
        victim.kill_all()
        until_now("the end of its requests", lambda: site.in_flight.total() <= ROOM // 2)
        since = len(site.changes)
        site.visits_of_next(20 * ROOM)
        assert site.most_since(since) == ROOM // 2
