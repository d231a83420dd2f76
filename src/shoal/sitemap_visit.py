"""A visit to a sitemap: what it lists is queued, and no spider is asked."""

from __future__ import annotations

import asyncio
import logging
import time

from msgspec.structs import replace

from shoal.admission import Admission
from shoal.config import Rules, Settings
from shoal.errors import FetchError
from shoal.fetch.http import HttpFetcher
from shoal.fetch.port import Response
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.judging import Judge, note_answer, one_line
from shoal.sitemap_tasks import can_be_read, read_listed
from shoal.sitemaps import MAX_BYTES
from shoal.visit import Report, Visitor, give_back, page_log, too_late

log = logging.getLogger("shoal")


class SitemapVisitor:
    """Visits sitemaps for one worker. They may be larger than pages: so few are fetched at once
    that they take no more memory than pages may."""

    def __init__(self, settings: Settings, worker: str) -> None:
        most = max(settings.max_body_bytes, MAX_BYTES)
        at_once = settings.concurrency * settings.max_body_bytes // most
        self._fetcher = HttpFetcher(replace(settings, max_body_bytes=most))
        self._room = asyncio.Semaphore(max(at_once, 1))
        self._worker = worker

    def begin(self, rules: Rules, of_pages: Visitor) -> None:
        """Visit under these rules from now on. Who visits pages knows what robots.txt says."""
        self._of_pages = of_pages
        self._admission = Admission(rules)
        self._judge = Judge(rules, self._admission)

    async def visit(self, lease: Lease, decided: float) -> Report:
        """One try."""
        if (hindrance := await self._of_pages.hindrance(lease, decided)) is not None:
            return hindrance
        async with self._room:
            if too_late(lease, decided):
                return give_back(lease, sent=False)
            started_at = time.time()
            try:
                response = await self._fetcher.fetch(lease.task)
            except FetchError as error:
                outcome = self._judge.unanswered(lease, error)
                return Report(outcome, page_log(outcome, self._worker, started_at, None, b""))
            outcome = await self._read(lease, response)
        note_answer(outcome, response)
        status, body = response.status, response.body
        return Report(outcome, page_log(outcome, self._worker, started_at, status, body))

    async def close(self) -> None:
        """Close the connections."""
        await self._fetcher.close()

    async def _read(self, lease: Lease, response: Response) -> Outcome:
        task = lease.task
        if not can_be_read(task, response.status):
            return self._judge.answered(lease, response)
        listed = await read_listed(
            task, lease.fingerprint, response.status, response.body, self._admission
        )
        outcome = Outcome(lease=lease, verdict=Verdict.DONE, follow_ups=listed.entries)
        outcome.filtered = listed.filtered
        if listed.problem:
            # What was found counts. That there may be more, people must hear of.
            outcome.verdict, outcome.reason = Verdict.DEAD, one_line(listed.problem)
            log.warning("%s: %s", task.url, outcome.reason)
        return outcome
