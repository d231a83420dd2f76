"""One try at one task: robots.txt, fetch, parse, validate. Touches the site and nothing else.

Whatever happens, a visit ends in a Report; only a cancelled one raises.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec

from shoal.admission import Admission
from shoal.config import Rules
from shoal.errors import BadUrl, FetchError, Refused
from shoal.fetch.port import Fetcher, Response
from shoal.fetch.robots import MAX_HOPS, RobotsGate, next_hop, robots_url
from shoal.frontier.port import Entry, Lease, Outcome, Robots, Verdict
from shoal.items import store_form
from shoal.judging import Judge, note_answer, raised
from shoal.known import KnownUrls
from shoal.page import Page
from shoal.policy import SEND_SLACK_S
from shoal.results.port import PageLog, RejectedItem, StoredItem
from shoal.spider import Harvest, Spider, harvest
from shoal.task import Task
from shoal.urls import parse

RobotsSource = Callable[[str], Awaitable[Robots | None]]


class Report(msgspec.Struct):
    """What one try gave: rows to be saved, then the outcome to be finished with."""

    outcome: Outcome
    page: PageLog | None = None
    items: list[StoredItem] = []
    rejected: list[RejectedItem] = []


class Visitor:
    """Visits pages for one worker."""

    def __init__(
        self,
        spider: Spider,
        fetcher: Fetcher,
        rules: Rules,
        gate: RobotsGate,
        known_robots: RobotsSource,
        known_urls: KnownUrls,
        worker: str,
    ) -> None:
        self._spider = spider
        self._fetcher = fetcher
        self._rules = rules
        self._gate = gate
        self._known_robots = known_robots
        self._known_urls = known_urls
        self._worker = worker
        self._admission = Admission(rules)
        self._judge = Judge(rules, self._admission)

    async def visit(self, lease: Lease, decided: float) -> Report:
        """One try. `decided` is the monotonic moment of the grant: permission to send is short."""
        if self._rules.robots:
            if lease.robots_at is None:
                return await self._learn_robots(lease, decided)
            refusal = await self._robots_refusal(lease, lease.robots_at)
            if refusal is not None:
                return refusal
        if _too_late(lease, decided):
            return give_back(lease, sent=False)
        started_at = time.time()
        try:
            response = await self._fetcher.fetch(lease.task)
        except FetchError as error:
            return self._report(self._judge.unanswered(lease, error), started_at, None)
        report = await self._read(lease, response, started_at)
        note_answer(report.outcome, response)
        return report

    # robots.txt

    async def _learn_robots(self, lease: Lease, decided: float) -> Report:
        """This lease's permission goes to robots.txt; its task is given back."""
        known = await self._known_robots(lease.task.site)
        moved = known if known and known.location else None
        if _too_late(lease, decided):
            return give_back(lease, sent=False)
        request = Task(url=moved.location if moved else robots_url(lease.task.url))
        try:
            answer: Response | FetchError = await self._fetcher.fetch(request)
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
            return await self._parse(lease, response, started_at)
        return self._report(self._judge.answered(lease, response), started_at, response)

    async def _parse(self, lease: Lease, response: Response, started_at: float) -> Report:
        page = Page(
            url=lease.task.url,
            status=response.status,
            headers=response.headers,
            body=response.body,
            task=lease.task,
            fingerprint=lease.fingerprint,
        )
        try:
            found = await harvest(self._spider, page)
        except BaseException as error:  # Also sys.exit(): a page must not end its worker.
            if _is_meant_for_us(error):
                raise
            return self._report(raised(lease, error), started_at, response)
        return self._harvested(lease, response, started_at, found)

    def _harvested(
        self, lease: Lease, response: Response, started_at: float, found: Harvest
    ) -> Report:
        outcome = Outcome(lease=lease, verdict=Verdict.DONE)
        fresh = [task for task in found.tasks if task not in self._known_urls]
        outcome.follow_ups = self._admitted(fresh)
        outcome.filtered = len(fresh) - len(outcome.follow_ups)
        outcome.duplicates = len(found.tasks) - len(fresh)
        report = self._report(outcome, started_at, response)
        for item in found.items:
            row = store_form(
                item,
                url=lease.task.url,
                fingerprint=lease.fingerprint,
                scraped_at=started_at + response.duration_s,
            )
            if isinstance(row, StoredItem):
                report.items.append(row)
            else:
                report.rejected.append(row)
        outcome.items, outcome.rejected = len(report.items), len(report.rejected)
        if report.page is not None:
            report.page.items = outcome.items
        return report

    def _admitted(self, tasks: list[Task]) -> list[Entry]:
        admitted = []
        for task in tasks:
            try:
                admitted.append(self._admission.admit(task))
            except BadUrl:
                continue
        return admitted

    def _report(self, outcome: Outcome, started_at: float, response: Response | None) -> Report:
        task = outcome.lease.task
        page = PageLog(
            fingerprint=outcome.lease.fingerprint,
            url=task.url,
            worker=self._worker,
            attempt=task.retry_count + 1,
            started_at=started_at,
            duration_s=time.time() - started_at,
            verdict=outcome.verdict,
            status=response.status if response else None,
            body_bytes=len(response.body) if response else 0,
            links=len(outcome.follow_ups) + outcome.duplicates,
            error=outcome.reason,
            parent=task.parent,
        )
        return Report(outcome, page)


def give_back(lease: Lease, *, sent: bool) -> Report:
    """The task goes back to the queue as if it had not been tried."""
    return Report(Outcome(lease=lease, verdict=Verdict.RETURNED, sent=sent))


def _too_late(lease: Lease, decided: float) -> bool:
    return lease.paced and time.monotonic() - decided > SEND_SLACK_S


def _is_meant_for_us(error: BaseException) -> bool:
    """Whether it came through the handler from outside: Ctrl-C, or the visit was cancelled."""
    if isinstance(error, asyncio.CancelledError):
        visit = asyncio.current_task()
        return visit is not None and visit.cancelling() > 0
    return isinstance(error, KeyboardInterrupt)
