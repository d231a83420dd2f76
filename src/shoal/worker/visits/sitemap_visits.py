"""Visits to sitemaps: what they list is queued, and no spider is called."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from shoal.config import Settings
from shoal.core.failures import FailureKind
from shoal.core.task import Task
from shoal.errors import FetchError, TooLarge
from shoal.fetch.port import Response
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry, Lease, Outcome, Verdict
from shoal.seeds.sitemap_tasks import can_be_read, is_large, read_listed, redirected_id, with_room
from shoal.seeds.sitemap_xml import MAX_BYTES
from shoal.worker.report import Report
from shoal.worker.visits.outcomes import Judge, one_line
from shoal.worker.visits.visitor import Visit

log = logging.getLogger("shoal")


def for_large_ones(settings: Settings) -> Settings:
    """The settings of a fetcher for sitemaps that are larger than pages may be."""
    return replace(settings, max_body_bytes=max(settings.max_body_bytes, MAX_BYTES))


def large_ones_at_once(settings: Settings) -> int:
    """Return how many large sitemaps a worker may have in hand: they take no more memory than
    pages may."""
    of_pages = settings.concurrency * settings.max_body_bytes
    return max(of_pages // for_large_ones(settings).max_body_bytes, 1)


class SitemapJudge(Judge):
    """Judges tries at sitemaps where they differ from pages."""

    def answered(self, lease: Lease, response: Response, now: float, jitter: float) -> Outcome:
        """Judge an answer; a redirect leads to a sitemap of the same reading."""
        outcome = super().answered(lease, response, now, jitter)
        outcome.follow_ups = [self._in_its_reading(entry) for entry in outcome.follow_ups]
        return outcome

    def unanswered(self, lease: Lease, error: FetchError, jitter: float) -> Outcome:
        """Judge a missing answer. A sitemap that is larger than a page may be is requested again
        when there is room for it."""
        if not isinstance(error, TooLarge) or is_large(lease.task):
            return super().unanswered(lease, error, jitter)
        again = self._admission.admitted_as(with_room(lease.task, lease.fingerprint))
        reason = "larger than a page may be: it is asked for again, with room for it"
        return Outcome(
            lease=lease,
            verdict=Verdict.DONE,
            reason=reason,
            follow_ups=[again],
            wire_bytes=error.wire_bytes,
        )

    def _in_its_reading(self, target: Entry) -> Entry:
        task_id = redirected_id(target.task)
        if not task_id:
            return target
        named = replace(target.task, dont_filter=True, task_id=task_id)
        return self._admission.admitted_as(named)


class SitemapReader:
    """Reads sitemaps: all URLs that they list are queued."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    def can_read(self, task: Task, status: int) -> bool:
        """Whether an answer says which URLs there are."""
        return can_be_read(task, status)

    def accepts(self, task: Task, status: int) -> bool:
        """Always false: no spider names statuses for sitemaps."""
        return False

    async def read(self, visit: Visit) -> Report:
        """Queue what a sitemap lists, or the sitemaps that a robots.txt names."""
        lease, response = visit.lease, visit.response
        listed = await read_listed(
            lease.task, lease.fingerprint, response.status, response.body, self._admission
        )
        outcome = Outcome(lease=lease, verdict=Verdict.DONE, follow_ups=listed.entries)
        outcome.filtered = listed.filtered
        if listed.problem:
            # What was found counts, but the user must hear that there may be more.
            outcome.verdict, outcome.reason = Verdict.DEAD, one_line(listed.problem)
            outcome.kind, outcome.ours = FailureKind.HANDLER, True
            log.warning("%s: %s", lease.task.url, outcome.reason)
        return visit.report(outcome)

    def clears(self, visit: Visit) -> bool:
        """Always false: no spider says what a sitemap looks like."""
        return False

    async def follow_without_page(self, outcome: Outcome, status: int | None = None) -> None:
        """Add nothing: nothing follows from a sitemap that could not be had."""
