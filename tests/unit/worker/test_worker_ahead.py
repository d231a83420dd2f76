"""Leases that a quick worker takes ahead of its visits: they wait for a slot, and none is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import cast

import pytest

from shoal.config import Rules
from shoal.core.task import Task
from shoal.errors import StorageFailed
from shoal.frontier.port import Frontier
from shoal.frontier.values import (
    Ask,
    CrawlState,
    Entry,
    Grant,
    Lease,
    Outcome,
    Pulse,
    Stats,
    Verdict,
)
from shoal.worker import leasing
from shoal.worker.assignment import Assignment, Stores
from shoal.worker.leasing import AHEAD_PER_SLOT
from shoal.worker.report import Report
from shoal.worker.worker import Visits, Worker
from support.until import in_time, until

SLOTS = 4
AHEAD = SLOTS * AHEAD_PER_SLOT


class Plenty:
    """A frontier that grants what is asked for, until it is told that this is all."""

    def __init__(self, *, paced: bool = False, crowded: bool = False) -> None:
        self.paced = paced
        self.crowded = crowded
        self.asked: list[int] = []
        self.held: set[str] = set()
        self.ended: dict[str, Outcome] = {}
        self.lost: set[str] = set()
        self.loses = 0
        """So many leases are lost as soon as they are granted."""
        self.lease_s = 0.03  # Renewed every hundredth of a second.
        self.is_dry = False
        self.is_broken = False
        self._names = count()

    async def lease(self, crawl: str, ask: Ask) -> Grant:
        self.asked.append(ask.room)
        return self._granted(ask.room)

    async def exchange(
        self, crawl: str, outcomes: Sequence[Outcome], ask: Ask
    ) -> tuple[list[Lease], Grant]:
        self.asked.append(ask.room)
        return await self.finish(crawl, outcomes), self._granted(ask.room)

    async def finish(self, crawl: str, outcomes: Sequence[Outcome]) -> list[Lease]:
        for outcome in outcomes:
            self.held.remove(outcome.lease.token)
            self.ended[outcome.lease.token] = outcome
        return [outcome.lease for outcome in outcomes if outcome.lease.token in self.lost]

    async def renew(self, crawl: str, leases: Sequence[Lease]) -> list[Lease]:
        if self.is_broken:
            raise StorageFailed("no space left")
        return [lease for lease in leases if lease.token in self.lost]

    async def stats(self, crawl: str) -> Stats:
        rules = Rules(lease_s=self.lease_s)
        return Stats(crawl=crawl, state=CrawlState.RUNNING, rules=rules, created_at=0.0)

    async def beat(self, crawl: str, pulse: Pulse) -> bool:
        return False

    def _granted(self, limit: int) -> Grant:
        names = [f"{next(self._names)}" for _ in range(0 if self.is_dry else limit)]
        self.held.update(names)
        self.lost.update(names[: max(self.loses - len(self.lost), 0)])
        tasks = [Task(url=f"http://shop.example/{name}", site="shop.example") for name in names]
        leases = [
            Lease(name.encode(), name, task, paced=self.paced, crowded=self.crowded)
            for name, task in zip(names, tasks, strict=True)
        ]
        return Grant(CrawlState.RUNNING, leases, decided=time.monotonic())


class Pages:
    """Visits that end when the gate is open; it says how many were under way at once."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.visited: list[str] = []
        self.under_way: set[str] = set()
        self.most = 0

    def let_go(self) -> None:
        """End the visits that are under way; those that come after them are not let go."""
        self.open.set()
        self.open.clear()

    def begin(self, rules: Rules) -> None: ...

    async def visit(self, lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
        self.visited.append(lease.token)
        self.under_way.add(lease.token)
        self.most = max(self.most, len(self.under_way))
        try:
            await in_time("the test to open the gate", self.open.wait())
        finally:
            self.under_way.remove(lease.token)
        return Report(Outcome(lease=lease, verdict=Verdict.DONE))

    def confirm(self, follow_ups: Sequence[Entry]) -> None: ...

    def start_over(self) -> None: ...

    async def close(self) -> None: ...


def worker_on(frontier: Plenty, pages: Pages) -> Worker:
    stores = Stores(cast(Frontier, frontier), None)
    return Worker(Assignment("w", "crawl", stores, SLOTS), cast(Visits, pages))


@asynccontextmanager
async def at_work(frontier: Plenty, pages: Pages) -> AsyncIterator[Worker]:
    """A worker that is told to stop at the end, and does."""
    worker = worker_on(frontier, pages)
    running = asyncio.create_task(worker.run())
    yield worker
    worker.drain()
    pages.open.set()
    await in_time("the worker's end", running)
    assert frontier.held == set()


async def until_ahead(frontier: Plenty, pages: Pages) -> None:
    """Until all slots are taken by pages that do not end, and there are leases beside them.

    What a worker takes ahead depends on the batch that ended last. Its pages end together here, so
    that they are one batch on any machine.
    """
    await until("all slots to be taken", lambda: len(pages.under_way) == SLOTS)
    pages.let_go()
    await until(
        "leases beside the visits",
        lambda: (len(pages.under_way), len(frontier.held)) == (SLOTS, SLOTS + AHEAD),
    )


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each page took no time at all, however slow this machine is."""
    monkeypatch.setattr(leasing, "AHEAD_S", 1_000.0)
    monkeypatch.setattr(leasing, "STUCK_S", 1_000.0)


async def test_leases_wait_for_a_slot() -> None:
    frontier, pages = Plenty(), Pages()
    async with at_work(frontier, pages):
        await until_ahead(frontier, pages)
        visited = len(pages.visited)
        frontier.is_dry = True
        pages.open.set()
        await until("the end of all", lambda: not frontier.held)
        assert len(pages.visited) == visited + AHEAD
        assert pages.most == SLOTS


async def test_what_waits_is_given_back_when_told_to_stop() -> None:
    frontier, pages = Plenty(), Pages()
    async with at_work(frontier, pages):
        await until_ahead(frontier, pages)
        under_way = set(pages.under_way)
        waiting = frontier.held - under_way
    ends = {token: (end.verdict, end.sent) for token, end in frontier.ended.items()}
    assert {ends[token] for token in under_way} == {(Verdict.DONE, True)}
    assert {ends[token] for token in waiting} == {(Verdict.RETURNED, False)}


async def test_what_was_lost_while_it_waited_is_not_visited() -> None:
    frontier, pages = Plenty(), Pages()
    async with at_work(frontier, pages):
        await until_ahead(frontier, pages)
        waiting = frontier.held - pages.under_way
        frontier.is_dry = True
        frontier.lost = {min(waiting)}
        # All of them: those that are ours are leased again.
        await until("all to be given back", lambda: not waiting & frontier.held)
        assert not waiting & set(pages.visited)


async def test_a_visit_that_is_lost_before_it_has_begun_frees_its_slot() -> None:
    frontier, pages = Plenty(), Pages()
    frontier.lease_s = 0.0  # Renewed whenever the event loop comes round.
    frontier.loses = SLOTS * 20
    async with at_work(frontier, pages):
        await until("so many losses", lambda: len(frontier.lost) >= frontier.loses)
        await until("their ends", lambda: frontier.lost <= frontier.ended.keys())
        assert len(frontier.lost - set(pages.visited)) >= SLOTS


async def test_what_waits_long_is_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    frontier, pages = Plenty(), Pages()
    async with at_work(frontier, pages):
        await until_ahead(frontier, pages)
        waiting = frontier.held - pages.under_way
        monkeypatch.setattr(leasing, "STUCK_S", 0.0)
        await until("all to be given back", lambda: not waiting & frontier.held)
        assert frontier.held == pages.under_way  # And nothing new instead of it.
        assert {frontier.ended[token].verdict for token in waiting} == {Verdict.RETURNED}


async def test_nothing_is_visited_once_a_store_has_failed() -> None:
    frontier, pages = Plenty(), Pages()
    running = asyncio.create_task(worker_on(frontier, pages).run())
    await until_ahead(frontier, pages)
    in_hand, visited = set(frontier.held), list(pages.visited)
    frontier.is_broken = True
    with pytest.raises(StorageFailed):
        await in_time("the worker's end", running)
    assert pages.visited == visited
    assert frontier.held == set()
    assert {frontier.ended[token].verdict for token in in_hand} == {Verdict.RETURNED}


async def test_a_slow_worker_takes_none_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may have nothing to do."""
    monkeypatch.setattr(leasing, "AHEAD_S", 0.0)
    await assert_none_ahead(Plenty())


@pytest.mark.parametrize("how", ["paced", "crowded"])
async def test_none_is_taken_ahead(how: str) -> None:
    """Of hosts with a rate: the permission to send would lapse. Of hosts that are full: others wait
    for them."""
    await assert_none_ahead(Plenty(**{how: True}))


async def assert_none_ahead(frontier: Plenty) -> None:
    pages = Pages()
    pages.open.set()
    async with at_work(frontier, pages):
        await until("many visits", lambda: len(frontier.ended) >= SLOTS * 20)
        assert max(frontier.asked) <= SLOTS
