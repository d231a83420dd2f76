"""Spiders that take their start URLs from Redis, as those of scrapy-redis do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.spiders import CrawlSpider

from shoal.errors import ConfigError, ShoalError
from shoal.scrapy import connection, defaults
from shoal.scrapy.feeds.feed import Feed
from shoal.scrapy.feeds.feeder import Feeder
from shoal.scrapy.feeds.messages import request_of, text_of
from shoal.scrapy.feeds.settings import feed_settings
from shoal.scrapy.link import address_for
from shoal.scrapy.reading import say_at_the_end, switch
from shoal.scrapy.worker import engine

if TYPE_CHECKING:  # As in scrapy-redis, the mixin stands before any kind of spider.
    _AnySpider = Spider
else:
    _AnySpider = object

_NO_LONGER_CALLED = (
    "next_requests",
    "schedule_next_requests",
    "fetch_data",
    "pop_list_queue",
    "pop_priority_queue",
)


class RedisMixin(_AnySpider):
    """Makes a spider take start URLs from Redis. None is lost on the way: see `Feed`."""

    redis_key: str | Sequence[str] | None = None
    """The key of a list, a set or a sorted set; or several keys, the most important one first."""
    redis_batch_size: int | None = None
    redis_encoding: str | None = None
    max_idle_time: int | None = None
    """Seconds without a message or a page after which the spider closes. 0: never."""

    _feed_keys: Sequence[str] = ()
    _feeder: Feeder | None = None
    _feeding: asyncio.Task[None] | None = None
    _has_failed = False
    _last_page_at = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Called by Scrapy to make the spider."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.setup_redis(crawler)
        return spider

    @cached_property
    def server(self) -> Any:
        """A blocking client for the spider's own use."""
        return connection.from_settings(self.crawler.settings)

    def setup_redis(self, crawler: Crawler | None = None) -> None:
        """Read the settings, and wait for the spider to be opened. Further calls do nothing."""
        if self._feed_keys:
            return
        crawler = crawler or self.crawler
        self._read_settings(crawler)
        # Scrapy reads it more than once, and the spiders of scrapy-redis's example have a filter().
        if isinstance(domains := getattr(self, "allowed_domains", None), Iterator):
            self.allowed_domains = list(domains)
        for method, signal in (
            (self._open_feed, signals.spider_opened),
            (self._close_feed, signals.spider_closed),
            (self._note_page, signals.response_received),
            (self.spider_idle, signals.spider_idle),
        ):
            crawler.signals.connect(method, signal=signal)

    def make_request_from_data(self, data: bytes) -> Request | Iterable[Request] | None:
        """Return the requests that a message of the feed asks for. Override it for messages of your
        own.

        A message for which it raises an error is moved to `<redis_key>:rejected`.
        """
        return request_of(data, self.redis_encoding or defaults.REDIS_ENCODING)

    async def start(self) -> AsyncIterator[Any]:
        """Yield the requests that the spider begins with, besides its feed."""
        for request in self.start_requests():
            yield request

    def start_requests(self) -> Iterable[Any]:
        """Return the first requests. For spiders that still override this instead of `start`."""
        for url in self.start_urls:
            yield Request(url, dont_filter=True)

    def spider_idle(self) -> None:
        """Keep the spider open, as more messages may come, until nothing has come for
        `max_idle_time`."""
        if self._has_failed:
            raise CloseSpider("feed_failed")
        feeder = self._feeder
        last = max(self._last_page_at, feeder.last_message_at if feeder else 0.0)
        if not self.max_idle_time or time.monotonic() - last < self.max_idle_time:
            raise DontCloseSpider

    def _read_settings(self, crawler: Crawler) -> None:
        try:
            told = feed_settings(self, crawler.settings)
        except ConfigError as error:
            say_at_the_end(str(error))
            raise
        self._feed_keys, self.redis_key = told.keys, told.keys[0]
        self.redis_batch_size, self.redis_encoding = told.batch, told.encoding
        self.max_idle_time = told.max_idle_s

    async def _open_feed(self) -> None:
        """Begin to take messages: the spider is open."""
        for name in _NO_LONGER_CALLED:
            if hasattr(self, name):
                self.logger.warning("%s() is not called: override make_request_from_data()", name)
        self._last_page_at = time.monotonic()
        self._feeding = asyncio.create_task(self._feed())

    async def _feed(self) -> None:
        try:
            scheduler = engine.scheduler_of(self.crawler)
            feed = Feed(address_for(self.crawler), self._feed_keys)
            batch = self.redis_batch_size or defaults.REDIS_CONCURRENT_REQUESTS
            self._feeder = Feeder(feed, scheduler, self._requests_from, batch=batch)
            self.logger.info("Start URLs come from Redis: %s", ", ".join(self._feed_keys))
            await self._feeder.run()
        except Exception as error:
            # Must be visible: without a feed, the spider looks just like one that waits.
            trace = None if isinstance(error, ShoalError) else error
            self.logger.error("The feed has failed: %s", error, exc_info=trace)
            self._has_failed = True
            engine.ask_for_more(self.crawler)

    async def _close_feed(self) -> None:
        """Stop taking messages: the scheduler is closed by now and takes no more."""
        if self._feeding is not None:
            self._feeding.cancel()
            await asyncio.gather(self._feeding, return_exceptions=True)
        if self._feeder is not None:
            await self._feeder.close()

    def _note_page(self) -> None:
        self._last_page_at = time.monotonic()

    def _requests_from(self, data: bytes) -> Iterable[Request]:
        encoding = self.redis_encoding or defaults.REDIS_ENCODING
        is_text = switch(self.settings, "REDIS_DECODE_RESPONSES")
        # Projects whose client decoded messages expect text, whatever the signature says.
        given: Any = text_of(data, encoding) if is_text else data
        made = self.make_request_from_data(given)
        if isinstance(made, Request):
            return [made]
        return made or ()


class RedisSpider(RedisMixin, Spider):
    """A spider whose start URLs come from Redis."""


class RedisCrawlSpider(RedisMixin, CrawlSpider):
    """A spider with rules whose start URLs come from Redis."""
