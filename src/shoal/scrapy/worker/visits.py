"""Visits inside Scrapy: a leased task waits for the engine, goes through it, and ends.

lease ─▶ ready ─next_request─▶ in the engine ─▶ callback, items, follow-ups ─▶ ended
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.http import Response
from twisted.python.failure import Failure

from shoal.config import Rules
from shoal.core.failures import FailureKind
from shoal.core.identities import LeasedIdentity
from shoal.core.policy import RETRY_STATUSES
from shoal.core.task import DIRECT
from shoal.errors import ShoalError
from shoal.fetch.port import Route
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry, Lease, Outcome, Verdict
from shoal.runtime.patience import jitter
from shoal.scrapy.wire.requests import Requests
from shoal.scrapy.worker.identities import Identities
from shoal.scrapy.worker.intake import Intake
from shoal.scrapy.worker.preparing import meta_for_sitemap, unfit_outcome
from shoal.scrapy.worker.retries import is_retry
from shoal.scrapy.worker.verdicts import Life, report_of
from shoal.seeds.sitemap_tasks import SITEMAP, read_listed
from shoal.seeds.sitemap_xml import BadSitemap
from shoal.worker.report import Report, give_back
from shoal.worker.visits.known_links import Recent
from shoal.worker.visits.sending import Routes, no_routes

log = logging.getLogger("shoal")


class _Visit:
    """One leased task in Scrapy's hands."""

    def __init__(
        self,
        lease: Lease,
        send_by: float,
        answered: Callable[[], None],
        request: Request,
        route: Route | None,
    ) -> None:
        self.life = Life(lease=lease)
        self.request = request
        self.route = route
        self.send_by = send_by
        self.answered = answered
        self.ended: asyncio.Future[Report] = asyncio.get_running_loop().create_future()

    def end(self, report: Report) -> None:
        if not self.ended.done():  # It may have been cancelled: the lease was lost.
            self.ended.set_result(report)


