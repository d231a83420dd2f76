"""What tests of a frontier need: backends with a fake clock, entries, and a terse client."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.config import Rules
from shoal.core.records import Robots
from shoal.core.task import Task
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.sqlite.statements import PART, SCHEMA
from shoal.frontier.values import (
    Added,
    Ask,
    Control,
    CrawlState,
    Entry,
    Grant,
    Holding,
    Host,
    Lease,
    Outcome,
    Pulse,
    Record,
    Stats,
    TaskState,
    Verdict,
)
from support.frontier_audit import sqlite_faults

CRAWL = "crawl"
HOST = "a.example"
A_MOMENT_S = 0.01
ALLOW_ALL = Robots(text="", ttl_s=3600.0)
LATER = 99
"""A version number that no data format has yet."""
NOTHING: Mapping[str, Holding] = {}
_admission = Admission(Rules())


def entry(address: str, **fields: Any) -> Entry:
    """A task for `host/path`, admitted like any other."""
    return _admission.admit(Task(url=f"http://{address}", **fields))


def pages(count: int, host: str = HOST, **fields: Any) -> list[Entry]:
    """`count` different tasks of one host."""
    return [entry(f"{host}/{number}", **fields) for number in range(count)]


def outcome(lease: Lease, verdict: Verdict = Verdict.DONE, **fields: Any) -> Outcome:
    """The outcome of a try; done, unless another verdict is given."""
    return Outcome(lease=lease, verdict=verdict, **fields)


def pulse(worker: str = "worker", **fields: Any) -> Pulse:
    """A worker's sign of life."""
    return Pulse(worker=worker, host="machine", pid=7, version="1.2.3", **fields)


def open_rules(**changes: Any) -> Rules:
    """Rules that hold nothing back (no rate, no robots.txt), with the changes that a test needs."""
    return Rules(**{"rate": "none", "robots": False, **changes})


class FakeClock:
    """A clock that only tests move."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Client:
    """One worker on one crawl: short forms of the frontier's calls, without any logic."""

    def __init__(self, frontier: Frontier, worker: str, crawl: str) -> None:
        self.frontier, self.worker, self.crawl = frontier, worker, crawl

    async def start(self, *entries: Entry, **rules: Any) -> Stats:
        """Start the crawl with open rules and these changes, and add its seeds."""
        stats = await self.frontier.start(self.crawl, open_rules(**rules))
        if entries:
            await self.add(*entries)
        return stats

    async def add(self, *entries: Entry) -> Added:
        return await self.frontier.add(self.crawl, entries)

    async def ask(self, limit: int = 1, holdings: Mapping[str, Holding] = NOTHING) -> Grant:
        return await self.frontier.lease(self.crawl, Ask(self.worker, limit, dict(holdings)))

    async def lease(self, limit: int = 1) -> list[Lease]:
        return (await self.ask(limit)).leases

    async def lease_one(self, limit: int = 1) -> Lease:
        (lease,) = await self.lease(limit)
        return lease

    async def send(self, limit: int = 1, holdings: Mapping[str, Holding] = NOTHING) -> list[Lease]:
        """Lease tasks, and return at once those that may not be sent now. Returns the others, which
        are in flight."""
        grant = await self.ask(limit, holdings)
        may_send = Counter(grant.shares)
        sent, unsent = list[Lease](), list[Lease]()
        for lease in grant.leases:
            site = lease.task.site
            (sent if not lease.shared or may_send[site] > 0 else unsent).append(lease)
            may_send[site] -= lease.shared
        await self.finish(*(outcome(lease, Verdict.RETURNED, sent=False) for lease in unsent))
        return sent

    async def renew(self, *leases: Lease) -> list[Lease]:
        return await self.frontier.renew(self.crawl, leases)

    async def finish(self, *outcomes: Outcome) -> list[Lease]:
        return await self.frontier.finish(self.crawl, outcomes)

    async def exchange(
        self, *outcomes: Outcome, limit: int, holdings: Mapping[str, Holding] = NOTHING
    ) -> tuple[list[Lease], Grant]:
        ask = Ask(self.worker, limit, dict(holdings))
        return await self.frontier.exchange(self.crawl, outcomes, ask)

    async def end(self, lease: Lease, verdict: Verdict = Verdict.DONE, **fields: Any) -> None:
        """Finish one lease, which must still be held."""
        stale = await self.finish(outcome(lease, verdict, **fields))
        assert not stale, "the lease was lost"

    async def work_off(self) -> int:
        """Lease and finish tasks until there are none to lease. Returns their number."""
        count = 0
        while leases := await self.lease(10):
            await self.finish(*map(outcome, leases))
            count += len(leases)
        return count

    async def control(self, action: Control) -> CrawlState:
        return await self.frontier.control(self.crawl, action)

    async def stats(self) -> Stats:
        return await self.frontier.stats(self.crawl)

    async def snapshot(self) -> Stats:
        """The statistics, without figures that change even if nothing happens."""
        return msgspec.structs.replace(
            await self.stats(), pages_per_s=0.0, outside=0, broker_requests=0, broker_cost=0.0
        )

    async def record(self, key: Entry | Lease | Record) -> Record:
        record = await self.frontier.find(self.crawl, Entry(key.fingerprint, key.task))
        assert record is not None, "the frontier does not know this task"
        return record

    async def state(self, key: Entry | Lease | Record) -> TaskState:
        return (await self.record(key)).state

    async def host(self, name: str = HOST) -> Host:
        (host,) = [host for host in await self.frontier.hosts(self.crawl, 100) if host.host == name]
        return host


