"""Sends the requests of a Scrapy project: what a lease lends becomes the proxy of one request.

The proxy is set at the last moment and on a copy: no callback, log or store ever sees it, and
nothing that a page leads to inherits it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from shoal.config import Settings
from shoal.core.exits import Passage
from shoal.fetch.port import Route
from shoal.frontier.admission import default_pool
from shoal.frontier.values import Lease
from shoal.scrapy.wire.pools import BY_EXITS, has_own_proxy
from shoal.scrapy.wire.sessions import JAR
from shoal.scrapy.worker.answers import (
    Blocked,
    NotServed,
    blame_of,
    block_in,
    fault_of,
    proxys_own,
    robots_block,
    wire_bytes,
)
from shoal.scrapy.worker.routed import as_identity, routed
from shoal.scrapy.worker.verdicts import Life
from shoal.seeds.sitemap_tasks import SITEMAP

Download = Callable[[Request], Awaitable[Response]]

log = logging.getLogger("shoal")


class Leased(Protocol):
    """A leased request in the engine."""

    life: Life
    request: Request
    route: Route | None
    """None: it leaves as Scrapy sends it, except for its account's User-Agent."""


class _Aside(NamedTuple):
    """The leased request that a request without a lease is for."""

    leased: Leased
    is_robots: bool


def nobody_is_out(lease: Lease, response: Response) -> bool:
    """Reports no answer as logged out: there are no accounts."""
    return False


def no_identity(jar: Any) -> bool:
    """Recognises no jar as an account's: there are no accounts."""
    return False


