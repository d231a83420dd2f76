"""Scrapy's scheduler on a Shoal frontier.

A Shoal worker leases tasks ahead of the engine's needs, within what may be sent now. It ends them
when Scrapy is done with them, never when they are handed out. Nothing here makes the reactor wait
for the frontier.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.core.scheduler import Scheduler as OwnScheduler
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred

from shoal.core.addresses import masked
from shoal.errors import ConfigError, ShoalError
from shoal.frontier.values import Added
from shoal.runtime.logs import OneLine
from shoal.scrapy import dupefilter, queue
from shoal.scrapy.reading import say_at_the_end
from shoal.scrapy.worker.engine import is_starting
from shoal.scrapy.worker.fitness import refuse_without_jars
from shoal.scrapy.worker.join import in_scrapys_words, join, project_stores
from shoal.scrapy.worker.member import Member
from shoal.scrapy.worker.settings import crawl_of, only_looks, refuse_meaningless, settings_of
from shoal.scrapy.worker.verdicts import Life
from shoal.sessions.own import own_sessions

log = logging.getLogger("shoal")
log.addFilter(OneLine())  # Scrapy's handlers write Shoal's log lines.


class Scheduler(BaseScheduler):
    """One process's part in a crawl that any number of processes share."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._stats = crawler.stats
        self._member: Member | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BaseScheduler:  # type: ignore[override]
        """Called by Scrapy. Its commands that only look at a page get Scrapy's own scheduler, so
        that they do not take part in a crawl."""
        return OwnScheduler.from_crawler(crawler) if only_looks(sys.orig_argv) else cls(crawler)

    def open(self, spider: Spider) -> Deferred[None]:
        """Called by Scrapy when the spider opens: join the crawl."""
        return deferred_from_coro(self._open(spider))

    def close(self, reason: str) -> Deferred[None] | None:
        """Finish or give back what is in hand. Nothing is deleted: other processes may need it."""
        return deferred_from_coro(self._member.leave()) if self._member else None

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request. False: it is known already, or it cannot be queued."""
        member = self.member
        life = member.visits.parent_of(request)
        try:
            entry = member.entries.entry_for(request, life)
        except ShoalError as error:
            self._refuse(error, life)
            return False
        if entry is None:
            self._stats.inc_value("dupefilter/filtered")
            return False
        self._stats.inc_value("scheduler/enqueued/shoal")
        if life is not None:
            life.follow_ups.append(entry)
        else:
            member.intake.put(entry, of_start=is_starting(self._crawler))
        return True

    def next_request(self) -> Request | None:
        """Return the next request that may be sent now. None: there is none at this moment."""
        request = self.member.visits.next_request()
        if request is not None:
            self._stats.inc_value("scheduler/dequeued/shoal")
        return request

    def has_pending_requests(self) -> bool:
        """Whether more requests may still come, from this process or from any other."""
        self.member.seal()  # Scrapy asks only after start() has ended.
        return not self.member.is_quiet

    @property
    def is_hungry(self) -> bool:
        """Whether this process has room and gets too little from the queue."""
        return self.member.is_hungry

    async def add(self, requests: Sequence[Request], origin: str) -> Added:
        """Queue requests; return when the frontier has them. Requests with `dont_filter` that come
        from the same origin in the same order are queued once, however often they are added."""
        return await self.member.add(requests, origin)

    @property
    def member(self) -> Member:
        """This process's part in the crawl, once it is open."""
        if self._member is None:
            raise ConfigError("the scheduler is not open")
        return self._member

    async def _open(self, spider: Spider) -> None:
        try:
            await self._join(spider)
        except ShoalError as error:
            message = in_scrapys_words(error)
            log.error("%s", message)
            say_at_the_end(message)
            raise

    async def _join(self, spider: Spider) -> None:
        _check_reactor()
        crawler = self._crawler
        settings = settings_of(crawler.settings, crawler.spidercls)
        refuse_meaningless(settings)
        refuse_without_jars(settings, crawler)
        crawl = crawl_of(crawler.settings, settings, spider)
        stores = project_stores(settings, crawler.settings)
        try:
            await join(stores, crawl, settings, crawler.settings, spider)
            sessions = own_sessions(settings, stores.frontier)
            if sessions is not None:
                await sessions.open()  # The spider's first requests may name accounts.
            self._member = Member(crawler, spider, crawl, settings, stores, sessions)
        except BaseException:
            await stores.close()
            raise
        self._member.start()
        for notice in (queue.notice(crawler.settings), dupefilter.notice(crawler.settings)):
            if notice is not None:
                log.info("%s", notice)
        log.info(
            "crawl '%s' on %s: rate %s and %d requests at once, per host, for the whole fleet",
            crawl,
            masked(settings.frontier),
            settings.rules.rate,
            settings.rules.concurrency_per_host,
        )

    def _refuse(self, error: ShoalError, life: Life | None) -> None:
        """Record a request that cannot be queued as an error of the page that led to it: it is
        listed there and can be retried."""
        log.error("%s", error)
        self._stats.inc_value("scheduler/unserializable")
        if life is not None:
            life.error = error


def _check_reactor() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        reactor = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
        raise ConfigError(f'Shoal needs TWISTED_REACTOR = "{reactor}"') from None
