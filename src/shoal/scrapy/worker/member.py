"""One process's part in a crawl: its stores, its worker, and what Scrapy reports of requests."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext, suppress
from typing import Any
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from twisted.python.failure import Failure

from shoal.config import Settings
from shoal.errors import ShoalError
from shoal.exits.own import own_exits
from shoal.fleet.published import publishing_for
from shoal.fleet.spider_version import spider_version
from shoal.frontier.patient import patient
from shoal.frontier.values import Added, Control, CrawlState
from shoal.results.port import Results
from shoal.runtime.process import worker_name
from shoal.runtime.watchdog import watched
from shoal.scrapy.reading import mapping
from shoal.scrapy.wire.cookies import Jars
from shoal.scrapy.wire.pools import Pools
from shoal.scrapy.wire.requests import SCHEMES, Requests
from shoal.scrapy.wire.sessions import Sessions
from shoal.scrapy.worker import engine
from shoal.scrapy.worker.entries import Entries
from shoal.scrapy.worker.identities import Identities
from shoal.scrapy.worker.intake import Intake
from shoal.scrapy.worker.items import ItemStore
from shoal.scrapy.worker.join import in_scrapys_words
from shoal.scrapy.worker.listener import Listener
from shoal.scrapy.worker.own_identities import identities_for, turns_of
from shoal.scrapy.worker.sending import Sender, nobody_is_out
from shoal.scrapy.worker.sending_hooks import send_through
from shoal.scrapy.worker.settings import Membership, membership_of
from shoal.scrapy.worker.visits import ScrapyVisits
from shoal.sessions.own import OwnSessions
from shoal.worker.assignment import Assignment, Stores
from shoal.worker.visits.sending import no_routes
from shoal.worker.worker import Worker

START_PAUSE_S = 0.05
"""How long start() pauses for a process that has pages to read."""

FAILED = "shoal_failed"
"""The reason for closing a spider whose stores have failed for good."""

log = logging.getLogger("shoal")

_failures: WeakKeyDictionary[Crawler, BaseException] = WeakKeyDictionary()


def failure_of(crawler: Crawler) -> BaseException | None:
    """Return what went wrong with a crawl as a whole, or None. Kept here because the spider and its
    scheduler no longer exist by the time this is asked."""
    return _failures.get(crawler)


class Member:
    """Runs a worker inside Scrapy, from `start` to `leave`."""

    def __init__(
        self,
        crawler: Crawler,
        spider: Spider,
        crawl: str,
        settings: Settings,
        stores: Stores[Results | None],
        sessions: OwnSessions | None = None,
    ) -> None:
        """Without `sessions` it has no accounts. Raises ConfigError."""
        self._crawler = crawler
        self._crawl = crawl
        self._stores = stores
        self._slots = settings.concurrency
        self._background: set[asyncio.Task[None]] = set()
        self._working: asyncio.Task[None]
        self._closer: asyncio.Future[None]
        membership = membership_of(crawler.settings) or Membership(settings, crawl)
        self._stays = not membership.until_finished
        self._is_sealed = not membership.brings_seeds
        if self._is_sealed:
            engine.skip_start(crawler)
        name = worker_name(os.getpid())
        self._settings = settings
        self._exits = own_exits(settings, stores.frontier)
        self._sessions = sessions
        self._routes = self._exits.route if self._exits is not None else no_routes
        jars = Jars.of(crawler)
        self._chosen = Sessions(settings.rules, self._is_account, has_jars=jars is not None)
        requests = self._requests_for(spider, jars)
        self._identities = self._identities_for(name, spider, jars)
        self.intake = Intake(stores.frontier, crawl, lambda: self._worker.wake())
        is_logged = stores.results is not None
        self.visits = ScrapyVisits(
            *(name, requests, self.intake, self._wake_engine),
            is_logged=is_logged,
            routes=self._routes,
            identities=self._identities,
        )
        self._worker = self._new_worker(name)
        self.entries = Entries(crawler, requests, self.visits.known)
        items = ItemStore(mapping(crawler.settings, "SHOAL_ITEM_KEYS"))
        # Scrapy keeps only a weak reference to it.
        self._listener = Listener(crawl, self.visits, stores.results, items)

    def _new_worker(self, name: str) -> Worker:
        assignment = Assignment(
            name,
            self._crawl,
            self._stores,
            self._slots,
            until_finished=False,
            drain_s=None,  # Scrapy waits for what is in flight, and so does the worker.
            exits=self._exits,
            sessions=self._sessions if self._identities is not None else None,
            publishing=publishing_for(self._settings, self._crawl, self._stores.frontier),
            spider_version=spider_version(self._crawler.spidercls, self._settings.spider_version),
        )
        is_ours = membership_of(self._crawler.settings) is not None
        return Worker(
            assignment,
            self.visits,
            on_idle=self._wake_engine,
            watch=watched if is_ours else nullcontext,  # `scrapy crawl` is not ours to end.
        )

    def _identities_for(self, name: str, spider: Spider, jars: Jars | None) -> Identities | None:
        """Return what handles accounts. None: there are none, or nothing could send their
        cookies."""
        if self._sessions is None or jars is None:
            return None
        turn = turns_of(self._stores.frontier, self._crawl)
        return identities_for(
            *(name, self._crawler, self._settings, self._sessions),
            *(spider, jars, turn, self._routes),
        )

    def _requests_for(self, spider: Spider, jars: Jars | None) -> Requests:
        """Return what turns the spider's requests into tasks and back."""
        crawler, pools = self._crawler, Pools(self._settings.rules)
        schemes = crawler.settings.getlist("SHOAL_SCHEMES", [*SCHEMES])
        return Requests(spider, crawler.request_fingerprinter, jars, schemes, pools, self._chosen)

    def _is_account(self, identity: str) -> bool:
        return self._sessions is not None and self._sessions.account(identity) is not None

    @property
    def is_quiet(self) -> bool:
        """Whether the whole crawl is over, as far as is known here, and nothing is left in this
        process."""
        if self._stays:
            return False
        is_over = self._worker.over_as is not None
        return is_over and self.intake.is_empty and not self.visits.count

    @property
    def is_hungry(self) -> bool:
        """Whether there is room here and the queue gives too little."""
        return self.visits.count < self._slots and not self.visits.is_closing

    def start(self) -> None:
        """Begin to lease tasks and to bring requests into the frontier."""
        engine.pace_start(self._crawler, self._room)
        engine.watch(self._crawler, self.visits, self._closing)
        if self._exits is not None or self._identities is not None:
            says_out = self._identities.says_out if self._identities else nobody_is_out
            sender = Sender(
                *(self._crawler, self._settings, self.visits.visit_of),
                *(says_out, self._chosen.is_identity),
            )
            send_through(self._crawler, sender)
        engine.tell_losses(self._crawler, self.visits.lost)
        engine.hand_over_politeness(self._crawler, self.visits.is_running)
        self._listener.connect(self._crawler)
        self._crawler.signals.connect(self._spider_idle, signal=signals.spider_idle)
        self._crawler.signals.connect(self._spider_error, signal=signals.spider_error)
        self._in_background(self.intake.run())
        self._working = self._in_background(self._worker.run())

    async def leave(self) -> None:
        """Finish or give back what is in hand, and close the stores."""
        self._closing()
        with suppress(ShoalError):  # It was logged when it happened.
            await self._working
            await self.intake.flush()
        for task in self._background:
            task.cancel()
        await self._stores.close()

    async def add(self, requests: Sequence[Request], origin: str) -> Added:
        """Queue requests from outside; return when the frontier has them."""
        entries = self.entries.entries_from(requests, origin)
        if not entries:
            return Added()
        added = await patient(self._stores.frontier).add(self._crawl, entries)
        self._worker.wake()
        return added

    def seal(self) -> None:
        """All requests of start() are queued: from now on the crawl can be finished."""
        if not self._is_sealed:
            self._is_sealed = True
            self._in_background(self._seal())

    async def _room(self) -> None:
        """Let start() continue when the frontier keeps up with it, with pauses in which the pages
        that are queued already are read."""
        await self.intake.room()
        if self.visits.count:
            await asyncio.sleep(START_PAUSE_S)

    async def _seal(self) -> None:
        await self.intake.flush()
        await patient(self._stores.frontier).control(self._crawl, Control.SEAL)

    def _spider_idle(self) -> None:
        if self._worker.over_as is CrawlState.CANCELLED:
            raise CloseSpider(CrawlState.CANCELLED)

    def _spider_error(self, failure: Failure, response: object) -> None:
        if response is None:  # Not an error of a page but of start().
            error = failure.value
            what = f"start() raised {type(error).__name__}: {error}"
            _failures[self._crawler] = ShoalError(f"{self._crawler.spidercls.name}: {what}")

    def _closing(self) -> None:
        self.visits.give_back_ready()
        self._worker.drain()

    def _wake_engine(self) -> None:
        engine.ask_for_more(self._crawler)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, ShoalError):
            log.error("%s", in_scrapys_words(error))
        else:
            log.error("a fault in shoal", exc_info=error)
        _failures[self._crawler] = error
        if not self.visits.is_closing:
            # Not among the background tasks: `leave` is part of it.
            self._closer = asyncio.ensure_future(engine.close_failed(self._crawler, FAILED))
