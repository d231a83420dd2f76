"""Save, publish, then finish: collects reports, stores their raw pages, then their rows, publishes
them where that is wanted, and only then finishes their tasks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable

from shoal.archive.filestore import place_of
from shoal.config import Rules
from shoal.core.policy import parse_duration
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.parts import MAX_LINKS
from shoal.frontier.values import Lease, Outcome
from shoal.results.port import Batch, Keep, Results
from shoal.runtime.patience import patiently, wait_for_event
from shoal.worker.assignment import Stores
from shoal.worker.meter import Meter
from shoal.worker.publishing import Outlet, is_told
from shoal.worker.report import Report, give_up
from shoal.worker.task_log import log_failures

MAX_BATCH = 200
MAX_AGE_S = 0.04
MAX_BATCH_ROWS = 5_000
MAX_BATCH_BYTES = 16 * 1024 * 1024
"""A batch is full when its items, links and bodies for the archive take this many bytes."""
LINK_BYTES = 1_000
"""Bytes of memory that a link takes besides its URL; also those of an entry about a file."""

NO_STORE = (
    "files of items have no place to go: name one that all machines reach with --file-store,"
    " or an --archive (file:///dir, s3://bucket/prefix)"
)

log = logging.getLogger("shoal")


class Committer:
    """Commits a batch when it is full, old enough, or when the worker has nothing else to do.

    It has no bound of its own: the worker counts what is leased and not yet finished, and stops
    leasing when that is too much.
    """

    def __init__(
        self,
        crawl: str,
        stores: Stores[Results | None],
        keep: Keep,
        *,
        batch_size: int,
        meter: Meter,
        finish: Callable[[list[Outcome]], Awaitable[list[Lease]]],
        on_finished: Callable[[list[Outcome], set[str]], None],
        on_step: Callable[[], object] = lambda: None,
        outlet: Outlet | None = None,
    ) -> None:
        """`on_step` is called when a batch goes to the stores, and when it goes on to the
        frontier."""
        self._crawl = crawl
        self._results = stores.results
        self._archive = stores.archive
        self._files = stores.files
        self._keep = keep
        self._meter = meter
        self._batch_size = min(batch_size, MAX_BATCH)
        self._end = finish  # Returns the leases that were lost.
        self._on_finished = on_finished  # Gets the outcomes and the stale tokens.
        self._on_step = on_step
        self._outlet = outlet  # None: nothing is published.
        self._reports: deque[Report] = deque()
        self.held_bytes = 0
        """Bytes of memory that items, links and bodies for the archive take until they are
        committed."""
        self.busy_since: float | None = None
        """When the batch that is being committed was begun. None if there is none."""
        self.is_saving = False
        """Whether that batch is being saved to results or the archive, and not yet finished in the
        frontier."""
        self._oldest_at = 0.0
        self._hurried = False
        self._closing = False
        self._wake = asyncio.Event()

    def put(self, report: Report) -> None:
        """Take a report. Never waits."""
        if not self._reports:
            self._oldest_at = time.monotonic()
            self._wake.set()
        self._reports.append(report)
        self._meter.backlog += 1
        report.held_bytes = _size(report)
        self.held_bytes += report.held_bytes
        if self._is_full():
            self._wake.set()

    def hurry(self) -> None:
        """Nothing else is going on: commit what there is without waiting for more reports."""
        self._hurried = True
        self._wake.set()

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits besides the batch that is being committed."""
        return not self._reports

    def close(self) -> None:
        """Commit what is left; then `run` returns."""
        self._closing = True
        self._wake.set()

    async def run(self) -> None:
        """Commit batches until closed. Raises StorageFailed: then that batch is not finished."""
        while self._reports or not self._closing:
            wait_s = self._wait_s()
            if wait_s is None or wait_s > 0:
                self._wake.clear()
                await wait_for_event(self._wake, wait_s)
            else:
                self.busy_since = time.monotonic()
                await self._commit(self._take())
                self.busy_since = None

    def _wait_s(self) -> float | None:
        """Return how long the batch may still grow. None if there is none."""
        if not self._reports:
            return None
        if self._hurried or self._closing or self._is_full():
            return 0.0
        return self._oldest_at + MAX_AGE_S - time.monotonic()

    def _is_full(self) -> bool:
        return len(self._reports) >= self._batch_size or self.held_bytes >= MAX_BATCH_BYTES

    def _take(self) -> list[Report]:
        self._hurried = False
        self._oldest_at = time.monotonic()
        taken: list[Report] = []
        rows = size = links = 0
        while self._reports and len(taken) < MAX_BATCH:
            links += len(self._reports[0].outcome.follow_ups)
            if rows >= MAX_BATCH_ROWS or size >= MAX_BATCH_BYTES or (taken and links > MAX_LINKS):
                break
            taken.append(self._reports.popleft())
            rows += len(taken[-1].items)
            size += taken[-1].held_bytes
        return taken

    async def _commit(self, reports: list[Report]) -> None:
        meter, outlet, begun = self._meter, self._outlet, time.perf_counter()
        self._saving(True)
        await self._store_raw(reports)
        if bodies := [report for report in reports if report.file_body is not None]:
            await self._store_files(bodies)
        send = outlet.prepare(reports) if outlet is not None else None
        if await self._save(reports):
            meter.saves.note(time.perf_counter() - begun)
        outcomes = [report.outcome for report in reports]
        if send is not None and outlet is not None and not await outlet.sent(send):
            outcomes = [_not_told(report) for report in reports]
        self._saving(False)
        begun = time.perf_counter()
        stale = await patiently("frontier", lambda: self._finish(outcomes))
        meter.finishing_s += time.perf_counter() - begun
        meter.backlog -= len(reports)
        self.held_bytes -= sum(report.held_bytes for report in reports)
        lost = {lease.token for lease in stale}
        log_failures(self._crawl, reports, outcomes, lost)
        self._on_finished(outcomes, lost)

    def _saving(self, is_saving: bool) -> None:
        self.is_saving = is_saving
        self._on_step()

    async def _save(self, reports: list[Report]) -> bool:
        """Save rows to the results store. Returns whether there were any."""
        batch = Batch(
            [report.page for report in reports if report.page is not None],
            [item for report in reports for item in report.items],
            [item for report in reports for item in report.rejected],
            self._keep,
            [file for report in reports if report.files for file in report.files],
        )
        has_rows = batch.pages or batch.items or batch.rejected or batch.files
        if not has_rows or (results := self._results) is None:
            return False
        await patiently("results store", lambda: results.save(self._crawl, batch))
        return True

    async def _store_raw(self, reports: list[Report]) -> None:
        """Archive raw pages and free their memory. The page log records where they are."""
        if self._archive is None:
            return
        store, crawl = self._archive.store, self._crawl
        found = [(report.raw, report.page) for report in reports if report.raw and report.page]
        pages = [raw for raw, _ in found]
        if not pages:
            return
        places = await patiently("archive", lambda: store(crawl, pages))
        for (_, log_entry), place in zip(found, places, strict=True):
            log_entry.archived = place
        for report in reports:
            report.raw = None

    async def _store_files(self, reports: list[Report]) -> None:
        """Store files and free their memory. The entry of each file records where it is. Raises
        ConfigError if there is no file store."""
        store = self._files
        if store is None:
            raise ConfigError(NO_STORE)
        bodies = {report.files[0].sha256: report.file_body or b"" for report in reports}
        await patiently("file store", lambda: store.put(bodies))
        for report in reports:
            report.files[0].place = place_of(report.files[0].sha256)
            report.file_body = None

    async def _finish(self, outcomes: list[Outcome]) -> list[Lease]:
        """Finish tasks. Returns the leases that this worker had lost before."""
        try:
            stale = await self._end(outcomes)
        except UnknownCrawl:
            log.warning("crawl '%s' was deleted: %d tasks are void", self._crawl, len(outcomes))
            return [outcome.lease for outcome in outcomes]
        for lease in stale:
            log.info("somebody else has the lease by now: %s", lease.task.url)
        return stale


def keep_of(rules: Rules) -> Keep:
    """Return what a crawl's rules say about storing its items."""
    return Keep(rules.history, parse_duration(rules.refresh_after) if rules.refresh_after else 0.0)


def _not_told(report: Report) -> Outcome:
    """Return the outcome of a report that could not be published: a task with something to publish
    goes back to be done again, though its items are saved."""
    return give_up(report.outcome.lease).outcome if is_told(report) else report.outcome


def _size(report: Report) -> int:
    body = len(report.raw.body) if report.raw is not None else 0
    links = sum(LINK_BYTES + len(entry.task.url) for entry in report.outcome.follow_ups)
    links += LINK_BYTES * len(report.files)
    if report.file_body is not None:
        body += len(report.file_body)
    return body + links + sum(len(item.data) for item in report.items)
