"""One try at one task: robots.txt, fetch, parse, validate. Touches the site and nothing else.

Whatever happens, a visit ends in a Report; only a cancelled one raises.
"""

from __future__ import annotations

import asyncio
import random
import time
import traceback
from collections.abc import Awaitable, Callable

import msgspec

from shoal.admission import Admission, NotAdmitted
from shoal.config import Rules
from shoal.errors import BadUrl, FetchError, Refused
from shoal.fetch.port import Fetcher, Response
from shoal.fetch.robots import MAX_HOPS, RobotsGate, next_hop, robots_url
from shoal.frontier.port import Entry, Lease, Outcome, Pushback, Robots, Verdict
from shoal.items import store_form
from shoal.known import KnownUrls
from shoal.page import Page
from shoal.policy import (
    GONE_STATUSES,
    MAX_REDIRECTS,
    PUSHBACK_STATUSES,
    REDIRECT_STATUSES,
    RETRY_STATUSES,
    SEND_SLACK_S,
    may_retry,
    parse_retry_after,
    retry_wait_s,
)
from shoal.results.port import PageLog, RejectedItem, StoredItem
from shoal.spider import Harvest, Spider, harvest
from shoal.task import Task
from shoal.urls import join, parse

MAX_DETAIL = 8_000
MAX_REASON = 500

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
            outcome = self._failed(lease, str(error), retryable=error.retryable)
            return self._report(outcome, started_at, None)
        report = await self._read(lease, response, started_at)
        report.outcome.body_bytes = len(response.body)
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
            return Report(self._failed(lease, str(error), retryable=False, sent=False))
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
            return Report(self._failed(lease, stored.error, retryable=True, sent=False))
        if self._gate.allows(site, robots_at, stored, url):
            return None
        reason = "robots.txt forbids it"
        return Report(Outcome(lease=lease, verdict=Verdict.DROPPED, reason=reason, sent=False))

    # The answer

    async def _read(self, lease: Lease, response: Response, started_at: float) -> Report:
        status = response.status
        if 200 <= status < 300:
            return await self._parse(lease, response, started_at)
        location = response.headers.get("Location")
        if status in REDIRECT_STATUSES and location:
            outcome = self._redirected(lease, status, location)
        elif status in RETRY_STATUSES:
            outcome = self._pushed_back(lease, response)
        else:
            verdict = Verdict.DROPPED if status in GONE_STATUSES else Verdict.DEAD
            outcome = Outcome(lease=lease, verdict=verdict, reason=f"HTTP {status}")
        return self._report(outcome, started_at, response)

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
            outcome = Outcome(
                lease=lease,
                verdict=Verdict.DEAD,
                reason=_one_line(f"{type(error).__name__}: {error}"),
                detail=_tail(error),
            )
            return self._report(outcome, started_at, response)
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

    def _redirected(self, lease: Lease, status: int, location: str) -> Outcome:
        """The target is a task of its own: it waits for its own permission like any other."""
        task = lease.task
        try:
            target = self._admission.admit(_redirect(task, status, join(parse(task.url), location)))
        except NotAdmitted as error:
            return Outcome(lease=lease, verdict=Verdict.DROPPED, reason=f"redirected: {error}")
        except BadUrl as error:
            return Outcome(lease=lease, verdict=Verdict.DEAD, reason=f"redirected: {error}")
        been = {self._admission.fingerprint(url) for url in target.task.redirects}
        if self._admission.fingerprint(target.task.url) in been:
            path = " -> ".join([*target.task.redirects, target.task.url])
            reason = _one_line(f"redirects in a loop: {path}")
            return Outcome(lease=lease, verdict=Verdict.DEAD, reason=reason)
        if len(target.task.redirects) > MAX_REDIRECTS:
            reason = f"more than {MAX_REDIRECTS} redirects, from {target.task.redirects[0]}"
            return Outcome(lease=lease, verdict=Verdict.DEAD, reason=reason)
        reason = f"HTTP {status} to {target.task.url}"
        return Outcome(lease=lease, verdict=Verdict.DONE, reason=reason, follow_ups=[target])

    def _pushed_back(self, lease: Lease, response: Response) -> Outcome:
        wait_s = parse_retry_after(response.headers.get("Retry-After"), time.time())
        reason = f"HTTP {response.status}"
        outcome = self._failed(lease, reason, retryable=True, retry_after_s=wait_s)
        if response.status in PUSHBACK_STATUSES:
            outcome.pushback = Pushback(wait_s)
        return outcome

    def _failed(
        self,
        lease: Lease,
        reason: str,
        *,
        retryable: bool,
        retry_after_s: float | None = None,
        sent: bool = True,
    ) -> Outcome:
        failures = lease.task.retry_count + 1
        limit = lease.task.max_retries
        limit = self._rules.max_retries if limit is None else limit
        outcome = Outcome(lease=lease, verdict=Verdict.DEAD, reason=_one_line(reason), sent=sent)
        if retryable and may_retry(failures, limit):
            outcome.verdict = Verdict.RETRY
            # Spreads retries of a fleet; nothing secret hangs on it.
            outcome.retry_in_s = retry_wait_s(failures, random.random(), retry_after_s)  # noqa: S311
        return outcome

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


def _redirect(task: Task, status: int, url: str) -> Task:
    """The task that a redirect asks for. Browsers turn all but 307 and 308 into a GET."""
    keeps_method = status in (307, 308) or task.method in ("GET", "HEAD")
    return msgspec.structs.replace(
        task,
        url=url,
        task_id="",
        retry_count=0,
        method=task.method if keeps_method else "GET",
        body=task.body if keeps_method else None,
        redirects=[*task.redirects, task.url],
    )


def _is_meant_for_us(error: BaseException) -> bool:
    """Whether it came through the handler from outside: Ctrl-C, or the visit was cancelled."""
    if isinstance(error, asyncio.CancelledError):
        visit = asyncio.current_task()
        return visit is not None and visit.cancelling() > 0
    return isinstance(error, KeyboardInterrupt)


def _one_line(text: str) -> str:
    return _storable(" ".join(text.split())[:MAX_REASON])


def _tail(error: BaseException) -> str:
    """The end of the traceback: where a long one has its cause."""
    return _storable("".join(traceback.format_exception(error))[-MAX_DETAIL:])


def _storable(text: str) -> str:
    """Text that every store takes: what a page said may hold lone surrogates."""
    return text.encode("utf-8", "replace").decode()