class ScrapyVisits:
    """What a worker needs to visit pages through Scrapy, and what the engine reports of them."""

    def __init__(
        self,
        worker: str,
        requests: Requests,
        intake: Intake,
        wake_engine: Callable[[], None],
        *,
        is_logged: bool,
        routes: Routes = no_routes,
        identities: Identities | None = None,
    ) -> None:
        """`is_logged` says that there is a page log to write. Without `identities` there are no
        sessions."""
        self._worker = worker
        self._requests = requests
        requests.reserve(SITEMAP, self._read_sitemap)
        self._rules = Rules()
        self._intake = intake
        self._wake_engine = wake_engine
        self._is_logged = is_logged
        self._routes = routes
        self._identities = identities
        self._ready: deque[_Visit] = deque()
        self._running: dict[Request, _Visit] = {}
        self._answers: dict[int, Life] = {}
        self._parents: WeakKeyDictionary[Request, Life] = WeakKeyDictionary()
        self.is_closing = False
        self.known = Recent[bytes]()
        """Fingerprints that are known to be in the frontier."""

    @property
    def count(self) -> int:
        """Tasks that wait for the engine or are in it."""
        return len(self._ready) + len(self._running)

    # For the worker

    def begin(self, rules: Rules) -> None:
        """Use these rules from now on. Scrapy has its own; Shoal's only admit what a sitemap lists,
        as they admit seeds."""
        self._rules = rules

    async def visit(self, lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
        """Make one try. It ends when Scrapy is done with the request and the frontier has what was
        queued on the side meanwhile."""
        if self.is_closing:
            return give_back(lease, sent=False)
        if lease.identity is not None:
            instead = await self._instead(lease, lease.identity, send_by)
            if instead is not None:
                return instead
        route = None
        if lease.lent is not None or lease.task.proxy_pool not in (None, DIRECT):
            # Without a route that it may take and Scrapy can take, it is not sent at all.
            lent = lease.lent
            route = self._routes(lent, lease.task.proxy_pool) if lent is not None else None
            if route is None:
                return give_back(lease, sent=False)
            if (unfit := unfit_outcome(lease, route)) is not None:
                return Report(unfit)
        try:
            request = self._requests.decode(lease.task)
        except (ShoalError, ValueError, TypeError) as error:
            # A seed from another source, or a callback that no longer exists.
            outcome = Outcome(lease=lease, verdict=Verdict.DEAD, reason=str(error), sent=False)
            outcome.kind = FailureKind.HANDLER
            return Report(outcome)
        if lease.identity is not None and not self._lend(lease, lease.identity, request):
            return give_back(lease, sent=False)
        if lease.task.job_type == SITEMAP:
            request.meta.update(meta_for_sitemap(lease.task))
        visit = _Visit(lease, send_by, answered, request, route)
        self._ready.append(visit)
        self._wake_engine()
        report = await visit.ended
        await self._intake.flush_side()
        return report

    async def _instead(
        self, lease: Lease, identity: LeasedIdentity, send_by: float
    ) -> Report | None:
        """Return the report of a lease that is not used for its page. None: it is used for the
        page."""
        if self._identities is None:
            return give_back(lease, sent=False)
        report = await self._identities.instead(lease, identity, send_by)
        if report is not None and not self._is_logged:
            report.page = None
        return report

    def _lend(self, lease: Lease, identity: LeasedIdentity, request: Request) -> bool:
        return self._identities is not None and self._identities.lend(lease, identity, request)

    def confirm(self, follow_ups: Sequence[Entry]) -> None:
        """Remember links that need not be offered to the frontier again."""
        self.known.update(entry.fingerprint for entry in follow_ups)

    def start_over(self) -> None:
        """Forget which links are known: every one is new again."""
        self.known.clear()

    async def close(self) -> None:
        """Close what logs accounts in. Pages are up to Scrapy."""
        if self._identities is not None:
            await self._identities.close()

    async def _read_sitemap(self, response: Response) -> None:
        """The callback for sitemaps: queues what they list."""
        life = self.life_behind(response)
        if life is None:
            return
        lease, admission = life.lease, Admission(self._rules)
        listed = await read_listed(
            lease.task, lease.fingerprint, response.status, response.body, admission
        )
        life.follow_ups.extend(listed.entries)
        life.filtered = listed.filtered
        if listed.problem:
            life.error = BadSitemap(listed.problem)
            log.warning("%s: %s", lease.task.url, listed.problem)

    # For the scheduler

    def next_request(self) -> Request | None:
        """Return the next request for the engine. A lease whose permission to send has lapsed is
        given back."""
        while self._ready:
            visit = self._ready.popleft()
            if visit.ended.done():
                continue
            if time.monotonic() > visit.send_by:
                visit.end(give_back(visit.life.lease, sent=False))
                continue
            visit.life.started_at = visit.life.lease.now()
            self._running[visit.request] = visit
            return visit.request
        return None

    def is_running(self, request: Request) -> bool:
        """Whether a request is leased and in the engine."""
        return request in self._running

    def visit_of(self, request: Request) -> _Visit | None:
        """Return the visit of a leased request that is in the engine, or None."""
        return self._running.get(request)

    def life_of(self, request: Request) -> Life | None:
        """Return the life of a request that is in the engine, or None."""
        visit = self._running.get(request)
        return visit.life if visit is not None else None

    def life_behind(self, answer: Response | Failure | None) -> Life | None:
        """Return the life of the request that led to this answer, whose own `request` may be a
        copy. None if there is none."""
        return self._answers.get(id(answer))

    def parent_of(self, request: Request) -> Life | None:
        """Return the life of the request whose page or answer led to this one. None if there is
        none."""
        return self._parents.get(request)

    # For the engine and its listeners

    def left_downloader(self, request: Request) -> None:
        """The request has left its host. A host that is unwell gets no other request until it is
        known how this one ended."""
        visit = self._running.get(request)
        if visit is None or (status := visit.life.status) is None:
            return
        if status not in RETRY_STATUSES:
            visit.answered()

    def lost(self, request: Request, error: BaseException) -> None:
        """Note why there was no answer to a request: a middleware may retry it and not tell why."""
        if (life := self.life_of(request)) is not None:
            life.lost_by = error

    def answered(self, request: Request, answer: Response | Request | Failure) -> bool:
        """Note the downloader's final answer. A request to retry goes to the frontier instead.
        Returns whether Scrapy is to process the answer."""
        visit = self._running.get(request)
        if visit is None:
            return True
        life = visit.life
        life.answer = answer
        if life.not_served is not None:
            return False  # It goes by another exit, and the project is not told.
        if life.lease.identity is not None and self._is_out(life, answer):
            return False  # It goes with an account that is logged in.
        if isinstance(answer, Request):
            return self._claim_request(life, request, answer)
        self._answers[id(answer)] = life
        if isinstance(answer, Response):
            life.status = answer.status
        return True

    def _is_out(self, life: Life, answer: Response | Request | Failure) -> bool:
        """Whether an answer goes no further: its account is logged out, or the spider could not
        tell."""
        if self._identities is None:
            return False
        try:
            life.logged_out = self._identities.why_out(life.lease, answer)
        except Exception as error:  # User code may raise anything, as a callback may.
            life.error = error
        return bool(life.logged_out) or life.error is not None

    def reading(self, request: Request) -> None:
        """Note that the callback is called with the response."""
        if (life := self.life_of(request)) is not None:
            life.was_read = True
            life.parsing_s = -time.perf_counter()

    def claim(self, request: Request, output: Any) -> bool:
        """Note that a request which a callback yields belongs to the page it was found on. Returns
        whether Scrapy is to use it."""
        if not isinstance(output, Request) or (life := self.life_of(request)) is None:
            return True
        return self._claim_request(life, request, output)

    def _claim_request(self, life: Life, request: Request, follow_up: Request) -> bool:
        if is_retry(request, follow_up):
            life.wants_retry = True
            return False
        self._parents[follow_up] = life
        return True

    def ended(self, request: Request) -> None:
        """Scrapy is done with a request: report how it ended."""
        visit = self._running.pop(request, None)
        if visit is not None:
            self._answers.pop(id(visit.life.answer), None)
            if visit.life.was_read:
                visit.life.parsing_s += time.perf_counter()
            report = report_of(
                *(visit.life, self._worker, time.time(), jitter()),
                is_logged=self._is_logged,
                max_blocks=self._rules.max_blocks,
            )
            if self._identities is not None:
                self._identities.note(report.outcome, visit.request)
            visit.end(report)

    def give_back_ready(self) -> None:
        """Give back what the engine has not begun with: it asks for no more."""
        self.is_closing = True
        for visit in self._ready:
            visit.end(give_back(visit.life.lease, sent=False))
        self._ready.clear()
