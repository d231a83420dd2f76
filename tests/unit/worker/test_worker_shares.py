"""A worker on a frontier that shares a host: it keeps to its share, and leaves it in the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import cast

import pytest

from shoal.config import Rules
from shoal.core.task import Task
from shoal.errors import StorageBusy, StorageFailed
from shoal.frontier.port import Frontier
from shoal.frontier.values import (
    Ask,
    CrawlState,
    Entry,
    Grant,
    Holding,
    Lease,
    Outcome,
    Pulse,
    Stats,
    Verdict,
)
from shoal.worker.assignment import Assignment, Stores
from shoal.worker.leasing import SEND_PART
from shoal.worker.report import Report, give_back
from shoal.worker.worker import Visits, Worker
from support.until import in_time, until

SITE = "shop.example"
SLOTS = 8
LEASE_S = 0.03
"""Renewed every hundredth of a second."""


class SharingFrontier:
    """One host with any number of tasks, of which the worker has a share."""

    def __init__(self, share: int) -> None:
        self.share = share
        self.epoch = 1
        self.state = CrawlState.RUNNING
        self.held: dict[str, Lease] = {}
        self.ended: dict[str, Outcome] = {}
        self.lost: set[str] = set()
        self.asks: list[Ask] = []
        self.is_broken = False
        self.is_away = False
        self.decided = 0.0
        self._names = count()

    async def lease(self, crawl: str, ask: Ask) -> Grant:
        if self.is_away:
            raise StorageBusy("no route to host")
        self.asks.append(ask)
        self.decided = time.monotonic()
        leases = [self._lease() for _ in range(min(ask.room, self.share * 8))]
        named = {*ask.holdings, *(lease.task.site for lease in leases)}
        shares = dict.fromkeys(named, self.share if ask.room or ask.holdings[SITE].unsent else 0)
        return Grant(
            self.state, leases, shares, epoch=self.epoch, wait_s=0.01, decided=self.decided
        )

    async def exchange(
        self, crawl: str, outcomes: Sequence[Outcome], ask: Ask
    ) -> tuple[list[Lease], Grant]:
        grant = await self.lease(crawl, ask)
        return await self.finish(crawl, outcomes), grant

    async def finish(self, crawl: str, outcomes: Sequence[Outcome]) -> list[Lease]:
        for outcome in outcomes:
            del self.held[outcome.lease.token]
            self.ended[outcome.lease.token] = outcome
        return [outcome.lease for outcome in outcomes if outcome.lease.token in self.lost]

    async def renew(self, crawl: str, leases: Sequence[Lease]) -> list[Lease]:
        if self.is_broken:
            raise StorageFailed("no space left")
        return [lease for lease in leases if lease.token in self.lost]

    async def stats(self, crawl: str) -> Stats:
        rules = Rules(lease_s=LEASE_S)
        return Stats(crawl=crawl, state=self.state, rules=rules, created_at=0.0)

    async def beat(self, crawl: str, pulse: Pulse) -> bool:
        return False

    def _lease(self) -> Lease:
        name = f"{next(self._names)}"
        task = Task(url=f"http://{SITE}/{name}", site=SITE)
        lease = self.held[name] = Lease(name.encode(), name, task, shared=True)
        return lease


class Pages:
    """Visits whose requests are answered, and which are over, when a test says so."""

    def __init__(self) -> None:
        self.answer = asyncio.Event()
        self.end = asyncio.Event()
        self.at_host: set[str] = set()
        self.most = 0
        self.permissions: list[float] = []
        self.started_over = 0

    def begin(self, rules: Rules) -> None: ...

    async def visit(self, lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
        self.permissions.append(send_by)
        if time.monotonic() > send_by:
            return give_back(lease, sent=False)
        self.at_host.add(lease.token)
        self.most = max(self.most, len(self.at_host))
        try:
            await in_time("an answer", self.answer.wait())
        finally:
            self.at_host.remove(lease.token)
        answered()
        await in_time("the end", self.end.wait())
        return Report(Outcome(lease=lease, verdict=Verdict.DONE))

    def confirm(self, follow_ups: Sequence[Entry]) -> None: ...

    def start_over(self) -> None:
        self.started_over += 1

    async def close(self) -> None: ...


def start(frontier: SharingFrontier, pages: Pages) -> tuple[Worker, asyncio.Task[None]]:
    stores = Stores(cast(Frontier, frontier), None)
    worker = Worker(Assignment("w", "crawl", stores, SLOTS), cast(Visits, pages))
    return worker, asyncio.create_task(worker.run())


async def stop(frontier: SharingFrontier, worker: Worker, running: asyncio.Task[None]) -> None:
    """Nothing is left in its hands, and the frontier has heard so."""
    worker.drain()
    await in_time("the worker's end", running)
    assert frontier.held == {}
    assert frontier.asks[-1] == Ask("w", 0, {SITE: Holding(0, 0)})


async def test_no_more_is_in_flight_than_its_share() -> None:
    frontier, pages = SharingFrontier(3), Pages()
    worker, running = start(frontier, pages)
    await until("its share in flight", lambda: len(pages.at_host) == 3)
    pages.answer.set()
    pages.end.set()
    await until("many pages", lambda: len(frontier.ended) > 100)
    assert pages.most == 3
    await stop(frontier, worker, running)


async def test_pages_that_are_read_take_nothing_of_the_host() -> None:
    frontier, pages = SharingFrontier(3), Pages()
    worker, running = start(frontier, pages)
    await until("its share in flight", lambda: len(pages.at_host) == 3)
    pages.answer.set()
    await until("a page in each slot", lambda: worker._leasing.in_flight == SLOTS)
    assert not frontier.ended
    pages.end.set()
    await stop(frontier, worker, running)


async def test_told_to_stop_it_gives_back_what_it_has_not_sent() -> None:
    frontier, pages = SharingFrontier(3), Pages()
    worker, running = start(frontier, pages)
    await until("its share in flight", lambda: len(pages.at_host) == 3)
    assert len(frontier.held) > 3
    under_way = {*pages.at_host}
    worker.drain()
    pages.answer.set()
    pages.end.set()
    await stop(frontier, worker, running)
    done = {token for token, end in frontier.ended.items() if end.verdict is Verdict.DONE}
    assert done == under_way
    assert not any(end.sent for token, end in frontier.ended.items() if token not in done)


async def test_without_a_share_all_goes_back_and_it_asks_on() -> None:
    frontier, pages = SharingFrontier(2), Pages()
    worker, running = start(frontier, pages)
    await until("its share in flight", lambda: len(pages.at_host) == 2)
    frontier.share = 0
    await until("the rest given back", lambda: len(frontier.held) == 2)
    pages.answer.set()
    pages.end.set()
    await until("the end of these", lambda: not frontier.held)
    assert pages.most == 2
    frontier.share = 2
    await until("others", lambda: len(frontier.ended) > 100)
    await stop(frontier, worker, running)


async def test_a_lease_that_is_lost_is_not_in_flight_any_more() -> None:
    frontier, pages = SharingFrontier(2), Pages()
    worker, running = start(frontier, pages)
    await until("its share in flight", lambda: len(pages.at_host) == 2)
    lost = frontier.lost = {*pages.at_host}
    await until("others in their place", lambda: len(pages.at_host - lost) == 2)
    assert pages.most == 2
    pages.answer.set()
    pages.end.set()
    await stop(frontier, worker, running)


async def test_while_the_frontier_is_away_nothing_is_sent_that_may_be_others_by_now() -> None:
    frontier, pages = SharingFrontier(2), Pages()
    worker, running = start(frontier, pages)
    await until("its share in flight", lambda: len(pages.at_host) == 2)
    frontier.is_away = True
    pages.answer.set()
    pages.end.set()
    await until("all that it held to be over", lambda: worker._leasing.is_short)
    await until("the last visits", lambda: not worker._leasing.in_flight)
    assert max(pages.permissions) <= frontier.decided + LEASE_S * SEND_PART
    frontier.is_away = False
    done = len(frontier.ended)
    await until("many pages", lambda: len(frontier.ended) > done + 100)
    assert pages.most == 2
    await stop(frontier, worker, running)


async def test_when_the_crawl_is_started_over_old_leases_are_not_sent() -> None:
    frontier, pages = SharingFrontier(2), Pages()
    worker, running = start(frontier, pages)
    await until("its share in flight", lambda: len(pages.at_host) == 2)
    unsent = frontier.held.keys() - pages.at_host
    frontier.epoch = 2
    await until("another crawl", lambda: pages.started_over == 2)
    pages.answer.set()
    pages.end.set()
    await until("many pages", lambda: len(frontier.ended) > 100)
    assert {frontier.ended[token].verdict for token in unsent} == {Verdict.RETURNED}
    await stop(frontier, worker, running)


async def test_a_worker_whose_store_has_failed_leaves_its_shares() -> None:
    frontier, pages = SharingFrontier(2), Pages()
    _, running = start(frontier, pages)
    await until("its share in flight", lambda: len(pages.at_host) == 2)
    frontier.is_broken = True
    with pytest.raises(StorageFailed):
        await in_time("the worker's end", running)
    assert frontier.held == {}
    assert frontier.asks[-1] == Ask("w", 0, {SITE: Holding(0, 0)})


async def test_when_the_crawl_is_over_it_leaves_its_shares() -> None:
    frontier, pages = SharingFrontier(2), Pages()
    _, running = start(frontier, pages)
    await until("its share in flight", lambda: len(pages.at_host) == 2)
    frontier.state = CrawlState.FINISHED
    pages.answer.set()
    pages.end.set()
    await in_time("the worker's end", running)
    assert frontier.asks[-1] == Ask("w", 0, {SITE: Holding(0, 0)})