class Backend(ABC):
    """One store under test: its clients, its clock, and an audit of its data."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self._opened: list[Frontier] = []
        self.frontier = self.open_another()

    @abstractmethod
    def _open(self) -> Frontier:
        """Open a frontier on this backend's data."""

    async def advance(self, seconds: float) -> None:
        """Let time pass for the frontier; a negative number sets its clock back."""
        self.clock.now += seconds

    def needs(self, capability: str) -> None:
        """Skip the test if the backend lacks this one of the `Capabilities`."""
        if not getattr(self.frontier.capabilities, capability):
            pytest.skip(f"this frontier does not have {capability}")

    def open_another(self) -> Frontier:
        """Open another frontier on the same data, as another process would."""
        frontier = self._open()
        self._opened.append(frontier)
        return frontier

    def client(self, worker: str = "worker", crawl: str = CRAWL) -> Client:
        """A client of the first frontier."""
        return Client(self.frontier, worker, crawl)

    def another(self, worker: str = "another", crawl: str = CRAWL) -> Client:
        """A client of a frontier of its own."""
        return Client(self.open_another(), worker, crawl)

    @asynccontextmanager
    async def written_by_newer(self) -> AsyncIterator[None]:
        """Within this context, the data is in a format that only a later version knows."""
        await self._set_format(LATER)
        try:
            yield
        finally:
            await self._set_format(None)

    @abstractmethod
    async def _set_format(self, number: int | None) -> None:
        """Set the version number of the data's format; None sets the current one."""

    async def reopen(self) -> None:
        """Close all frontiers, and open the store again."""
        await self.close()
        self.frontier = self.open_another()

    async def check(self) -> None:
        """Assert that every task of every crawl is in exactly one state."""
        for stats in await self.frontier.crawls():
            assert stats.added == stats.remaining + stats.ended, stats

    async def close(self) -> None:
        """Close all frontiers."""
        while self._opened:
            await self._opened.pop().close()


class SqliteBackend(Backend):
    """The SQLite frontier on a file, with a fake clock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__()

    def _open(self) -> Frontier:
        return SqliteFrontier(self.path, clock=self.clock)

    async def _set_format(self, number: int | None) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            row = [number or len(SCHEMA), PART]
            connection.execute("UPDATE versions SET version = ? WHERE part = ?", row)

    async def check(self) -> None:
        await super().check()
        assert sqlite_faults(self.path) == []


@asynccontextmanager
async def checked(backend: Backend) -> AsyncIterator[Backend]:
    """A backend for one test. The data that the test leaves behind must add up."""
    try:
        yield backend
        await backend.check()
    finally:
        await backend.close()