class Sender:
    """Sends the requests of one process, each by the way that its lease permits."""

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        leased: Callable[[Request], Leased | None],
        says_out: Callable[[Lease, Response], bool] = nobody_is_out,
        is_identity: Callable[[Any], bool] = no_identity,
    ) -> None:
        """`leased` returns the visit of a leased request in the engine, or None; `says_out` says
        whether an answer shows that its account is logged out; `is_identity` whether a jar is an
        account's."""
        self._crawler = crawler
        self._leased = leased
        self._says_out = says_out
        self._is_identity = is_identity
        self._is_for_all = default_pool(settings.rules) is not None
        # Where a budget must hold, no answer may be longer than what was reserved for it.
        self._budgeted = {name for name, pool in settings.proxy_pools.items() if pool.budget}
        self._most_bytes = settings.max_body_bytes
        self._now: ContextVar[_Aside | None] = ContextVar("aside", default=None)
        self._aside: WeakKeyDictionary[Request, _Aside] = WeakKeyDictionary()
        self._unread: WeakKeyDictionary[Request, Exception] = WeakKeyDictionary()
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._has_warned = False

    # What is fetched on the side

    @contextmanager
    def working_on(self, request: Request, *, is_robots: bool = False) -> Iterator[None]:
        """While the block runs, what is fetched on the side is fetched for this request."""
        leased = self._leased(request)
        token = self._now.set(_Aside(leased, is_robots) if leased is not None else None)
        try:
            yield
        finally:
            self._now.reset(token)

    def downloading(self, request: Request) -> None:
        """Note what a request is for that the engine is about to download."""
        if (aside := self._now.get()) is not None:
            self._aside[request] = aside

    async def robots_for(
        self, request: Request, read: Callable[[Request], Awaitable[Any]], forget: Callable[[], Any]
    ) -> Any:
        """Have Scrapy read the robots.txt for a request, by the exit of that request. A robots.txt
        that could not be had is forgotten and read again by the next exit: it does not mean that
        everything is allowed."""
        leased = self._leased(request)
        if leased is None or leased.route is None:
            return await read(request)
        async with self._asking[urlparse_cached(request).netloc]:
            with self.working_on(request, is_robots=True):
                parser = await read(request)
            if (error := self._unread.pop(request, None)) is None:
                return parser
            forget()
        life = leased.life
        life.sent, life.passage = True, Passage(blame_of(error))
        life.not_served = error if isinstance(error, NotServed) else None
        raise error

    # Sending

    async def send(self, request: Request, download: Download) -> Response:
        """Send a request only by the way that it may take. For an account with an exit, a proxy
        that the project has set is ignored: sites must see a login from one address."""
        leased = self._leased(request)
        if leased is None:
            return await self._send_aside(request, download)
        if leased.route is None:
            return await download(as_identity(leased.life, request))
        if has_own_proxy(request.meta) and leased.life.lease.identity is None:
            self._warn()
            return await download(request)
        return await self._send_leased(leased.life, leased.route, request, download)

    async def _send_leased(
        self, life: Life, route: Route, request: Request, download: Download
    ) -> Response:
        life.passage = Passage()
        try:
            response = await self._by_route(life, route, request, download)
            if self._says_out(life.lease, response):
                return response  # That is not a block: the exit is as good as before.
            if (block := block_in(request, response, self._wanted(life, request))) is not None:
                life.note(response)
                raise Blocked(response.status, block)
        except NotServed as error:
            life.not_served = error
            raise
        except Exception as error:
            life.passage = Passage(blame_of(error)) if route.proxy is not None else None
            raise
        return response

    async def _send_aside(self, request: Request, download: Download) -> Response:
        """Send a request without a lease by the exit of the page that it is for, while that is
        leased; never directly instead. It may only use an account's jar if that is the page's."""
        self._refuse_others_jar(request)
        has_own_way = has_own_proxy(request.meta) and not self._is_identity(request.meta.get(JAR))
        if has_own_way or urlparse_cached(request).scheme not in BY_EXITS:
            return await download(request)
        aside = self._aside.get(request)
        leased = aside.leased if aside is not None else None
        if leased is None or self._leased(leased.request) is not leased:
            if self._is_for_all or (leased is not None and leased.route is not None):
                raise IgnoreRequest(f"no exit is leased for {request}")
            return await download(request)
        if leased.route is None:
            return await download(as_identity(leased.life, request))
        if aside is not None and aside.is_robots:
            return await self._send_robots(leased, leased.route, request, download)
        return await self._by_route(leased.life, leased.route, request, download)

    def _refuse_others_jar(self, request: Request) -> None:
        jar, aside = request.meta.get(JAR), self._aside.get(request)
        if not self._is_identity(jar):
            return
        leased = aside.leased if aside is not None else None
        identity = leased.life.lease.identity if leased is not None else None
        is_lent = leased is not None and self._leased(leased.request) is leased
        if not is_lent or identity is None or identity.name != jar:
            raise IgnoreRequest(f"{jar} is not leased for {request}")

    async def _send_robots(
        self, leased: Leased, route: Route, request: Request, download: Download
    ) -> Response:
        try:
            response = await self._by_route(leased.life, route, request, download)
            if (block := robots_block(response)) is not None:
                leased.life.note(response)
                raise Blocked(response.status, block)
        except Exception as error:
            self._unread[leased.request] = error
            raise IgnoreRequest("robots.txt could not be had by this exit") from None
        self._unread.pop(leased.request, None)  # A second try may have helped.
        return response

    async def _by_route(
        self, life: Life, route: Route, request: Request, download: Download
    ) -> Response:
        """Download by a route. Raises what the download raises, without the address of the exit."""
        lent = life.lease.lent
        is_budgeted = lent is not None and lent.pool in self._budgeted
        sent = routed(life, route, request, self._most_bytes if is_budgeted else None)
        response = None
        try:
            response = await download(sent)
            if route.proxy is not None and urlparse_cached(request).scheme == "http":
                _check(response)
        except Exception as error:
            if route.proxy is None or (fault := fault_of(error)) is error:
                raise
            raise fault from None
        finally:
            life.wire_bytes += wire_bytes(sent, response)
            if "download_latency" in sent.meta:
                request.meta["download_latency"] = sent.meta["download_latency"]
        return response

    def _wanted(self, life: Life, request: Request) -> Collection[int] | None:
        """Return the statuses that the project wants to see itself. None: all. For sitemaps, which
        Shoal requests itself, there are none."""
        if life.lease.task.job_type == SITEMAP:
            return ()
        settings, meta = self._crawler.settings, request.meta
        if meta.get("handle_httpstatus_all") or settings.getbool("HTTPERROR_ALLOW_ALL"):
            return None
        of_spider = getattr(self._crawler.spider, "handle_httpstatus_list", ())
        listed = meta.get("handle_httpstatus_list", of_spider) or ()
        return {*listed, *map(int, settings.getlist("HTTPERROR_ALLOWED_CODES"))}

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "a middleware sets meta['proxy']: such requests go by that, and an exit is leased"
                " for them in vain"
            )


def _check(response: Response) -> None:
    if (error := proxys_own(response)) is not None:
        raise error
