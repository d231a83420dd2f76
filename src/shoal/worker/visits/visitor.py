"""Makes one try at one task. Contacts the site and nothing else.

1. robots.txt: does it allow the page (`robots_visits`)?
2. Fetch: the request is sent, if its permission still holds (`sending`).
3. Judge what is not a page: no answer, a redirect, an error, a block (`outcomes`, `blocks`).
4. Read what is a page: handlers run, links are admitted (`page_reader`, `sitemap_visits`).
5. Report how it ended, and what is to be stored (`report`).

Whatever happens, a visit ends in a Report; only a cancelled one raises.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol, cast

import msgspec
from msgspec.structs import replace

from shoal.core.blocks import Block
from shoal.core.failures import kind_of
from shoal.core.identities import LeasedIdentity
from shoal.core.policy import RETRY_STATUSES
from shoal.core.task import Task
from shoal.errors import FetchError, OwnFault, SessionExpired, Starved, TooLate
from shoal.fetch.port import Fetcher, Response
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.results.port import KnownPage
from shoal.runtime.patience import Shortage, jitter
from shoal.spider.asking import Retry
from shoal.spider.outgoing import RequestHook, outgoing
from shoal.spider.page import Page
from shoal.spider.reading import is_meant_for_us
from shoal.worker.report import Report, give_back, not_due, note_identity, page_log
from shoal.worker.slots import nobody_waits
from shoal.worker.visits.blocks import Blocked, BlockWatch
from shoal.worker.visits.canonical import ALIAS, dropped_alias
from shoal.worker.visits.cookies import header_for, note_cookies
from shoal.worker.visits.failures import FailureHooks
from shoal.worker.visits.identity_visits import IdentityVisits
from shoal.worker.visits.outcomes import Judge, note_accepted, note_answer, raised
from shoal.worker.visits.recrawl import (
    NOT_MODIFIED,
    Earlier,
    carry_on,
    conditional,
    note_version,
    seen_again,
)
from shoal.worker.visits.robots_visits import RobotsVisits
from shoal.worker.visits.sending import Routes, no_routes, send

REDIRECTS = 300
"""From here on, a status is not that of a page, unless the spider or the task accepts it."""


class Visit(msgspec.Struct):
    """One try that was answered."""

    worker: str
    lease: Lease
    response: Response
    started_at: float

    @property
    def fetched_at(self) -> float:
        """The time at which the answer was complete."""
        return self.started_at + self.response.duration_s

    def page(self) -> Page:
        """Return the answer as a page."""
        lease, response = self.lease, self.response
        return Page(
            url=lease.task.url,
            status=response.status,
            headers=response.headers,
            body=response.body,
            task=lease.task,
            fingerprint=lease.fingerprint,
            session=None if lease.identity is None else lease.identity.name,
        )

    def report(self, outcome: Outcome) -> Report:
        """Return the report of this visit, with its entry for the page log."""
        response = self.response
        note_identity(outcome)
        page = page_log(outcome, self.worker, self.started_at, response.status, response.body)
        note_version(page, response.headers)
        return Report(outcome, page, status=response.status)


class Reader(Protocol):
    """Reads the answers to one kind of task."""

    def can_read(self, task: Task, status: int) -> bool:
        """Whether this reader reads such an answer. If not, the answer is judged by its status."""
        ...

    def accepts(self, task: Task, status: int) -> bool:
        """Whether the user wants such answers to be read, though their status is not that of a
        page."""
        ...

    async def read(self, visit: Visit) -> Report:
        """Read an answer. Raises OwnFault if this machine cannot read it, Blocked if it turns out
        to be a block, SessionExpired if it shows that its identity is logged out, and Retry if the
        spider asks for another try."""
        ...

    def clears(self, visit: Visit) -> bool:
        """Whether the reader knows that an answer which looks like a block is none."""
        ...

    async def follow_without_page(self, outcome: Outcome, status: int | None = None) -> None:
        """Add to the outcome what follows even though there was nothing to read."""
        ...


class _HookRaised(Exception):
    """What a hook raised before anything was sent. Whatever its type, it does not come from a
    fetcher."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class Visitor:
    """Makes a worker's visits to tasks whose answers one reader can read."""

    def __init__(
        self,
        worker: str,
        fetcher: Fetcher,
        reader: Reader,
        judge: Judge,
        robots: RobotsVisits | None = None,
        earlier: Earlier | None = None,
        routes: Routes = no_routes,
        *,
        keeps_cookies: bool = False,
        identities: IdentityVisits | None = None,
        request_hooks: Sequence[RequestHook] = (),
        failures: FailureHooks | None = None,
    ) -> None:
        """Without `robots`, robots.txt is ignored; without `earlier`, all pages are read anew;
        without `identities`, tasks with a session are given back."""
        self._worker = worker
        self._fetcher = fetcher
        self._reader = reader
        self._judge = judge
        self._robots = robots
        self._earlier = earlier
        self._routes = routes
        self._keeps_cookies = keeps_cookies
        self._identities = identities
        self._request_hooks = request_hooks
        self._failures = failures
        self._watch = BlockWatch()
        self._shortage = Shortage("large and odd pages cannot be read")

    async def visit(
        self, lease: Lease, send_by: float, answered: Callable[[], None] = nobody_waits
    ) -> Report:
        """Make one try. Its request may leave until `send_by`, by time.monotonic(), and not later.
        `answered` is called when the host has answered as a healthy one would."""
        if lease.task.job_type == ALIAS:
            return Report(dropped_alias(lease))
        if (due := lease.task.not_before) is not None and (early := not_due(lease, due)):
            return early
        instead = await self._instead(lease, send_by)
        if instead is not None:
            return await self._told(instead)
        return await self._try(lease, send_by, answered)

    async def _try(self, lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
        known = await self._earlier.page(lease) if self._earlier else None
        task = conditional(lease.task, known) if known else lease.task
        started_at = lease.now()
        try:
            if self._request_hooks:
                task = await self._hooked(task)
            response = await self._send(lease, task, send_by)
        except (OwnFault, TooLate):
            return give_back(lease, sent=False)
        except FetchError as error:
            return await self._unanswered(lease, error, started_at)
        except _HookRaised as hook:
            return await self._unsent(lease, hook.error, started_at)
        if response.status not in RETRY_STATUSES:
            answered()
            if lease.shared:
                # Requests that may leave now go out before this page is read. Where several are
                # answered at once, the host would be idle until the last of them is read.
                await asyncio.sleep(0)
        return await self._received(Visit(self._worker, lease, response, started_at), known)

    async def _received(self, visit: Visit, known: KnownPage | None) -> Report:
        task, response = visit.lease.task, visit.response
        if known and response.status == NOT_MODIFIED:
            report = _unchanged(visit, known)
        else:
            report = await self._answered(visit)
        self._note(report.outcome, response)
        if response.status >= REDIRECTS and self._reader.accepts(task, response.status):
            note_accepted(report.outcome, response, time.time())
        if report.outcome.verdict is Verdict.DONE:
            return report
        return await self._told(report, visit)

    async def _told(self, report: Report, visit: Visit | None = None) -> Report:
        """Tell the spider of a task that ends here without a page."""
        if self._failures is not None and self._failures.wants(report.outcome):
            try:
                await self._failures.tell(report, None if visit is None else visit.page())
            except OwnFault as error:
                await self._shortage.pause(error)
                return give_back(report.outcome.lease, sent=report.outcome.sent)
        return report

    async def _hooked(self, task: Task) -> Task:
        """Return the request that the spider's hooks make of a task."""
        try:
            return await outgoing(task, self._request_hooks)
        except BaseException as error:
            if is_meant_for_us(error):
                raise
            raise _HookRaised(error) from error

    async def _instead(self, lease: Lease, send_by: float) -> Report | None:
        """Spend the lease on what must come before its page: robots.txt, a login, or nothing at
        all. None: the page can be visited."""
        identity = lease.identity
        if identity is not None and (refusal := self._refusal(lease, identity)) is not None:
            return refusal
        if self._robots is not None:
            if lease.robots_at is None:
                return await self._robots.learn(lease, send_by)
            refusal = await self._robots.refusal(lease, lease.robots_at)
            if refusal is not None:
                await self._reader.follow_without_page(refusal.outcome)
                return refusal
        if identity is not None and not identity.is_in and self._identities is not None:
            report = await self._identities.logins.log_in(lease, identity, send_by)
            await self._reader.follow_without_page(report.outcome)
            return report
        return None

    def _refusal(self, lease: Lease, identity: LeasedIdentity) -> Report | None:
        if self._identities is None:
            return give_back(lease, sent=False)
        return self._identities.refusal(lease, identity)

    async def _send(self, lease: Lease, task: Task, send_by: float) -> Response:
        if lease.identity is not None and self._identities is not None:
            return await self._identities.send(lease, lease.identity, task, send_by)
        cookies = header_for(lease, time.time()) if self._keeps_cookies else ""
        return await send(self._fetcher, lease, task, send_by, self._routes, cookies)

    def _note(self, outcome: Outcome, response: Response) -> None:
        note_answer(outcome, response)
        if outcome.lease.identity is not None and self._identities is not None:
            self._identities.note(outcome, outcome.lease.identity)
        elif self._keeps_cookies:
            note_cookies(outcome, response, time.time())

    async def _unsent(self, lease: Lease, error: BaseException, started_at: float) -> Report:
        """Return the report of a task whose hook raised before anything was sent: that is the
        task's failure."""
        if isinstance(error, Retry):
            outcome = self._judge.asked_again(lease, error, jitter())
        else:
            outcome = raised(lease, error)
        outcome.sent = False
        note_identity(outcome)
        await self._reader.follow_without_page(outcome)
        log = page_log(outcome, self._worker, started_at, None, b"")
        return await self._told(Report(outcome, log))

    async def _unanswered(self, lease: Lease, error: FetchError, started_at: float) -> Report:
        outcome = self._judge.unanswered(lease, error, jitter())
        note_identity(outcome)
        await self._reader.follow_without_page(outcome)
        if outcome.verdict is Verdict.RETURNED:  # Its exit could not be used: this was no try.
            return Report(outcome)
        log = page_log(outcome, self._worker, started_at, None, b"")
        return await self._told(Report(outcome, log))

    async def _answered(self, visit: Visit) -> Report:
        lease, response = visit.lease, visit.response
        if lease.identity is not None and self._identities is not None:  # noqa: SIM102
            if why := self._identities.end_of(lease, lease.identity, response):
                return await self._logged_out(visit, why)
        status = response.status
        is_accepted = status >= REDIRECTS and self._reader.accepts(lease.task, status)
        block = self._watch.look_at(lease, response, is_accepted=is_accepted)
        if block is not None and not self._reader.clears(visit):
            return await self._blocked(visit, block)
        if not self._reader.can_read(lease.task, response.status):
            outcome = self._judge.answered(lease, response, time.time(), jitter())
            await self._reader.follow_without_page(outcome, response.status)
            return visit.report(outcome)
        begun = time.perf_counter()
        try:
            report = await self._reader.read(visit)
            report.parsing_s = time.perf_counter() - begun
            if lease.lent is not None:
                self._watch.note(lease.task, response)
            return report
        except SessionExpired as expired:
            return await self._logged_out(visit, str(expired) or "the handler says so")
        except Blocked as blocked:
            return await self._blocked(visit, blocked.block)
        except (Retry, Starved) as error:
            return await self._not_read(visit, error)
        except OwnFault as error:
            await self._shortage.pause(error)
            return give_back(lease, sent=True)

    async def _not_read(self, visit: Visit, error: Retry | Starved) -> Report:
        """Return the report of a page worth another try, if the task has a retry left."""
        if isinstance(error, Retry):
            outcome = self._judge.asked_again(visit.lease, error, jitter())
        else:
            why, kind = str(error), kind_of(error)
            outcome = self._judge.failed(visit.lease, why, jitter(), kind=kind, retryable=True)
        await self._reader.follow_without_page(outcome)
        return visit.report(outcome)

    async def _logged_out(self, visit: Visit, why: str) -> Report:
        identities = cast(IdentityVisits, self._identities)  # Otherwise there was no page.
        outcome = identities.ended(visit.lease, why)
        await self._reader.follow_without_page(outcome)
        return visit.report(outcome) if outcome.verdict is Verdict.DEAD else Report(outcome)

    async def _blocked(self, visit: Visit, block: Block) -> Report:
        outcome = self._judge.blocked(visit.lease, visit.response, block, time.time(), jitter())
        await self._reader.follow_without_page(outcome)
        report = visit.report(outcome)
        if report.page is not None:
            report.page.block = block.kind
        return report


def _unchanged(visit: Visit, known: KnownPage) -> Report:
    """Return the report of a page that is unchanged since an earlier crawl read it, and so are its
    items."""
    items = seen_again(known.items, visit.fetched_at)
    outcome = Outcome(lease=visit.lease, verdict=Verdict.DONE, unchanged=True, items=len(items))
    report = visit.report(outcome)
    report.items = items
    if report.page is not None:
        carry_on(known, report.page)
    if known.file is not None:
        outcome.files = 1
        report.files = [replace(known.file, at=visit.fetched_at)]
    return report
