"""Hooks into Scrapy's engine. Besides this module only sending_hooks.py touches what Scrapy keeps
private.

Scrapy does not report when it is done with a request: when the callback has ended and every item
has been through the pipelines. The engine knows, in methods that have been the same from Scrapy
2.13 to 2.19 (tests run on the oldest and the newest). They are wrapped on the running objects:

    engine._handle_downloader_output   a request's answer; what it returns fires at the very end
    scraper.call_spider_async          the callback or errback is called
    scraper.handle_spider_output_async what it yields
    slot.close                         the spider begins to close
    handlers.download_request_async    why there was no answer: middlewares may not tell

Where requests leave by exits there are more: see sending_hooks.py.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, cast

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.extensions.throttle import AutoThrottle
from scrapy.http import Response
from scrapy.signals import engine_stopped
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from shoal.errors import ConfigError

if TYPE_CHECKING:
    from shoal.scrapy.scheduler import Scheduler

START_BATCH = 100
"""The number of a spider's first requests that are taken at a time."""

LEASED = "shoal"
"""The downloader's slot for leased requests."""


class Watcher(Protocol):
    """Is told what becomes of requests."""

    def answered(self, request: Request, answer: Response | Request | Failure) -> bool:
        """The downloader and its middlewares have ended. Returns False if nothing more is to
        happen."""

    def reading(self, request: Request) -> None:
        """The callback is called with the response."""

    def claim(self, request: Request, output: Any) -> bool:
        """The callback or errback of the request has yielded this. Returns False if it is not to be
        used."""

    def ended(self, request: Request) -> None:
        """Scrapy has done everything it will do for this request."""


def watch(crawler: Crawler, watcher: Watcher, on_closing: Callable[[], None]) -> None:
    """Tell the watcher from now on what becomes of requests, and call `on_closing` when no more are
    asked for."""
    engine: Any = crawler.engine
    scraper, slot = engine.scraper, engine._slot
    engine._handle_downloader_output = _answers_told(watcher, engine._handle_downloader_output)
    scraper.call_spider_async = _callbacks_told(watcher, scraper.call_spider_async)
    scraper.handle_spider_output_async = _output_claimed(
        watcher, scraper.handle_spider_output_async
    )
    slot.close = _after(on_closing, slot.close)


def tell_losses(crawler: Crawler, lost: Callable[[Request, BaseException], None]) -> None:
    """Report why requests got no answer. Call this after everything else that wraps the download
    handlers: such wrappers may send another request in place of a leased one."""
    handlers: Any = cast(Any, crawler.engine).downloader.handlers
    if hasattr(handlers, "download_request_async"):  # since Scrapy 2.14
        handlers.download_request_async = _losses_told(lost, handlers.download_request_async)
    else:
        handlers.download_request = _losses_told_later(lost, handlers.download_request)


def _losses_told(
    lost: Callable[[Request, BaseException], None], own: Callable[[Request], Awaitable[Response]]
) -> Any:
    async def download_request_async(request: Request) -> Response:
        try:
            return await own(request)
        except Exception as error:
            lost(request, error)
            raise

    return download_request_async


def _losses_told_later(
    lost: Callable[[Request, BaseException], None], own: Callable[..., Deferred[Response]]
) -> Any:
    def download_request(request: Request, *spider: Any) -> Deferred[Response]:
        def tell(failure: Failure) -> Failure:
            if failure.value is not None:
                lost(request, failure.value)
            return failure

        return own(request, *spider).addErrback(tell)

    return download_request


def _answers_told(watcher: Watcher, handle: Callable[..., Deferred[None]]) -> Any:
    def handle_downloader_output(
        answer: Response | Request | Failure, request: Request
    ) -> Deferred[None]:
        goes_on = watcher.answered(request, answer)
        handled = handle(answer, request) if goes_on else succeed(None)
        return handled.addBoth(_passing(lambda: watcher.ended(request)))

    return handle_downloader_output


def _callbacks_told(watcher: Watcher, call_spider: Callable[..., Awaitable[Any]]) -> Any:
    async def call_spider_async(answer: Response | Failure, request: Request) -> Any:
        if isinstance(answer, Response):
            watcher.reading(request)
        return await call_spider(answer, request)

    return call_spider_async


def _output_claimed(watcher: Watcher, handle_output: Callable[..., Awaitable[None]]) -> Any:
    async def handle_spider_output_async(
        outputs: Any, request: Request, response: Response | Failure
    ) -> None:
        await handle_output(_claimed(watcher, request, outputs), request, response)

    return handle_spider_output_async


