"""Tries one page: what a worker would do with it, without lasting effects.

The visit is the same as a worker's, with robots.txt, exits, accounts, hooks and blocks. Its task is
leased from a queue of its own, in a temporary file. So nothing is queued or stored for any crawl.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import chain
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from shoal.config import Rules, Settings
from shoal.core.task import Task
from shoal.errors import FetchError
from shoal.exits.own import own_exits
from shoal.fetch.robots import RobotsGate
from shoal.frontier import frontier_at
from shoal.frontier.admission import NotAdmitted
from shoal.frontier.port import Frontier
from shoal.frontier.values import Ask, Lease, Outcome, Verdict
from shoal.runtime.process import worker_name
from shoal.sessions.own import own_sessions
from shoal.spider.spider import Spider
from shoal.workbench.kept_pages import OpenFetcher
from shoal.workbench.links import Fates, Link, RecordingAdmission
from shoal.worker.assignment import Assignment, Stores
from shoal.worker.report import Report
from shoal.worker.visits.spider_visits import SpiderVisits

MAX_VISITS = 60
"""The most visits on the way to a page: robots.txt, logins, redirects, unusable exits."""
MAX_WAIT_S = 15.0
"""How long to wait for an exit or an account."""


class Tried(msgspec.Struct):
    """The results of one page."""

    report: Report
    links: list[Link] = []
    """In the order in which the handler yielded them."""
    hops: list[str] = []
    """The redirects that led here: `HTTP 301 to ...`."""

    @property
    def is_read(self) -> bool:
        """Whether a handler has read it without errors."""
        return self.report.outcome.verdict is Verdict.DONE

    @property
    def task(self) -> Task:
        """The task of the last request."""
        return self.report.outcome.lease.task


async def try_page(
    spider: Spider, settings: Settings, task: Task, open_fetcher: OpenFetcher | None = None
) -> Tried:
    """Fetch a page as a crawl with these settings would, and read it. Raises FetchError if no
    request for it could be sent, and ConfigError, including BadUrl."""
    rules = _rules_of(settings.rules)
    with _throwaway_file() as address:
        async with frontier_at(address) as frontier:
            trial = _Trial(spider, replace(settings, rules=rules), frontier, open_fetcher)
            async with trial.ready():
                return await trial.run(task)


def _rules_of(rules: Rules) -> Rules:
    """The rules of a crawl for one page. It makes only one or two requests, and somebody waits for
    it, so there is no limit on its rate."""
    return replace(
        rules,
        rate="none",
        max_pages=None,
        stop_after_errors=None,
        seen="exact",
        seen_for=None,
        previous=None,
    )


@contextmanager
def _throwaway_file() -> Iterator[str]:
    with TemporaryDirectory(prefix="shoal-try-") as folder:
        yield f"sqlite:///{quote(str(Path(folder, 'try.db')))}"


class _Trial:
    """The visits to one page, until it is read."""

    def __init__(
        self,
        spider: Spider,
        settings: Settings,
        frontier: Frontier,
        open_fetcher: OpenFetcher | None,
    ) -> None:
        self._spider = spider
        self._rules = settings.rules
        self._crawl = settings.name or spider.name
        self._frontier = frontier
        self._worker = worker_name(os.getpid())
        self._admission = RecordingAdmission(settings.rules)
        assignment = Assignment(
            self._worker,
            self._crawl,
            Stores(frontier, None),
            slots=1,
            exits=own_exits(settings, frontier),
            sessions=own_sessions(settings, frontier),
        )
        self._lenders = [it for it in (assignment.exits, assignment.sessions) if it is not None]
        self._visits = SpiderVisits(
            assignment,
            lambda rules: spider,
            settings,
            open_fetcher=open_fetcher,
            admission=lambda rules: self._admission,
        )
        self._gate = RobotsGate(settings.user_agent)
        self._hops: list[str] = []

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        """Read lists of exits and accounts, and release everything at the end."""
        await self._frontier.start(self._crawl, self._rules)
        try:
            for lender in self._lenders:
                await lender.open()
            self._visits.begin(self._rules)
            yield
        finally:
            await self._visits.close()
            for lender in self._lenders:
                await lender.close()

    async def run(self, task: Task) -> Tried:
        """Make visits until the page is read, or it is clear that it cannot be read."""
        try:
            entry = self._admission.admit(task)
        except NotAdmitted as error:
            raise FetchError(f"a crawl would not fetch it: {error}") from None
        await self._frontier.add(self._crawl, [entry])
        reason = ""
        for _ in range(MAX_VISITS):
            lease = await self._lease(reason)
            self._admission.decisions.clear()
            report = await self._visits.visit(lease, inf, lambda: None)
            outcome = report.outcome
            if not _goes_on(outcome):
                return await self._tried(report)
            if outcome.verdict is Verdict.DONE:
                self._hops.append(outcome.reason)
            reason = outcome.reason
            await self._frontier.finish(self._crawl, [_at_once(outcome)])
        raise FetchError(f"{task.url} cannot be read: {reason or 'no request could be sent'}")

    async def _lease(self, reason: str) -> Lease:
        """The lease for the next request."""
        pools = tuple(chain.from_iterable(lender.pools for lender in self._lenders))
        until = time.monotonic() + MAX_WAIT_S
        while True:
            grant = await self._frontier.lease(self._crawl, Ask(self._worker, 1, {}, pools, 1))
            if grant.leases:
                return grant.leases[0]
            wait_s = grant.wait_s
            if wait_s is None or time.monotonic() + wait_s > until:
                raise FetchError(
                    f"no exit or account is available for it now{f': {reason}' if reason else ''}"
                )
            await asyncio.sleep(wait_s)

    async def _tried(self, report: Report) -> Tried:
        lease = report.outcome.lease
        stored = await self._frontier.robots(self._crawl, lease.task.site)
        robots = self._gate.rules_of(stored) if stored is not None and self._rules.robots else None
        links = Fates(self._spider, lease, robots).links(self._admission.decisions)
        return Tried(report, links, self._hops)


def _goes_on(outcome: Outcome) -> bool:
    """Whether the page is still to come, after robots.txt, a login or a redirect."""
    if outcome.verdict is Verdict.RETURNED:
        return True
    return outcome.verdict is Verdict.DONE and _is_redirect(outcome)


def _is_redirect(outcome: Outcome) -> bool:
    follow_ups = outcome.follow_ups
    asked = outcome.lease.task.redirects
    return len(follow_ups) == 1 and len(follow_ups[0].task.redirects) > len(asked)


def _at_once(outcome: Outcome) -> Outcome:
    """The outcome without waiting times: the crawl delay of robots.txt is for many pages."""
    if outcome.robots is not None:
        outcome.robots = replace(outcome.robots, crawl_delay_s=0.0)
    outcome.retry_in_s = 0.0
    return outcome
