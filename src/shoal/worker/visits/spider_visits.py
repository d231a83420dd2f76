"""A worker that visits pages with a Shoal spider: everything it needs beside the worker itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from shoal.config import Rules, Settings
from shoal.core import own_counts
from shoal.core.exits import Lent
from shoal.core.files import FILE
from shoal.core.files import is_large as is_large_file
from shoal.core.records import Robots
from shoal.core.task import Task
from shoal.fetch import Fetchers, open_fetcher
from shoal.fetch.port import Fetcher
from shoal.fetch.robots import RobotsGate
from shoal.frontier.admission import Admission, default_pool, default_session
from shoal.frontier.patient import patient
from shoal.frontier.values import ENDING, Entry, Lease
from shoal.runtime.memory import Leftovers
from shoal.seeds.sitemap_tasks import SITEMAP, is_large
from shoal.spider.spider import Spider
from shoal.worker.assignment import Assignment
from shoal.worker.handler_errors import HandlerErrors
from shoal.worker.report import Report
from shoal.worker.visits.cookies import keeps_cookies
from shoal.worker.visits.failures import FailureHooks
from shoal.worker.visits.file_visits import (
    EarlierFiles,
    FileJudge,
    FileReader,
    FileVisits,
    for_files,
    for_large_files,
)
from shoal.worker.visits.identities import LiveJars
from shoal.worker.visits.identity_logins import IdentityLogins
from shoal.worker.visits.identity_visits import IdentityVisits
from shoal.worker.visits.known_links import KnownUrls
from shoal.worker.visits.outcomes import Judge
from shoal.worker.visits.page_reader import PageReader
from shoal.worker.visits.recrawl import earlier_for
from shoal.worker.visits.robots_visits import RobotsVisits
from shoal.worker.visits.sending import no_routes
from shoal.worker.visits.sitemap_visits import (
    SitemapJudge,
    SitemapReader,
    for_large_ones,
    large_ones_at_once,
)
from shoal.worker.visits.visitor import Visitor
from shoal.worker.worker import Worker

_LARGE, _FILES, _LARGE_FILES = "large", "files", "large files"
"""Names of the fetchers for large sitemaps and for files."""


def spider_worker(
    assignment: Assignment,
    spider_for: Callable[[Rules], Spider],
    settings: Settings,
    *,
    watch: Callable[[float], AbstractContextManager[object]] = nullcontext,
) -> Worker:
    """Return a worker for a Shoal spider, which is made when the rules of the crawl are known."""
    return Worker(assignment, SpiderVisits(assignment, spider_for, settings), watch=watch)


class SpiderVisits:
    """Visits made by Shoal's HTTP client and read by a spider's handlers."""

    def __init__(
        self,
        assignment: Assignment,
        spider_for: Callable[[Rules], Spider],
        settings: Settings,
        *,
        open_fetcher: Callable[[], Fetcher] | None = None,
        admission: Callable[[Rules], Admission] = Admission,
    ) -> None:
        """`open_fetcher` is given where pages do not have to come from the site."""
        self._worker = assignment.worker
        self._crawl = assignment.crawl
        self._stores = assignment.stores
        self._routes = assignment.exits.route if assignment.exits is not None else no_routes
        self._spider_for = spider_for
        self._settings = settings
        self._sessions = assignment.sessions
        self._jars = LiveJars(assignment.sessions) if assignment.sessions is not None else None
        self._known_urls = KnownUrls()
        self._handler_errors = HandlerErrors()
        self._leftovers = Leftovers()
        self._open_fetcher = open_fetcher or partial(fetchers_for, settings)
        self._admission = admission
        self._fetcher: Fetcher | None = None
        self._spider: Spider
        self._visitor: Visitor
        self._sitemap_visitor: Visitor
        self._file_visits: FileVisits
        self._large_room = asyncio.Semaphore(large_ones_at_once(settings))

    def begin(self, rules: Rules) -> None:
        """Visit under these rules from now on. Raises ConfigError if no spider can be made."""
        self._spider = self._spider_for(rules)
        fetcher = self._fetcher = self._fetcher or self._open_fetcher()
        admission = self._admission(rules)
        judge = Judge(rules, admission)
        gate = RobotsGate(self._settings.user_agent)
        robots = None
        if rules.robots:
            robots = RobotsVisits(fetcher, gate, self._known_robots, judge, self._routes)
        self._known_urls.begin(default_session(rules))
        identities = self._identities(rules, fetcher, judge)
        reader = PageReader(
            self._spider,
            rules,
            admission,
            self._known_urls,
            keeps_raw=self._stores.archive is not None,
            prove=identities.prove if identities is not None else None,
        )
        earlier = earlier_for(rules, self._stores.results)
        keeps = keeps_cookies(rules)
        failures = FailureHooks(self._spider, rules, admission)
        self._visitor = Visitor(
            self._worker,
            fetcher,
            reader,
            judge,
            robots,
            earlier,
            self._routes,
            keeps_cookies=keeps,
            identities=identities,
            request_hooks=self._spider._shoal_hooks.request,
            failures=failures,
        )
        self._sitemap_visitor = Visitor(
            self._worker,
            fetcher,
            SitemapReader(admission),
            SitemapJudge(rules, admission),
            robots,
            routes=self._routes,
            keeps_cookies=keeps,
            identities=identities,
        )

        file_visitor = Visitor(
            self._worker,
            fetcher,
            FileReader(rules),
            FileJudge(rules, admission, self._settings),
            robots,
            self._earlier_files(rules),
            self._routes,
            keeps_cookies=keeps,
            identities=identities,
            request_hooks=self._spider._shoal_hooks.request,
            failures=failures,
        )
        self._file_visits = FileVisits(file_visitor, self._settings)

    def _earlier_files(self, rules: Rules) -> EarlierFiles | None:
        results, store = self._stores.results, self._stores.files
        if not rules.previous or results is None or store is None:
            return None
        return EarlierFiles(results, rules.previous, store.address, rules.file_types)

    def _identities(self, rules: Rules, fetcher: Fetcher, judge: Judge) -> IdentityVisits | None:
        sessions, jars, spider, routes = self._sessions, self._jars, self._spider, self._routes
        if sessions is None or jars is None:
            return None
        logins = IdentityLogins(
            self._worker, sessions, jars, spider, fetcher, judge, self._turn, routes
        )
        pool = default_pool(rules)
        return IdentityVisits(sessions, jars, logins, spider, fetcher, judge, routes, pool)

    async def visit(self, lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
        """Make one try. The spider's own counts are reported only for a try that ends its task."""
        counted = own_counts.begin()
        report = await self._visited(lease, send_by, answered)
        self._leftovers.note(report.outcome.body_bytes)
        if report.outcome.detail:
            self._handler_errors.note(report.outcome)
        if counted and report.outcome.verdict in ENDING:
            # A copy: code that the handler has left running may count on.
            report.outcome.own_counts = dict(counted)
        return report

    async def _visited(self, lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
        """Make the visit with the visitor for its kind of task."""
        if lease.task.job_type == FILE:
            return await self._file_visits.visit(lease, send_by, answered)
        if lease.task.job_type != SITEMAP:
            return await self._visitor.visit(lease, send_by, answered)
        if not is_large(lease.task):
            return await self._sitemap_visitor.visit(lease, send_by, answered)
        async with self._large_room:
            return await self._sitemap_visitor.visit(lease, send_by, answered)

    def confirm(self, follow_ups: Sequence[Entry]) -> None:
        """These links need not be offered to the frontier again."""
        self._known_urls.add(follow_ups)

    def start_over(self) -> None:
        """Every link is new again."""
        self._known_urls.clear()

    async def close(self) -> None:
        """Close the connections."""
        if self._fetcher is not None:
            await self._fetcher.close()

    async def _turn(self, lent: Lent | None, host: str) -> float:
        return await self._stores.frontier.turn(self._crawl, host, lent)

    async def _known_robots(self, site: str) -> Robots | None:
        return await patient(self._stores.frontier).robots(self._crawl, site)


def fetchers_for(settings: Settings) -> Fetcher:
    """Return the fetchers of a worker: one for pages, and others for what may be larger or
    smaller."""
    openers = {
        _LARGE: partial(open_fetcher, for_large_ones(settings)),
        _FILES: partial(open_fetcher, for_files(settings)),
        _LARGE_FILES: partial(open_fetcher, for_large_files(settings)),
    }
    return Fetchers(open_fetcher(settings), openers, _kind_of)


def _kind_of(task: Task) -> str | None:
    if task.job_type == SITEMAP:
        return _LARGE if is_large(task) else None
    if task.job_type == FILE:
        return _LARGE_FILES if is_large_file(task) else _FILES
    return None
