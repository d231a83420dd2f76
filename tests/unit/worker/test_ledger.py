"""Where the time of slots goes: nothing is left out, and each cause is told by its name."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.config import Rules
from shoal.core.ledger import Cause, SlotTime
from shoal.core.task import Task
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
from shoal.results.port import Batch, Results
from shoal.worker import heartbeat
from shoal.worker.assignment import Assignment, Stores
from shoal.worker.leasing import HELD_PER_SLOT, POLL_S, Leasing
from shoal.worker.ledger import Ledger
from shoal.worker.report import Report, page_log
from shoal.worker.worker import Worker
from support.until import in_time, until

SLOTS = 4
IDLE = [Cause.POLITE, Cause.STARVED, Cause.STORES, Cause.FRONTIER]
NOTES = st.lists(st.tuples(st.floats(0, 10), st.integers(0, SLOTS), st.sampled_from(IDLE)))


@given(NOTES, st.floats(0, 1000))
def test_every_second_of_every_slot_has_one_cause(
    notes: list[tuple[float, int, Cause]], parsing_s: float
) -> None:
    ledger, now = Ledger(SLOTS, 100.0), 100.0
    for passed_s, in_flight, cause in notes:
        now += passed_s
        ledger.note(now, in_flight, cause)
    told = ledger.told(now + 1.0, parsing_s)
    assert told.total == pytest.approx(SLOTS * (now + 1.0 - 100.0))
    assert all(told.of(cause) >= 0 for cause in Cause)
    assert sum(told.share(cause) for cause in Cause) == pytest.approx(1.0)


def test_what_passed_counts_as_it_was_then() -> None:
    ledger = Ledger(SLOTS, 0.0)
    ledger.note(1.0, 3, Cause.POLITE)
    ledger.note(3.0, 4, Cause.STORES)
    told = ledger.told(4.0, 2.5)
    assert told == SlotTime(fetch=7.5, parse=2.5, polite=2.0, starved=4.0)
    assert told + told - told == told


class Backlog(msgspec.Struct):
    """What waits for the stores."""

    held_bytes: int = 0
    busy_since: float | None = None
    is_saving: bool = False
    is_empty: bool = True


def granted(leasing: Leasing, number: int, **said: Any) -> None:
    """Ask, and get so many leases."""
    assert leasing.ask(0.0, Backlog())
    task = Task(url="http://shop.example/", site="shop.example")
    leases = [Lease(b"", f"{len(leasing.held)} {at}", task) for at in range(number)]
    leasing.granted(Grant(**{"state": CrawlState.RUNNING, "leases": leases, **said}), 0.0)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        pytest.param({"has_waiting": True, "wait_s": 9.0}, Cause.POLITE, id="not yet"),
        pytest.param({"wait_s": 9.0}, Cause.STARVED, id="others have all of it"),
        pytest.param({}, Cause.STARVED, id="nothing"),
        pytest.param({"has_waiting": True, "state": CrawlState.PAUSED}, Cause.STARVED, id="paused"),
    ],
)
def test_where_there_was_less_than_asked_for(said: dict[str, Any], cause: Cause) -> None:
    leasing = Leasing(SLOTS)
    granted(leasing, 1, **said)
    assert leasing.idle_as(Backlog(is_saving=True)) is cause
    assert leasing.ask(POLL_S, Backlog())
    assert leasing.idle_as(Backlog()) is cause, "until an answer says otherwise"


def test_where_there_was_plenty_it_is_those_who_let_us_wait_for_more() -> None:
    leasing = Leasing(SLOTS)
    assert leasing.idle_as(Backlog()) is Cause.FRONTIER, "nobody was asked yet"
    granted(leasing, SLOTS)
    for lease in leasing.held.values():
        leasing.visit_over(Outcome(lease=lease, verdict=Verdict.DONE))
    assert leasing.idle_as(Backlog()) is Cause.FRONTIER
    assert leasing.idle_as(Backlog(is_saving=True)) is Cause.STORES
    assert leasing.ask(POLL_S, Backlog(is_saving=True))
    assert leasing.idle_as(Backlog(is_saving=True)) is Cause.FRONTIER, "it is asked"


def test_when_no_more_may_be_held_it_is_those_who_have_what_is_done() -> None:
    leasing = Leasing(SLOTS)
    for _ in range(HELD_PER_SLOT):
        granted(leasing, SLOTS, wait_s=9.0)
        for lease in [*leasing.held.values()][-SLOTS:]:
            leasing.visit_over(Outcome(lease=lease, verdict=Verdict.DONE))
    assert leasing.idle_as(Backlog(is_saving=True)) is Cause.STORES
    assert leasing.idle_as(Backlog()) is Cause.FRONTIER


def test_a_full_share_of_a_host_is_politeness() -> None:
    leasing = Leasing(SLOTS)
    task = Task(url="http://shop.example/", site="shop.example")
    leases = [Lease(b"", str(at), task, shared=True) for at in range(SLOTS)]
    assert leasing.ask(0.0, Backlog())
    leasing.granted(Grant(CrawlState.RUNNING, leases, {"shop.example": 2}), 0.0)
    assert leasing.in_flight == 2
    assert leasing.idle_as(Backlog()) is Cause.POLITE


class Scene:
    """Stores and pages that take no longer than they are told to. All wait for the test's end."""

    def __init__(self, slow: Cause | None) -> None:
        self.slow = slow
        self.pulses: list[Pulse] = []
        self.is_over = asyncio.Event()
        self._names = count()

    async def _takes(self, cause: Cause) -> None:
        if self.slow is cause:
            await in_time("the test's end", self.is_over.wait())
        else:
            await asyncio.sleep(0.001)

    async def lease(self, crawl: str, ask: Ask) -> Grant:
        await self._takes(Cause.FRONTIER)
        is_given = self.slow not in (Cause.POLITE, Cause.STARVED)
        tasks = [Task(url="http://shop.example/") for _ in range(ask.room if is_given else 0)]
        leases = [Lease(b"", f"{next(self._names)}", task) for task in tasks]
        has_waiting = self.slow is not Cause.STARVED
        return Grant(CrawlState.RUNNING, leases, wait_s=9.0, has_waiting=has_waiting)

    async def exchange(
        self, crawl: str, outcomes: Sequence[Outcome], ask: Ask
    ) -> tuple[list[Lease], Grant]:
        return [], await self.lease(crawl, ask)

    async def finish(self, crawl: str, outcomes: Sequence[Outcome]) -> list[Lease]:
        return []

    async def renew(self, crawl: str, leases: Sequence[Lease]) -> list[Lease]:
        return []

    async def stats(self, crawl: str) -> Stats:
        return Stats(crawl=crawl, state=CrawlState.RUNNING, rules=Rules(), created_at=0.0)

    async def beat(self, crawl: str, pulse: Pulse) -> bool:
        self.pulses.append(pulse)
        return False

    async def save(self, crawl: str, batch: Batch) -> None:
        await self._takes(Cause.STORES)

    def begin(self, rules: Rules) -> None: ...

    async def visit(self, lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
        await self._takes(Cause.FETCH)
        begun = time.perf_counter()
        await self._takes(Cause.PARSE)
        outcome = Outcome(lease=lease, verdict=Verdict.DONE)
        page = page_log(outcome, "worker", 0.0, 200, b"")
        parsing_s = time.perf_counter() - begun
        return Report(outcome, page, status=200, parsing_s=parsing_s)

    def confirm(self, follow_ups: Sequence[Entry]) -> None: ...

    def start_over(self) -> None: ...

    async def close(self) -> None: ...


@pytest.mark.parametrize("cause", [Cause.FETCH, *IDLE])
async def test_a_worker_tells_what_holds_it_up(
    cause: Cause, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_EVERY_S", 0.01)
    scene = Scene(cause)
    stores = Stores(cast(Frontier, scene), cast(Results, scene))
    worker = Worker(Assignment("worker", "crawl", stores, SLOTS), scene)
    running = asyncio.create_task(worker.run())

    def lately() -> SlotTime | None:
        work = scene.pulses[-1].lately if scene.pulses else None
        return work.slots if work is not None and work.slots.share(cause) > 0.8 else None

    told = await until(f"most of the time to be {cause}", lately)
    assert told.total > 0
    worker.drain()
    scene.is_over.set()
    await in_time("the worker's end", running)
