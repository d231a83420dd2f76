"""One of two machines dies or stands still for too long: the other does its work."""

from __future__ import annotations

import signal
from math import inf
from pathlib import Path

import pytest

from support.processes import seeded_random
from support.redis_chaos import assert_adds_up
from support.scrapy_projects import assert_in_order, counted
from support.scrapy_scenes import scene
from support.until import until_now

LISTS = [f"/list/{number}" for number in range(10, 40)]
ITEMS = {f"S{number}" for number in range(100, 400)}
LEASE_S = 3.0
HELD = "/item/1"


@pytest.mark.rare
def test_the_survivor_finishes_the_crawl(tmp_path: Path) -> None:
    random = seeded_random("one of two Scrapy processes")
    with scene(tmp_path, LISTS, settings={"SHOAL_LEASE_S": LEASE_S}) as (site, _, project):
        other = project.copy(tmp_path / "other")
        site.held.update(LISTS[5:])
        site.allowed = moment = random.randrange(50, 200)
        with project.crawling("things") as one, other.crawling("things") as two:
            until_now("the first page", lambda: site.hits)
            until_now("both machines", lambda: len(project.queue.workers("things")) == 2)
            site.held.clear()
            until_now(f"request {moment}", lambda: len(site.hits) >= moment)
            victim, survivor = random.sample([one, two], 2)
            victim.kill_all()
            site.allowed = inf
            ended = survivor.wait()
        stats = project.queue.stats("things")
    assert_in_order(ended)
    found = counted(project.items() + other.items(), "sku")
    assert found.keys() == ITEMS
    assert found.total() - len(ITEMS) <= stats.lost
    assert_adds_up(stats)
    assert (stats.state, stats.done) == ("finished", 1 + len(LISTS) + len(ITEMS))


@pytest.mark.rare
def test_who_stood_still_for_too_long_changes_nothing(tmp_path: Path) -> None:
    """One process is stopped while it waits for a page, and the other reads that. Then the first
    goes on, reads it too, and learns that it has lost the lease."""
    with scene(tmp_path, [HELD], settings={"SHOAL_LEASE_S": 1.0}) as (site, _, project):
        other = project.copy(tmp_path / "other")
        site.held.add(HELD)
        with project.crawling("things") as slow:
            until_now("the request", lambda: HELD in site.paths)
            slow.send(signal.SIGSTOP)
            with other.crawling("things") as fast:
                until_now("the other's request", lambda: site.fetches()[HELD] == 2)
                site.held.clear()
                assert_in_order(fast.wait())
            done = project.queue.stats("things")
            slow.send(signal.SIGCONT)
            assert_in_order(slow.wait())
        stats = project.queue.stats("things")
    assert other.items()
    assert (stats.state, stats.done, stats.lost) == ("finished", 2, 1)
    assert (stats.done, stats.items, stats.added) == (done.done, done.items, done.added)
