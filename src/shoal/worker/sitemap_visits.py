"""Visits to sitemaps: what they list is queued, and no spider is asked."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from shoal.config import Settings
from shoal.errors import FetchError, TooLarge
from shoal.fetch.port import Response
from shoal.frontier.values import Entry, Lease, Outcome, Verdict
from shoal.seeds.sitemap_tasks import can_be_read, is_large, read_listed, redirected_id, with_room
from shoal.seeds.sitemap_xml import MAX_BYTES
from shoal.worker.outcomes import Judge, one_line
from shoal.worker.report import Report
from shoal.worker.visitor import Visitor

log = logging.getLogger("shoal")


def for_large_ones(settings: Settings) -> Settings:
    """The settings of whoever fetches sitemaps that are larger than pages may be."""
    return replace(settings, max_body_bytes=max(settings.max_body_bytes, MAX_BYTES))


def large_ones_at_once(settings: Settings) -> int:
    """How many may be in a worker's hands: they take no more memory than pages may."""
    of_pages = settings.concurrency * settings.max_body_bytes
    return max(of_pages // for_large_ones(settings).max_body_bytes, 1)


class SitemapJudge(Judge):
    """Judges tries at sitemaps where they are not like pages."""

    def answered(self, lease: Lease, response: Response) -> Outcome:
        """A redirect leads to a sitemap of the same reading."""
        outcome = super().answered(lease, response)
        outcome.follow_ups = [self._in_its_reading(entry) for entry in outcome.follow_ups]
        return outcome

    def unanswered(self, lease: Lease, error: FetchError) -> Outcome:
        """One that is larger than a page is asked for again, when there is room for it."""
        if not isinstance(error, TooLarge) or is_large(lease.task):
            return super().unanswered(lease, error)
        again = self._admission.admitted_as(with_room(lease.task, lease.fingerprint))
        reason = "larger than a page may be: it is asked for again, with room for it"
        return Outcome(lease=lease, verdict=Verdict.DONE, reason=reason, follow_ups=[again])

    def _in_its_reading(self, target: Entry) -> Entry:
        task_id = redirected_id(target.task)
        if not task_id:
            return target
        named = replace(target.task, dont_filter=True, task_id=task_id)
        return self._admission.admitted_as(named)


class SitemapVisitor(Visitor):
    """Visits sitemaps for one worker, as it visits pages."""

    _judged_by = SitemapJudge

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
            outcome.ours = True
            log.warning("%s: %s", task.url, outcome.reason)
        return self._report(outcome, started_at, response)
