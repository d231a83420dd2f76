"""A worker that visits pages with a spider of ours: what it needs beside the worker itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from shoal.archive.port import Archive
from shoal.config import Rules, Settings
from shoal.core.records import Robots
from shoal.fetch.http.client import HttpFetcher
from shoal.fetch.port import Fetcher
from shoal.fetch.robots import RobotsGate
from shoal.frontier.patient import patient
from shoal.frontier.port import WorkSource
from shoal.frontier.values import Entry, Lease
from shoal.results.port import Results
from shoal.seeds.sitemap_tasks import SITEMAP, is_large
from shoal.spider.spider import Spider
from shoal.worker.known_links import KnownUrls
from shoal.worker.recrawl import earlier_for
from shoal.worker.report import Report
from shoal.worker.sitemap_visits import SitemapVisitor, for_large_ones, large_ones_at_once
from shoal.worker.visitor import Visitor
from shoal.worker.worker import Worker


def spider_worker(
    name: str,
    crawl: str,
    spider: Spider,
    frontier: WorkSource,
    results: Results,
    settings: Settings,
    *,
    archive: Archive | None = None,
    until_finished: bool = True,
    watch: Callable[[float], AbstractContextManager[object]] = nullcontext,
) -> Worker:
    """A worker for one of our own spiders."""
    keeps_raw = archive is not None
    visits = SpiderVisits(name, crawl, spider, frontier, results, settings, keeps_raw=keeps_raw)
    return Worker(
        *(name, crawl, visits, frontier, results),
        slots=settings.concurrency,
        archive=archive,
        until_finished=until_finished,
        watch=watch,
    )


class SpiderVisits:
    """Visits by our own HTTP client, read by a spider's handlers."""

    def __init__(
        self,
        worker: str,
        crawl: str,
        spider: Spider,
        frontier: WorkSource,
        results: Results,
        settings: Settings,
        *,
        keeps_raw: bool,
    ) -> None:
        self._worker = worker
        self._crawl = crawl
        self._spider = spider
        self._frontier = frontier
        self._results = results
        self._settings = settings
        self._keeps_raw = keeps_raw
        self._known_urls = KnownUrls()
        self._fetcher: Fetcher | None = None
        self._visitor: Visitor
        self._gate: RobotsGate
        self._rules: Rules
        self._sitemap_visitor: SitemapVisitor
        self._large_fetcher: Fetcher | None = None
        self._large_visitor: SitemapVisitor | None = None
        self._large_room = asyncio.Semaphore(large_ones_at_once(settings))

    def begin(self, rules: Rules) -> None:
        """Visit under these rules from now on."""
        self._fetcher = self._fetcher or HttpFetcher(self._settings)
        self._rules, self._gate = rules, RobotsGate(self._settings.user_agent)
        self._visitor = Visitor(
            self._spider,
            self._fetcher,
            rules,
            self._gate,
            self._known_robots,
            self._known_urls,
            self._worker,
            keeps_raw=self._keeps_raw,
            earlier=earlier_for(rules, self._results),
        )
        self._sitemap_visitor = self._for_sitemaps(self._fetcher)
        self._large_visitor = None

    async def visit(self, lease: Lease, decided: float) -> Report:
        """One try."""
        if lease.task.job_type != SITEMAP:
            return await self._visitor.visit(lease, decided)
        if not is_large(lease.task):
            return await self._sitemap_visitor.visit(lease, decided)
        async with self._large_room:
            return await self._for_large_ones().visit(lease, decided)

    def _for_large_ones(self) -> SitemapVisitor:
        """Made when there is one: most crawls have none."""
        if self._large_fetcher is None:
            self._large_fetcher = HttpFetcher(for_large_ones(self._settings))
        if self._large_visitor is None:
            self._large_visitor = self._for_sitemaps(self._large_fetcher)
        return self._large_visitor

    def _for_sitemaps(self, fetcher: Fetcher) -> SitemapVisitor:
        return SitemapVisitor(
            self._spider,
            fetcher,
            self._rules,
            self._gate,
            self._known_robots,
            self._known_urls,
            self._worker,
        )

    def confirm(self, follow_ups: Sequence[Entry]) -> None:
        """These links need not be offered to the frontier again."""
        self._known_urls.add(follow_ups)

    def start_over(self) -> None:
        """Every link is new again."""
        self._known_urls.clear()

    async def close(self) -> None:
        """Close the connections."""
        for fetcher in (self._fetcher, self._large_fetcher):
            if fetcher is not None:
                await fetcher.close()

    async def _known_robots(self, site: str) -> Robots | None:
        return await patient(self._frontier).robots(self._crawl, site)
