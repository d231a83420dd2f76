"""Reads pages: the spider's handlers run, and what they give is limited, admitted and compared."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from shoal.archive.port import RawPage
from shoal.config import Rules
from shoal.core.content import page_digest
from shoal.core.set_cookie import HEADER
from shoal.core.task import Task, decode, encode, without_unknown
from shoal.errors import BadUrl, OwnFault, SessionExpired
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry, Lease, Outcome, Verdict
from shoal.results.near import simhash
from shoal.spider.asking import Retry
from shoal.spider.following import accepted
from shoal.spider.page import Page
from shoal.spider.reading import Reading, read
from shoal.spider.spider import Spider
from shoal.worker.report import Report
from shoal.worker.visits.blocks import Blocked, SpiderGuard
from shoal.worker.visits.canonical import alias_of
from shoal.worker.visits.catalogue_pages import NextTasks, Pager
from shoal.worker.visits.cookies import keeps_cookies
from shoal.worker.visits.known_links import KnownUrls
from shoal.worker.visits.outcomes import is_success, one_line, raised
from shoal.worker.visits.visitor import Visit
from shoal.worker.visits.wanted_files import add_files

ADMIT_AT_ONCE = 1_000
"""Links that are admitted before the event loop gets a turn: about ten milliseconds."""

SET_COOKIE = HEADER.lower()

log = logging.getLogger("shoal")


class PageReader:
    """Reads pages with a spider, under the rules of a crawl."""

    def __init__(
        self,
        spider: Spider,
        rules: Rules,
        admission: Admission,
        known_urls: KnownUrls,
        *,
        keeps_raw: bool = False,
        prove: Callable[[Page], None] | None = None,
    ) -> None:
        """`prove` raises SessionExpired for a page that shows that its identity is logged out."""
        self._spider = spider
        self._rules = rules
        self._admission = admission
        self._known_urls = known_urls
        self._keeps_raw = keeps_raw
        self._prove = prove
        self._keeps_cookies = keeps_cookies(rules)
        self._pager = Pager(spider)
        self._guard = SpiderGuard(spider)
        self._is_guarded = bool(self._guard)
        self._accept = frozenset(accepted(spider.accept))

    def can_read(self, task: Task, status: int) -> bool:
        """Whether an answer with this status is read as a page."""
        return is_success(status) or self.accepts(task, status)

    def accepts(self, task: Task, status: int) -> bool:
        """Whether the spider or the task names this status in `accept`."""
        return status in self._accept or status in task.accept

    async def read(self, visit: Visit) -> Report:
        """Run the task's handler on its page."""
        page = self._page_of(visit)
        await page._weigh()
        if self._is_guarded or page.session is not None:
            try:
                self._check(page)
            except (Blocked, SessionExpired, OwnFault, Retry):
                raise
            except Exception as error:  # Spider code raised, as a handler may.
                return visit.report(raised(visit.lease, error))
        raw = _raw(visit, keeps_cookies=self._keeps_cookies) if self._keeps_raw else None
        further = self._further(page, visit)
        reading = await read(self._spider, page, visit.fetched_at, canonical=self._rules.canonical)
        if isinstance(reading.error, SessionExpired) and page.session is not None:
            raise reading.error
        if isinstance(reading.error, Retry):
            raise reading.error
        if reading.error is not None:
            outcome = raised(visit.lease, reading.error)
            outcome.follow_ups = await self._admitted(visit.lease, further.tasks)
            report = visit.report(outcome)
        else:
            self._cut_links(reading)
            # In front: the handler may follow the same pages, and the first of duplicates counts.
            reading.tasks = [*further.tasks, *reading.tasks]
            report = await self._harvested(page, visit, reading)
            _note_warning(report, further.warning)
        report.raw = raw
        return report

    def _further(self, page: Page, visit: Visit) -> NextTasks:
        """Return the pages of a catalogue that follow. An answer for a missing page says nothing
        about other pages, even where the spider wants to read it."""
        if is_success(page.status):
            return self._pager.after(page)
        reason = f"HTTP {page.status}"
        dropped = Outcome(lease=visit.lease, verdict=Verdict.DROPPED, reason=reason)
        return self._pager.without(dropped)

    def _check(self, page: Page) -> None:
        """Check a page before its handler runs. Raises Blocked, SessionExpired, and what the spider
        raises.

        What `expect` names is looked for last: a page for logged-out visitors seldom has it.
        """
        said = self._guard.ask(page)
        if page.session is not None and self._prove is not None:
            self._prove(page)
        if said is None and is_success(page.status):
            self._guard.look(page)

    def clears(self, visit: Visit) -> bool:
        """Whether the spider says that what looks like a block is none."""
        return self._is_guarded and self._guard.clears(self._page_of(visit))

    async def follow_without_page(self, outcome: Outcome, status: int | None = None) -> None:
        """Add the pages of a catalogue that follow although this page could not be had."""
        further = self._pager.without(outcome, status)
        further_pages = await self._admitted(outcome.lease, further.tasks)
        outcome.follow_ups = [*further_pages, *outcome.follow_ups]

    def _page_of(self, visit: Visit) -> Page:
        page = visit.page()
        page.max_links = self._rules.max_links_per_page
        return page

    def _cut_links(self, reading: Reading) -> None:
        """Leave out links beyond what one page may lead to."""
        limit = self._rules.max_links_per_page
        reading.links_cut += max(len(reading.tasks) - limit, 0)
        del reading.tasks[limit:]

    async def _harvested(self, page: Page, visit: Visit, reading: Reading) -> Report:
        """Return the report on a page whose handler has succeeded."""
        outcome = Outcome(lease=visit.lease, verdict=Verdict.DONE)
        fresh = self._known_urls.fresh(reading.tasks)
        outcome.follow_ups = await self._admitted(visit.lease, fresh)
        outcome.filtered = len(fresh) - len(outcome.follow_ups) + reading.links_cut
        outcome.duplicates = len(reading.tasks) - len(fresh)
        outcome.items, outcome.rejected = len(reading.items), len(reading.rejected)
        refused = []
        if reading.files or reading.no_files:
            refused = await add_files(outcome, reading, self._admission)
        report = visit.report(outcome)
        report.items, report.rejected, report.files = reading.items, reading.rejected, refused
        await self._compare(page, report)
        _note_warning(report, _too_many(page.url, reading.links_cut))
        return report

    async def _compare(self, page: Page, report: Report) -> None:
        """Record what identifies the same or nearly the same page: rel=canonical and the
        simhash."""
        if self._rules.canonical and (alias := alias_of(page)):
            others = await self._admitted(report.outcome.lease, [alias])
            others = [other for other in others if other.fingerprint != page.fingerprint]
            # In front: the page may link to it, and the first of duplicates counts.
            report.outcome.follow_ups = [*others, *report.outcome.follow_ups]
            if report.page is not None:
                report.page.links += len(others)
        if self._rules.simhash and report.page is not None:
            report.page.simhash = simhash(page.visible_text)

    async def _admitted(self, lease: Lease, tasks: list[Task]) -> list[Entry]:
        admitted = []
        for number, task in enumerate(tasks, 1):
            if number % ADMIT_AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                admitted.append(self._admission.admit(task, lease.task.site))
            except BadUrl:
                continue
        return admitted


