"""Save, publish, then finish; and whoever is told to stop does not wait for a broker for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from shoal.config import Rules
from shoal.core.records import StoredItem
from shoal.core.task import Task
from shoal.errors import StorageBusy, StorageFailed
from shoal.frontier.values import CrawlState, Lease, Outcome, Stats, Verdict
from shoal.results.port import Batch, Keep, PageLog, Results
from shoal.runtime import patience
from shoal.worker import publishing
from shoal.worker.assignment import Stores
from shoal.worker.committer import Committer
from shoal.worker.meter import Meter
from shoal.worker.publishing import Outlet, Send
from shoal.worker.report import Report
from support.until import in_time, until


class Steps:
    """Everything a committer does, in its order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.errors: list[Exception] = []
        self.ends: list[CrawlState] = []
        self.is_away = False

    async def save(self, crawl: str, batch: Batch) -> None:
        self.done.append(f"save {len(batch.items)}")

    async def finish(self, outcomes: list[Outcome]) -> list[Lease]:
        self.done += [f"{one.verdict} {one.lease.task.url}" for one in outcomes]
        return []

    def prepare(self, reports: Sequence[Report]) -> Send:
        self.done.append(f"prepare {len(reports)}")

        async def send() -> None:
            if self.errors:
                raise self.errors.pop(0)
            if self.is_away:
                raise StorageBusy("away")
            self.done.append("publish")

        return send

    async def finished(self, stats: Stats) -> None:
        await self.prepare([])()
        self.ends.append(stats.state)

    async def close(self) -> None: ...


def report(url: str, verdict: Verdict = Verdict.DONE, *, items: int = 0) -> Report:
    lease = Lease(url.encode(), f"token of {url}", Task(url=url))
    page = PageLog(
        fingerprint=lease.fingerprint,
        url=url,
        worker="w",
        attempt=1,
        started_at=0.0,
        duration_s=0.1,
        verdict=verdict,
    )
    item = StoredItem(kind="k", key=url, data=b"{}", url=url, fingerprint=b"", scraped_at=0.0)
    return Report(Outcome(lease=lease, verdict=verdict), page, [item] * items)


class Bench:
    def __init__(self) -> None:
        self.steps = Steps()
        self.outlet = Outlet(self.steps)
        stores = Stores[Results | None](self.steps, self.steps)  # type: ignore[arg-type]
        self.committer = Committer(
            "crawl",
            stores,
            Keep(),
            batch_size=10,
            meter=Meter(4),
            finish=self.steps.finish,
            on_finished=lambda outcomes, stale: None,
            outlet=self.outlet,
        )

    def begin(self, *reports: Report) -> asyncio.Task[None]:
        for one in reports:
            self.committer.put(one)
        self.committer.close()
        return asyncio.create_task(self.committer.run())


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(patience, "RETRY_FIRST_S", 0.001)
    monkeypatch.setattr(publishing, "STOPPING_S", 0.05)
    return Bench()


async def test_the_order(bench: Bench) -> None:
    await bench.begin(report("a", items=2), report("b", Verdict.DEAD))
    assert bench.steps.done == ["prepare 2", "save 2", "publish", "done a", "dead b"]


async def test_a_broker_that_is_away_is_waited_for(bench: Bench) -> None:
    bench.steps.errors = [StorageBusy("away")] * 3
    await in_time("the batch", bench.begin(report("a", items=1)))
    assert bench.steps.done == ["prepare 1", "save 1", "publish", "done a"]


async def test_what_a_broker_will_never_take_ends_the_worker(bench: Bench) -> None:
    bench.steps.errors = [StorageFailed("no such exchange")]
    with pytest.raises(StorageFailed):
        await bench.begin(report("a", items=1))
    assert "done a" not in bench.steps.done


async def test_who_is_told_to_stop_gives_back_what_was_not_told(bench: Bench) -> None:
    """Of these, nothing else is lost: what has nothing to tell is finished."""
    bench.steps.is_away = True
    some = report("a", items=1), report("b", Verdict.DEAD), report("c"), report("d", Verdict.RETRY)
    committing = bench.begin(*some)
    await until("the batch to be saved", lambda: "save 1" in bench.steps.done)
    bench.outlet.drain()
    await in_time("the committer", committing)
    assert bench.steps.done[2:] == ["returned a", "returned b", "done c", "retry d"]
    assert bench.committer.held_bytes == 0


async def test_a_broker_that_is_there_has_a_moment_after_the_order_to_stop(bench: Bench) -> None:
    bench.outlet.drain()
    await in_time("the committer", bench.begin(report("a", items=1)))
    assert bench.steps.done[2:] == ["publish", "done a"]


async def test_an_end_is_told_once(bench: Bench) -> None:
    stats = Stats(crawl="c", state=CrawlState.FINISHED, rules=Rules(), created_at=1.0)
    bench.steps.errors = [StorageBusy("away")]
    await bench.outlet.finished(stats)
    await bench.outlet.finished(stats)
    stats.finished_at = 2.0
    await bench.outlet.finished(stats)
    assert len(bench.steps.ends) == 2


async def test_an_end_that_could_not_be_told_is_told_later(bench: Bench) -> None:
    stats = Stats(crawl="c", state=CrawlState.FINISHED, rules=Rules(), created_at=1.0)
    bench.steps.is_away = True
    telling = asyncio.create_task(bench.outlet.finished(stats))
    await until("a try", lambda: bool(bench.steps.done))
    bench.outlet.drain()
    await in_time("the end of waiting", telling)
    assert bench.steps.ends == []
