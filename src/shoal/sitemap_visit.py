"""Visits to sitemaps: what they list is queued, and no spider is asked."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from shoal.config import Settings
from shoal.fetch.port import Response
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.judging import one_line
from shoal.sitemap_tasks import can_be_read, read_listed
from shoal.sitemaps import MAX_BYTES
from shoal.visit import Report, Visitor

log = logging.getLogger("shoal")


def for_sitemaps(settings: Settings) -> Settings:
    """The settings of whoever fetches sitemaps: they may be larger than pages."""
    return replace(settings, max_body_bytes=max(settings.max_body_bytes, MAX_BYTES))


def sitemaps_at_once(settings: Settings) -> int:
    """How many may be in a worker's hands: they take no more memory than pages may."""
    of_pages = settings.concurrency * settings.max_body_bytes
    return max(of_pages // for_sitemaps(settings).max_body_bytes, 1)


class SitemapVisitor(Visitor):
    """Visits sitemaps for one worker, as it visits pages."""

    async def _read(self, lease: Lease, response: Response, started_at: float) -> Report:
        task, status = lease.task, response.status
        if not can_be_read(task, status):
            return await super()._read(lease, response, started_at)
        listed = await read_listed(task, lease.fingerprint, status, response.body, self._admission)
        outcome = Outcome(lease=lease, verdict=Verdict.DONE, follow_ups=listed.entries)
        outcome.filtered = listed.filtered
        if listed.problem:
            # What was found counts. That there may be more, people must hear of.
            outcome.verdict, outcome.reason = Verdict.DEAD, one_line(listed.problem)
            log.warning("%s: %s", task.url, outcome.reason)
        return self._report(outcome, started_at, response)
