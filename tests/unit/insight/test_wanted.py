"""How many workers crawls should have, for those who ask over and over: on a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from shoal.config import Rules
from shoal.coordinator.runs import RUNS, Run
from shoal.core.task import Task
from shoal.frontier import frontier_at
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.values import Control
from shoal.insight.advise.look import look_at
from shoal.insight.advise.scaling import DOWN_AFTER_S, ZERO_AFTER_S
from shoal.insight.advise.wanted import CRAWLS_KEPT, FRESH_S, WantedWorkers
from shoal.insight.exposition import scrape
from support.frontiers import Client, entry
from support.samples import worker


class Clock:
    def __init__(self) -> None:
        self.now = 500.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def frontier(tmp_path: Path) -> AsyncIterator[Frontier]:
    async with frontier_at(f"sqlite:///{tmp_path}/shoal.db") as frontier:
        yield frontier


async def begin(frontier: Frontier, name: str = "shop") -> None:
    rules = Rules()
    await frontier.start(name, rules)
    entry = Admission(rules).admitted_as(Task(url="http://shop.example/"))
    await frontier.add(name, [entry])


async def test_work_and_no_worker(frontier: Frontier) -> None:
    await begin(frontier)
    decided = await WantedWorkers(frontier).of("shop")
    assert decided.workers == 1
    assert decided.why == "there is work, and no worker has done anything lately"


async def test_hosts_without_work_are_none_that_might_have_some(frontier: Frontier) -> None:
    """However many there are: those with the most work come first."""
    client = Client(frontier, "m:1", "shop")
    await client.start(*(entry(f"{number}.example/") for number in range(9)))
    for lease in await client.lease(8):
        await client.end(lease)
    found = await look_at(frontier, "shop", 500.0, 5)
    assert (len(found.hosts), found.are_all_hosts) == (1, True)
    await client.add(*(entry(f"more-{number}.example/") for number in range(5)))
    found = await look_at(frontier, "shop", 500.0, 5)
    assert (len(found.hosts), found.are_all_hosts) == (5, False)


async def test_of_a_crawl_that_nobody_has_started_none_is_wanted(frontier: Frontier) -> None:
    decided = await WantedWorkers(frontier).of("shop")
    assert (decided.workers, decided.why) == (0, "nobody has started the crawl")


async def test_a_schedule_is_its_run_under_way(frontier: Frontier) -> None:
    for night in ("shop@2026-11-15T03:00", "shop@2026-11-16T03:00"):
        run = Run(crawl=night, schedule="shop", due_at=1.0, fired_at=1.0)
        await frontier.notes.write(RUNS, night, msgspec.json.encode(run))
    await begin(frontier, "shop@2026-11-16T03:00")
    wanted = WantedWorkers(frontier)
    assert (await wanted.of("shop")).workers == 1
    assert (await wanted.of("shop@2026-11-15T03:00")).workers == 0


async def test_when_it_is_over_workers_go_one_by_one(frontier: Frontier) -> None:
    await begin(frontier)
    await frontier.beat("shop", worker("one:1"))
    await frontier.beat("shop", worker("two:2"))
    clock = Clock()
    wanted = WantedWorkers(frontier, clock)
    await frontier.control("shop", Control.CANCEL)
    assert (await wanted.of("shop")).workers == 2
    for _ in range(int(DOWN_AFTER_S / FRESH_S) + 2):
        clock.now += FRESH_S
        one = await wanted.of("shop")
    assert one.workers == 1
    for _ in range(int(ZERO_AFTER_S / FRESH_S)):
        clock.now += FRESH_S
        none = await wanted.of("shop")
    assert (none.workers, none.why) == (0, "the crawl is cancelled")


async def test_a_process_that_takes_over_lets_go_of_nobody(frontier: Frontier) -> None:
    await begin(frontier)
    for name in ("one:1", "two:2"):
        await frontier.beat("shop", worker(name))
    await frontier.control("shop", Control.CANCEL)
    assert (await WantedWorkers(frontier).of("shop")).workers == 2


async def test_it_is_looked_at_every_few_seconds_however_often_somebody_asks(
    frontier: Frontier,
) -> None:
    clock = Clock()
    wanted = WantedWorkers(frontier, clock)
    assert (await wanted.of("shop")).workers == 0
    await begin(frontier)
    assert (await wanted.of("shop")).workers == 0
    clock.now += FRESH_S
    assert (await wanted.of("shop")).workers == 1


async def test_names_that_nobody_knows_fill_no_memory(frontier: Frontier) -> None:
    wanted = WantedWorkers(frontier)
    for number in range(CRAWLS_KEPT + 10):
        await wanted.of(f"shop-{number}")
    assert len(wanted._scalers) == CRAWLS_KEPT


async def test_prometheus_is_told_the_same(frontier: Frontier) -> None:
    await begin(frontier)
    body, _ = await scrape(frontier, 1_800_000_000.0, wanted=WantedWorkers(frontier))
    assert b'shoal_workers_wanted{crawl="shop",schedule=""} 1.0' in body
    body, _ = await scrape(frontier, 1_800_000_000.0)
    assert b"shoal_workers_wanted" not in body