def _after(first: Callable[[], None], then: Callable[[], Any]) -> Any:
    def both() -> Any:
        first()
        return then()

    return both


def _passing(call: Any) -> Any:
    """Return a callback that calls `call` and passes its result on unchanged."""

    def callback(result: Any) -> Any:
        call()
        return result

    return callback


def _claimed(watcher: Watcher, request: Request, outputs: Any) -> Any:
    if isinstance(outputs, AsyncIterator):
        return _claimed_later(watcher, request, outputs)
    return _claimed_now(watcher, request, outputs)


def _claimed_now(watcher: Watcher, request: Request, outputs: Iterable[Any]) -> Iterable[Any]:
    for output in outputs:
        if watcher.claim(request, output):
            yield output


async def _claimed_later(
    watcher: Watcher, request: Request, outputs: AsyncIterator[Any]
) -> AsyncIterator[Any]:
    async for output in outputs:
        if watcher.claim(request, output):
            yield output


def scheduler_of(crawler: Crawler) -> Scheduler:
    """Return the crawler's scheduler. Raises ConfigError if that is not Shoal's."""
    from shoal.scrapy.scheduler import Scheduler

    slot = cast(Any, crawler.engine)._slot
    # Not `isinstance`: for Scrapy, anything with the methods of a scheduler is one.
    if slot is None or Scheduler not in type(slot.scheduler).__mro__:
        raise ConfigError('this needs SCHEDULER = "shoal.scrapy.scheduler.Scheduler"')
    return cast(Scheduler, slot.scheduler)


def is_starting(crawler: Crawler) -> bool:
    """Whether the spider's start() has more to give."""
    return cast(Any, crawler.engine)._start is not None


def skip_start(crawler: Crawler) -> None:
    """Do not run the spider's start(): other processes do."""
    cast(Any, crawler.engine)._start = None


def pace_start(crawler: Crawler, room: Callable[[], Awaitable[None]]) -> None:
    """Make the spider's start() wait for room before it goes on."""
    engine: Any = crawler.engine

    async def paced(start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        number = 0
        async for first in start:
            yield first
            number += 1
            if number % START_BATCH == 0:
                await room()

    if engine._start is not None:
        engine._start = paced(engine._start)


def ask_for_more(crawler: Crawler) -> None:
    """Make the engine ask for requests, and check whether the spider is idle."""
    slot = cast(Any, crawler.engine)._slot
    if slot is not None and slot.closing is None:
        slot.nextcall.schedule()


def close_failed(crawler: Crawler, reason: str) -> Any:
    """Close the spider, and make Scrapy's command end with exit code 1, as it does for crawlers
    that are left without a spider. Returns an awaitable."""

    def forget_spider() -> None:
        crawler.spider = None

    crawler.signals.connect(forget_spider, signal=engine_stopped, weak=False)
    engine = cast(Any, crawler.engine)
    if hasattr(engine, "close_spider_async"):  # since Scrapy 2.14
        return engine.close_spider_async(reason=reason)
    return maybe_deferred_to_future(engine.close_spider(crawler.spider, reason))


def hand_over_politeness(crawler: Crawler, is_leased: Callable[[Request], bool]) -> None:
    """Make the downloader send leased requests at once: the frontier has seen to the pauses, for
    the whole fleet. All others (media pipelines, robots.txt, `engine.download_async()`) keep
    Scrapy's own pauses."""
    downloader: Any = cast(Any, crawler.engine).downloader
    own_key = downloader.get_slot_key
    without_pauses = {LEASED: {"concurrency": sys.maxsize, "delay": 0}}
    downloader.per_slot_settings = {**downloader.per_slot_settings, **without_pauses}

    def get_slot_key(request: Request) -> Any:
        if is_leased(request):
            return LEASED
        if request.meta.get(downloader.DOWNLOAD_SLOT) == LEASED:  # Copied from a page's meta.
            del request.meta[downloader.DOWNLOAD_SLOT]
        return own_key(request)

    downloader.get_slot_key = get_slot_key
    throttle: Any = crawler.get_extension(AutoThrottle)
    if throttle is not None:
        own_slot = throttle._get_slot
        throttle._get_slot = lambda request, *more: (
            (LEASED, None) if is_leased(request) else own_slot(request, *more)
        )
