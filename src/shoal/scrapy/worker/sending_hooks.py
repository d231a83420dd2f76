"""Hooks into Scrapy's engine for requests that leave by exits. Without pools there are none.

They are wrapped on the running objects, as in engine.py:

    handlers.download_request_async    where a request leaves: the last to see it before the network
    engine._download                   every download, also those on the side, without a lease
    scraper.call_spider_async, scraper.handle_spider_output_async, middleware.robot_parser
                                       what is fetched on the side, and for which page
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from typing import TYPE_CHECKING, Any, cast

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http import Headers, Response
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from shoal.scrapy.worker.sending import Sender


def twin_of(request: Request, meta: dict[str, Any], headers: Headers) -> Request:
    """Return a copy of a request with another meta and other headers. Its class is not called: what
    it would add, it has added."""
    twin: Any = copy(request)
    twin._meta, twin.headers = meta, headers
    return cast(Request, twin)


def send_through(crawler: Crawler, sender: Sender) -> None:
    """Let requests leave only through the sender: leased ones, and those made on the side."""
    engine: Any = crawler.engine
    scraper, handlers = engine.scraper, engine.downloader.handlers
    engine._download = _noted(sender, engine._download)
    for name in ("call_spider_async", "handle_spider_output_async"):
        setattr(scraper, name, _worked_on(sender, getattr(scraper, name)))
    if hasattr(handlers, "download_request_async"):  # since Scrapy 2.14
        own = handlers.download_request_async
        handlers.download_request_async = lambda request: sender.send(request, own)
    else:
        handlers.download_request = _sent_later(sender, handlers.download_request)
    for middleware in engine.downloader.middleware.middlewares:
        if isinstance(middleware, RobotsTxtMiddleware):
            _hook_robots(middleware, sender)


def _noted(sender: Sender, download: Callable[[Request], Any]) -> Any:
    def noted(request: Request) -> Any:
        sender.downloading(request)
        return download(request)

    return noted


def _worked_on(sender: Sender, work: Callable[..., Awaitable[Any]]) -> Any:
    """Wrap a function that has the request as its second argument."""

    async def worked_on(output: Any, request: Request, *more: Any) -> Any:
        with sender.working_on(request):
            return await work(output, request, *more)

    return worked_on


def _sent_later(sender: Sender, download: Callable[..., Deferred[Response]]) -> Any:
    def sent(request: Request, *spider: Any) -> Deferred[Response]:
        async def own(routed: Request) -> Response:
            return await maybe_deferred_to_future(download(routed, *spider))

        return deferred_from_coro(sender.send(request, own))

    return sent


def _hook_robots(middleware: Any, sender: Sender) -> None:
    read = middleware.robot_parser

    async def robot_parser(request: Request, *spider: Any) -> Any:
        netloc = urlparse_cached(request).netloc
        return await sender.robots_for(
            request,
            lambda asked: read(asked, *spider),
            lambda: middleware._parsers.pop(netloc, None),
        )

    middleware.robot_parser = robot_parser
