"""Save, then finish; and never finish what was not saved."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from shoal.archive.port import Archive, RawPage
from shoal.config import Rules
from shoal.core.content import page_digest
from shoal.core.files import no_file
from shoal.core.records import StoredItem
from shoal.core.task import Task
from shoal.errors import StorageBusy, StorageFailed
from shoal.frontier.port import Frontier
from shoal.frontier.values import Entry, Lease, Outcome, Verdict
from shoal.results.port import Batch, Keep, PageLog, Results
from shoal.runtime import patience
from shoal.worker import committer as committing
from shoal.worker.assignment import Stores
from shoal.worker.committer import Committer, keep_of
from shoal.worker.meter import Meter
from shoal.worker.report import Report
from support.until import in_time, until

KEEP = Keep("always", 60.0)


class AllStores:
    """All stores, as far as a committer knows them. Remembers the order of what was done."""

    def __init__(self) -> None:
        self.done: list[tuple[str, list[str]]] = []
        self.saved: list[Batch] = []
        self.archive_errors: list[Exception] = []
        self.save_errors: list[Exception] = []
        self.finish_errors: list[Exception] = []
        self.stale: list[Lease] = []

    async def store(self, crawl: str, pages: Sequence[RawPage]) -> list[str]:
        if self.archive_errors:
            raise self.archive_errors.pop(0)
        self.done.append(("archive", [page.task.url for page in pages]))
        return [f"place of {page.task.url}" for page in pages]

    async def save(self, crawl: str, batch: Batch) -> None:
        if self.save_errors:
            raise self.save_errors.pop(0)
        self.saved.append(batch)
        self.done.append(("save", [page.url for page in batch.pages]))

    async def finish(self, outcomes: Sequence[Outcome]) -> list[Lease]:
        if self.finish_errors:
            raise self.finish_errors.pop(0)
        self.done.append(("finish", [outcome.lease.task.url for outcome in outcomes]))
        return self.stale

    def as_stores(self) -> Stores[Results]:
        frontier, results = cast(Frontier, self), cast(Results, self)
        return Stores(frontier, results, cast(Archive, self))


def report(url: str, *, logged: bool = True) -> Report:
    lease = Lease(url.encode(), f"token of {url}", Task(url=url))
    page = PageLog(
        fingerprint=lease.fingerprint,
        url=url,
        worker="w",
        attempt=1,
        started_at=0.0,
        duration_s=0.1,
        verdict="done",
    )
    return Report(Outcome(lease=lease, verdict=Verdict.DONE), page if logged else None)


def raw_report(url: str, body: bytes = b"body") -> Report:
    made = report(url)
    lease = made.outcome.lease
    made.raw = RawPage(
        task=lease.task,
        fingerprint=lease.fingerprint,
        status=200,
        headers=[],
        fetched_at=0.0,
        body=body,
        digest=page_digest(body),
    )
    return made


class Bench:
    """A committer on fake stores."""

    def __init__(self, batch_size: int) -> None:
        self.stores = AllStores()
        self.finished: list[str] = []
        self.stale: set[str] = set()
        self.meter = Meter(4)
        self.committer = Committer(
            "crawl",
            self.stores.as_stores(),
            KEEP,
            batch_size=batch_size,
            meter=self.meter,
            finish=self.stores.finish,
            on_finished=self._on_finished,
        )

    def _on_finished(self, outcomes: list[Outcome], stale: set[str]) -> None:
        self.finished += [outcome.lease.task.url for outcome in outcomes]
        self.stale |= stale


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(patience, "RETRY_FIRST_S", 0.001)
    return Bench(batch_size=2)


async def test_a_batch_is_saved_and_then_finished(bench: Bench) -> None:
    for url in ("a", "b"):
        bench.committer.put(report(url))
    bench.committer.close()
    await bench.committer.run()
    assert bench.stores.done == [("save", ["a", "b"]), ("finish", ["a", "b"])]
    assert bench.finished == ["a", "b"]


async def test_what_is_not_committed_is_the_backlog(bench: Bench) -> None:
    for url in ("a", "b", "c"):
        bench.committer.put(report(url))
    assert bench.meter.backlog == 3
    bench.committer.close()
    await bench.committer.run()
    assert bench.meter.backlog == 0
    assert bench.meter.saves.count == len([what for what, _ in bench.stores.done if what == "save"])


async def test_what_was_not_saved_is_not_finished(bench: Bench) -> None:
    bench.stores.save_errors = [StorageFailed("disk full")]
    bench.committer.put(report("a"))
    bench.committer.close()
    with pytest.raises(StorageFailed, match="disk full"):
        await bench.committer.run()
    assert bench.stores.done == []
    assert bench.finished == []


async def test_a_store_that_is_away_is_waited_for(bench: Bench) -> None:
    bench.stores.save_errors = [StorageBusy("locked")] * 3
    bench.stores.finish_errors = [StorageBusy("locked")] * 2
    bench.committer.put(report("a"))
    bench.committer.close()
    await bench.committer.run()
    assert bench.stores.done == [("save", ["a"]), ("finish", ["a"])]


async def test_a_task_given_back_is_finished_without_a_save(bench: Bench) -> None:
    bench.committer.put(report("a", logged=False))
    bench.committer.close()
    await bench.committer.run()
    assert bench.stores.done == [("finish", ["a"])]


async def test_what_became_of_a_file_is_saved_though_nothing_was_asked_for(bench: Bench) -> None:
    """robots.txt forbids it: there is no entry in the page log."""
    refused = report("a", logged=False)
    refused.files = [no_file("a", "robots.txt forbids it", 1.0)]
    bench.committer.put(refused)
    bench.committer.close()
    await bench.committer.run()
    assert bench.stores.done == [("save", []), ("finish", ["a"])]
    assert bench.stores.saved[0].files == refused.files


async def test_stale_leases_are_told(bench: Bench) -> None:
    lost = report("a")
    bench.stores.stale = [lost.outcome.lease]
    bench.committer.put(lost)
    bench.committer.close()
    await bench.committer.run()
    assert bench.stale == {"token of a"}


async def test_a_full_batch_and_a_hurried_one_do_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committing, "MAX_AGE_S", 3600.0)
    bench = Bench(batch_size=2)
    running = asyncio.create_task(bench.committer.run())
    bench.committer.put(report("a"))
    bench.committer.put(report("b"))
    await until("a full batch", lambda: bench.finished == ["a", "b"])
    bench.committer.put(report("c"))
    bench.committer.hurry()
    await until("what was hurried", lambda: bench.finished == ["a", "b", "c"])
    bench.committer.close()
    await in_time("its end", running)


async def test_a_lone_report_is_committed_when_it_is_old_enough() -> None:
    bench = Bench(batch_size=100)
    running = asyncio.create_task(bench.committer.run())
    bench.committer.put(report("a"))
    await until("the report to be old enough", lambda: bench.finished)
    bench.committer.close()
    await in_time("its end", running)


def linking_report(url: str, links: int) -> Report:
    made = report(url)
    made.outcome.follow_ups = [Entry(b"", Task(url=f"{url}/{n}")) for n in range(links)]
    return made


async def test_a_batch_has_no_more_links_than_one_call_may_bring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committing, "MAX_LINKS", 10)
    bench = Bench(batch_size=100)
    for url, links in {"a": 4, "b": 6, "c": 1, "d": 25, "e": 3, "f": 7}.items():
        bench.committer.put(linking_report(url, links))
    bench.committer.close()
    await bench.committer.run()
    finished = [urls for what, urls in bench.stores.done if what == "finish"]
    assert finished == [["a", "b"], ["c"], ["d"], ["e", "f"]]


async def test_links_count_as_held_until_they_are_committed() -> None:
    bench = Bench(batch_size=100)
    bench.committer.put(linking_report("x" * 5_000, 1_000))
    assert bench.committer.held_bytes > 5_000_000
    bench.committer.close()
    await bench.committer.run()
    assert bench.committer.held_bytes == 0


async def test_what_is_known_of_files_counts_as_held_too() -> None:
    bench = Bench(batch_size=100)
    refused = report("a")
    refused.files = [no_file(f"{number}", "no web address", 1.0) for number in range(1_000)]
    bench.committer.put(refused)
    assert bench.committer.held_bytes >= 1_000_000


async def test_raw_pages_are_archived_before_all_else(bench: Bench) -> None:
    kept, not_kept = raw_report("a"), report("b")
    bench.committer.put(kept)
    bench.committer.put(not_kept)
    bench.committer.close()
    await bench.committer.run()
    assert bench.stores.done == [
        ("archive", ["a"]),
        ("save", ["a", "b"]),
        ("finish", ["a", "b"]),
    ]
    (batch,) = bench.stores.saved
    assert [page.archived for page in batch.pages] == ["place of a", ""]
    assert batch.keep == KEEP


async def test_an_archive_that_is_away_is_waited_for(bench: Bench) -> None:
    bench.stores.archive_errors = [StorageBusy("away")] * 3
    bench.committer.put(raw_report("a"))
    bench.committer.close()
    await bench.committer.run()
    assert [what for what, _ in bench.stores.done] == ["archive", "save", "finish"]


async def test_what_was_not_archived_is_not_saved(bench: Bench) -> None:
    bench.stores.archive_errors = [StorageFailed("disk full")]
    bench.committer.put(raw_report("a"))
    bench.committer.close()
    with pytest.raises(StorageFailed, match="disk full"):
        await bench.committer.run()
    assert bench.stores.done == []


async def test_raw_pages_that_take_much_memory_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committing, "MAX_BATCH_BYTES", 100)
    monkeypatch.setattr(committing, "MAX_AGE_S", 3600.0)
    bench = Bench(batch_size=100)
    running = asyncio.create_task(bench.committer.run())
    for url in ("a", "b", "c"):
        bench.committer.put(raw_report(url, b"x" * 60))
    assert bench.committer.held_bytes == 180
    await until("a full batch", lambda: bench.finished == ["a", "b"])
    assert bench.committer.held_bytes == 60
    bench.committer.close()
    await in_time("its end", running)
    assert bench.stores.done[3:] == [("archive", ["c"]), ("save", ["c"]), ("finish", ["c"])]
    assert bench.committer.held_bytes == 0


async def test_pages_with_many_items_go_in_batches_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committing, "MAX_BATCH_ROWS", 4)
    bench = Bench(batch_size=100)
    for url in ("a", "b", "c"):
        report = raw_report(url, b"")
        item = StoredItem(
            kind="k", key=url, data=b"{}", url=url, fingerprint=b"\0" * 8, scraped_at=1.0
        )
        report.items = [item] * 3
        bench.committer.put(report)
    bench.committer.close()
    await bench.committer.run()
    saves = [urls for step, urls in bench.stores.done if step == "save"]
    assert saves == [["a", "b"], ["c"]]


def test_rules_say_what_is_kept() -> None:
    assert keep_of(Rules()) == Keep("changed", 0.0)
    assert keep_of(Rules(history="off", refresh_after="2h")) == Keep("off", 7200.0)
