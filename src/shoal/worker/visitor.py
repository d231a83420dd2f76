"""One try at one task: robots.txt, fetch, parse, validate. Touches the site and nothing else.

Whatever happens, a visit ends in a Report; only a cancelled one raises.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import ClassVar

from shoal.archive.port import RawPage
from shoal.config import Rules
from shoal.core.content import page_digest
from shoal.core.records import Robots
from shoal.core.task import Task, decode, encode
from shoal.core.urls import parse
from shoal.errors import BadUrl, FetchError, OwnFault, Refused, Starved, TooLate
from shoal.fetch.port import Fetcher, Response
from shoal.fetch.robots import MAX_HOPS, RobotsGate, next_hop, robots_url
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry, Lease, Outcome, Verdict
from shoal.results.near import simhash
from shoal.results.port import KnownPage
from shoal.runtime.patience import Shortage
from shoal.spider.harvest import Reading, read
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.worker.canonical import ALIAS, alias_of, dropped_alias
from shoal.worker.catalogue_pages import Pager
from shoal.worker.known_links import KnownUrls
from shoal.worker.outcomes import Judge, note_answer, one_line, raised
from shoal.worker.recrawl import (
    NOT_MODIFIED,
    Earlier,
    carry_on,
    conditional,
    note_version,
    seen_again,
)
from shoal.worker.report import Report, give_back, page_log, send_by, too_late

ADMIT_AT_ONCE = 1_000
"""Links that are looked at before others have their turn: some ten milliseconds."""

log = logging.getLogger("shoal")

RobotsSource = Callable[[str], Awaitable[Robots | None]]


class Visitor:
    """Visits pages for one worker."""

    _judged_by: ClassVar[type[Judge]] = Judge

    def __init__(
        self,
        spider: Spider,
        fetcher: Fetcher,
        rules: Rules,
        gate: RobotsGate,
        known_robots: RobotsSource,
        known_urls: KnownUrls,
        worker: str,
        *,
        keeps_raw: bool = False,
        earlier: Earlier | None = None,
    ) -> None:
        self._spider = spider
        self._fetcher = fetcher
        self._rules = rules
        self._gate = gate
        self._known_robots = known_robots
        self._known_urls = known_urls
        self._worker = worker
        self._keeps_raw = keeps_raw
        self._earlier = earlier
        self._admission = Admission(rules)
        self._judge = self._judged_by(rules, self._admission)
        self._pager = Pager(spider)
        self._shortage = Shortage("large and odd pages cannot be read")

    async def visit(self, lease: Lease, decided: float) -> Report:
        """One try. `decided` is the monotonic moment of the grant: permission to send is short."""
        if lease.task.job_type == ALIAS:
            return Report(dropped_alias(lease))
        if self._rules.robots:
            if lease.robots_at is None:
                return await self._learn_robots(lease, decided)
            refusal = await self._robots_refusal(lease, lease.robots_at)
            if refusal is not None:
                await self._turn_past(refusal.outcome)
                return refusal
        known = await self._earlier.page(lease) if self._earlier else None
        request = conditional(lease.task, known) if known else lease.task
        started_at = lease.now()
        try:
            response = await self._fetch(request, lease, decided)
        except (OwnFault, TooLate):
            return give_back(lease, sent=False)
        except FetchError as error:
            outcome = self._judge.unanswered(lease, error)
            await self._turn_past(outcome)
            return self._report(outcome, started_at, None)
        if known and response.status == NOT_MODIFIED:
            report = self._unchanged(lease, response, started_at, known)
        else:
            report = await self._read(lease, response, started_at)
        note_answer(report.outcome, response)
        return report

    async def _fetch(self, request: Task, lease: Lease, decided: float) -> Response:
        """Send a request, if that is still allowed."""
        if too_late(lease, decided):
            raise TooLate("the permission to send has lapsed")
        return await self._fetcher.fetch(request, send_by(lease, decided))

    # robots.txt

    async def _learn_robots(self, lease: Lease, decided: float) -> Report:
        """This lease's permission goes to robots.txt; its task is given back."""
        known = await self._known_robots(lease.task.site)
        moved = known if known and known.location else None
        request = Task(url=moved.location if moved else robots_url(lease.task.url))
        try:
            answer: Response | FetchError = await self._fetch(request, lease, decided)
        except (OwnFault, TooLate):
            return give_back(lease, sent=False)
        except Refused as error:  # The page itself would be refused too.
            return Report(self._judge.failed(lease, str(error), retryable=False, sent=False))
        except FetchError as error:
            answer = error
        report = give_back(lease, sent=True)
        report.outcome.robots = self._robots_elsewhere(lease, answer, moved) or self._gate.read(
            answer
        )
        return report

    def _robots_elsewhere(
        self, lease: Lease, answer: Response | FetchError, moved: Robots | None
    ) -> Robots | None:
        """Where to look next, if that is on the same host: only its permission is ours to give."""
        hops = moved.hops if moved else 0
        location = next_hop(answer) if isinstance(answer, Response) else None
        if location is None or hops >= MAX_HOPS or parse(location).host != lease.task.site:
            return None
        return Robots("", 0.0, location=location, hops=hops + 1)

    async def _robots_refusal(self, lease: Lease, robots_at: float) -> Report | None:
        site, url = lease.task.site, lease.task.url
        if self._gate.recall(site, robots_at, url):
            return None
        stored = await self._known_robots(site)
        if stored is None:  # The crawl was started over under our feet.
            return give_back(lease, sent=False)
        if stored.error:
            return Report(self._judge.failed(lease, stored.error, retryable=True, sent=False))
        if self._gate.allows(site, robots_at, stored, url):
            return None
        reason = "robots.txt forbids it"
        return Report(Outcome(lease=lease, verdict=Verdict.DROPPED, reason=reason, sent=False))

    # The answer

    async def _read(self, lease: Lease, response: Response, started_at: float) -> Report:
        if 200 <= response.status < 300:
            try:
                return await self._parse(lease, response, started_at)
            except Starved as error:
                outcome = self._judge.failed(lease, str(error), retryable=True)
                await self._turn_past(outcome)
                return self._report(outcome, started_at, response)
            except OwnFault as error:
                await self._shortage.pause(error)
                return give_back(lease, sent=True)
        outcome = self._judge.answered(lease, response)
        await self._turn_past(outcome, response.status)
        return self._report(outcome, started_at, response)

    def _unchanged(
        self, lease: Lease, response: Response, started_at: float, known: KnownPage
    ) -> Report:
        """The page is as an earlier crawl has read it, and so are its items."""
        outcome = Outcome(lease=lease, verdict=Verdict.DONE, unchanged=True, items=len(known.items))
        report = self._report(outcome, started_at, response)
        report.items = seen_again(known.items, started_at + response.duration_s)
        if report.page is not None:
            carry_on(known, report.page)
        return report

    async def _parse(self, lease: Lease, response: Response, started_at: float) -> Report:
        page = Page(
            url=lease.task.url,
            status=response.status,
            headers=response.headers,
            body=response.body,
            task=lease.task,
            fingerprint=lease.fingerprint,
            max_links=self._rules.max_links_per_page,
        )
        await page._weigh()
        fetched_at = started_at + response.duration_s
        raw = _raw(lease, response, fetched_at) if self._keeps_raw else None
        further = self._pager.after(page)
        reading = await read(self._spider, page, fetched_at, canonical=self._rules.canonical)
        if reading.error is not None:
            outcome = raised(lease, reading.error)
            outcome.follow_ups = await self._admitted(lease, further.tasks)
            report = self._report(outcome, started_at, response)
        else:
            self._cut_links(reading)
            # In front: the handler may follow the same pages, and of two the first counts.
            reading.tasks = [*further.tasks, *reading.tasks]
            report = await self._harvested(page, lease, response, started_at, reading)
            _note_warning(report, further.warning)
        report.raw = raw
        return report

    async def _turn_past(self, outcome: Outcome, status: int | None = None) -> None:
        """A page of a catalogue may lead on even where it could not be had."""
        further = self._pager.without(outcome, status)
        further_pages = await self._admitted(outcome.lease, further.tasks)
        outcome.follow_ups = [*further_pages, *outcome.follow_ups]

    def _cut_links(self, reading: Reading) -> None:
        """Leave out what is more than one page may lead to."""
        limit = self._rules.max_links_per_page
        reading.links_cut += max(len(reading.tasks) - limit, 0)
        del reading.tasks[limit:]

    async def _harvested(
        self, page: Page, lease: Lease, response: Response, started_at: float, reading: Reading
    ) -> Report:
        outcome = Outcome(lease=lease, verdict=Verdict.DONE)
        fresh = self._known_urls.fresh(reading.tasks)
        outcome.follow_ups = await self._admitted(lease, fresh)
        outcome.filtered = len(fresh) - len(outcome.follow_ups) + reading.links_cut
        outcome.duplicates = len(reading.tasks) - len(fresh)
        outcome.items, outcome.rejected = len(reading.items), len(reading.rejected)
        report = self._report(outcome, started_at, response)
        report.items, report.rejected = reading.items, reading.rejected
        await self._compare(page, report)
        _note_warning(report, _too_many(page.url, reading.links_cut))
        return report

    async def _compare(self, page: Page, report: Report) -> None:
        """What the spider wants to know of pages that are the same, or nearly so."""
        if self._rules.canonical and (alias := alias_of(page)):
            others = await self._admitted(report.outcome.lease, [alias])
            others = [other for other in others if other.fingerprint != page.fingerprint]
            # In front: the page may well link to it, and of two the first counts.
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

    def _report(self, outcome: Outcome, started_at: float, response: Response | None) -> Report:
        status, body = (response.status, response.body) if response else (None, b"")
        page = page_log(outcome, self._worker, started_at, status, body)
        if response is not None:
            note_version(page, response.headers)
        return Report(outcome, page)


def _too_many(url: str, cut: int) -> str:
    """What is to be said of a page if links of it were left out."""
    if not cut:
        return ""
    log.warning("%s: %d links are not followed (max_links_per_page)", url, cut)
    return f"{cut:,} links of it are not followed (max_links_per_page)"


def _note_warning(report: Report, warning: str) -> None:
    """What a page had to be warned of is said where people ask for the page, too."""
    if warning and report.page is not None:
        report.outcome.reason = report.page.error = one_line(warning)


def _raw(lease: Lease, response: Response, fetched_at: float) -> RawPage:
    """The page as it came. Its task is a copy: the handler may change what it is given."""
    return RawPage(
        task=decode(encode(lease.task)),
        fingerprint=lease.fingerprint,
        status=response.status,
        headers=list(response.headers.items()),
        fetched_at=fetched_at,
        body=response.body,
        digest=page_digest(response.body),
    )
