"""Visits to files of items: the files are stored, and no handler is called.

Every try that ends the task of a file is recorded: the items that refer to the file show its
state.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from shoal.config import Rules, Settings
from shoal.core.files import (
    FileStatus,
    StoredFile,
    is_large,
    known_as,
    redirected_file,
    with_room,
)
from shoal.core.media_types import is_wanted, media_type
from shoal.core.task import Task
from shoal.errors import FetchError, TooLarge
from shoal.fetch.port import Response
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry, Lease, Outcome, Verdict
from shoal.results.port import KnownPage, Results
from shoal.worker.report import Report
from shoal.worker.visits.outcomes import Judge, is_success
from shoal.worker.visits.recrawl import Earlier, validator
from shoal.worker.visits.visitor import Visit

HASHED_AT_ONCE = 256 * 1024
"""A file larger than this is hashed in a thread, so that other work gets its turn."""

_ENDS = {Verdict.DROPPED: FileStatus.DROPPED, Verdict.DEAD: FileStatus.DEAD}


def for_files(settings: Settings) -> Settings:
    """The settings of a fetcher for files that are no larger than pages may be."""
    limit = min(settings.max_body_bytes, settings.max_file_bytes)
    return replace(settings, max_body_bytes=limit)


def for_large_files(settings: Settings) -> Settings:
    """The settings of a fetcher for larger files."""
    return replace(settings, max_body_bytes=settings.max_file_bytes)


def large_files_at_once(settings: Settings) -> int:
    """Return how many large files a worker may have in hand: they take no more memory than pages
    may."""
    of_pages = settings.concurrency * settings.max_body_bytes
    return max(of_pages // max(settings.max_file_bytes, settings.max_body_bytes), 1)


class FileJudge(Judge):
    """Judges tries at files where they differ from pages."""

    def __init__(self, rules: Rules, admission: Admission, settings: Settings) -> None:
        super().__init__(rules, admission)
        self._max_bytes = settings.max_file_bytes
        self._has_room = settings.max_file_bytes > settings.max_body_bytes

    def answered(self, lease: Lease, response: Response, now: float, jitter: float) -> Outcome:
        """Judge an answer; a redirect leads to the same file."""
        outcome = super().answered(lease, response, now, jitter)
        outcome.follow_ups = [self._same_file(entry, lease) for entry in outcome.follow_ups]
        return outcome

    def unanswered(self, lease: Lease, error: FetchError, jitter: float) -> Outcome:
        """Judge a missing answer. A file that is larger than a page may be is requested again when
        there is room for it."""
        if not isinstance(error, TooLarge):
            return super().unanswered(lease, error, jitter)
        if is_large(lease.task) or not self._has_room:
            too_large = TooLarge(f"larger than {self._max_bytes} bytes (max_file_bytes)")
            too_large.wire_bytes = error.wire_bytes
            return super().unanswered(lease, too_large, jitter)
        again = with_room(lease.task, known_as(lease.task, lease.fingerprint))
        return Outcome(
            lease=lease,
            verdict=Verdict.DONE,
            reason="larger than a page may be: it is asked for again, with room for it",
            follow_ups=[self._admission.admitted_as(again)],
            wire_bytes=error.wire_bytes,
        )

    def _same_file(self, target: Entry, lease: Lease) -> Entry:
        known = known_as(lease.task, lease.fingerprint)
        return self._admission.admitted_as(redirected_file(target.task, known))


class FileReader:
    """Takes files as they are, if their type is one that the crawl wants."""

    def __init__(self, rules: Rules) -> None:
        self._types = rules.file_types

    def can_read(self, task: Task, status: int) -> bool:
        """Whether the answer is the file."""
        return is_success(status)

    def accepts(self, task: Task, status: int) -> bool:
        """Always false: no spider names statuses for files."""
        return False

    async def read(self, visit: Visit) -> Report:
        """Report the file for storing, or why it is not wanted."""
        response = visit.response
        kind = media_type(response.body, response.headers.get("Content-Type", ""))
        if reason := self._refusal(kind, response.body):
            return visit.report(Outcome(lease=visit.lease, verdict=Verdict.DROPPED, reason=reason))
        outcome = Outcome(lease=visit.lease, verdict=Verdict.DONE, files=1)
        report = visit.report(outcome)
        report.files = [await _stored(visit, kind)]
        report.file_body = response.body
        return report

    def _refusal(self, kind: str, body: bytes) -> str:
        if not body:
            return "the file is empty"
        if not is_wanted(kind, self._types):
            return f"it is {kind}, and wanted are {', '.join(self._types)} (file_types)"
        return ""

    def clears(self, visit: Visit) -> bool:
        """Always false: no spider says what a file looks like."""
        return False

    async def follow_without_page(self, outcome: Outcome, status: int | None = None) -> None:
        """Add nothing: nothing follows from a file."""


async def _stored(visit: Visit, kind: str) -> StoredFile:
    """Return the record of a fetched file, without its place."""
    lease, body, headers = visit.lease, visit.response.body, visit.response.headers
    return StoredFile(
        fingerprint=known_as(lease.task, lease.fingerprint),
        url=lease.task.url,
        status=FileStatus.DONE,
        at=visit.fetched_at,
        type=kind,
        size=len(body),
        sha256=await _sha256(body),
        etag=validator(headers.get("ETag")),
        last_modified=validator(headers.get("Last-Modified")),
    )


async def _sha256(body: bytes) -> bytes:
    if len(body) <= HASHED_AT_ONCE:
        return hashlib.sha256(body).digest()
    return await asyncio.to_thread(lambda: hashlib.sha256(body).digest())


class TriesFiles(Protocol):
    """What visits files: a Visitor."""

    async def visit(self, lease: Lease, send_by: float, answered: Callable[[], None]) -> Report: ...


class FileVisits:
    """Visits files, and records the state of each. Only a few large ones are visited at once."""

    def __init__(self, visitor: TriesFiles, settings: Settings) -> None:
        self._visitor = visitor
        self._large_room = asyncio.Semaphore(large_files_at_once(settings))

    async def visit(self, lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
        """Make one try."""
        if is_large(lease.task):
            async with self._large_room:
                report = await self._visitor.visit(lease, send_by, answered)
        else:
            report = await self._visitor.visit(lease, send_by, answered)
        if report.outcome.verdict in _ENDS:
            report.files = [*report.files, file_not_had(report.outcome)]
        return report


def file_not_had(outcome: Outcome) -> StoredFile:
    """Return the record of a file whose task has ended without it."""
    lease = outcome.lease
    return StoredFile(
        fingerprint=known_as(lease.task, lease.fingerprint),
        url=lease.task.url,
        status=_ENDS[outcome.verdict],
        at=lease.now(),
        error=outcome.reason,
    )


class EarlierFiles(Earlier):
    """What an earlier crawl has stored of files that are requested again. Only files count that are
    where this crawl stores its own, and of a type that this crawl wants."""

    def __init__(
        self, results: Results, crawl: str, file_store: str, types: Sequence[str] = ()
    ) -> None:
        super().__init__(results, crawl)
        self._file_store = file_store
        self._types = types
        self._is_here: bool | None = None

    async def _known(self, fingerprints: Sequence[bytes]) -> dict[bytes, KnownPage]:
        if self._is_here is None:
            note = await self._results.note_of(self._crawl)
            self._is_here = note is not None and note.file_store == self._file_store
        if not self._is_here:
            return {}
        found = await self._results.files_of(self._crawl, fingerprints)
        return {
            key: KnownPage(etag=file.etag, last_modified=file.last_modified, file=file)
            for key, file in found.items()
            if file.is_done and is_wanted(file.type, self._types)
        }