def _too_many(url: str, cut: int) -> str:
    """Log links that were left out, and return the warning for the page. Empty: none were."""
    if not cut:
        return ""
    log.warning("%s: %d links are not followed (max_links_per_page)", url, cut)
    return f"{cut:,} links of it are not followed (max_links_per_page)"


def _note_warning(report: Report, warning: str) -> None:
    """Show a warning also where people look a page up: in its outcome and in the page log."""
    if warning and report.page is not None:
        report.outcome.reason = report.page.error = one_line(warning)


def _raw(visit: Visit, *, keeps_cookies: bool) -> RawPage:
    """Return the page as it was received.

    Its task is a copy, because the handler may change the one it is given. Cookies that are kept
    are not archived, nor are fields of the task that this version does not know.
    """
    response, identity = visit.response, visit.lease.identity
    task = decode(encode(without_unknown(visit.lease.task)))
    task.cookies = None
    headers = list(response.headers.items())
    if keeps_cookies or identity is not None:
        headers = [(name, value) for name, value in headers if name.lower() != SET_COOKIE]
    return RawPage(
        task=task,
        fingerprint=visit.lease.fingerprint,
        status=response.status,
        headers=headers,
        fetched_at=visit.fetched_at,
        body=response.body,
        digest=page_digest(response.body),
        identity="" if identity is None else identity.name,
    )
