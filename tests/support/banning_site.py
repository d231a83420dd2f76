"""A site that bans the addresses its requests come from, and logs all requests.

    with serving(BanningSite(100, hosts=2)) as site:
        site.ban("127.0.0.11", Ban.CHALLENGE, host=site.hosts[0])

It listens at several loopback addresses, each a host of its own. When and how it bans may be
changed while it runs.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import time
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from itertools import accumulate
from math import inf
from typing import NamedTuple

from aiohttp import web

from support.links import numbered_pages
from support.sites import Site, html

OWN_ADDRESS = "127.0.0.1"
"""Requests from this address used no proxy: proxies are bound to other addresses."""

FORBIDDEN = "<h1>Forbidden</h1>"
CAPTCHA = (
    "<title>Just one more step</title><h1>Are you a robot?</h1>"
    '<p>Please solve the captcha to go on.</p><div class="g-recaptcha" data-sitekey="k"></div>'
)
TEXT = "<p>" + "There is something to read on every page of this site. " * 40 + "</p>"
"""A text long enough that a page in its place also stands out by its size."""


class Ban(StrEnum):
    """What a request from a banned address gets."""

    FORBIDDEN = "forbidden"
    TOO_MANY = "too many"
    CAPTCHA = "captcha"
    CHALLENGE = "challenge"
    LOGIN = "login"
    EMPTY = "empty"
    RESET = "reset"


BLOCKS = tuple(ban for ban in Ban if ban is not Ban.RESET)
"""The bans that are an answer."""


class Arrival(NamedTuple):
    """A request that reached the site."""

    at: float
    """time.monotonic() when the request was noticed."""
    path: str
    since: float
    """A time before the request arrived: when the site's loop was last idle."""
    source: str
    """The address that the request came from."""
    host: str
    """The request's Host header."""
    ban: Ban | None
    """What the request got instead of a page, if anything."""
    headers: str
    """All headers of the request, as text."""


class Limit(NamedTuple):
    """Bans a source at a host for `for_s` after more than `after` requests within `within_s`."""

    after: int
    ban: Ban
    within_s: float = inf
    for_s: float = inf


class BanningSite(Site):
    """The site: each of its hosts has a front page with links to numbered pages."""

    def __init__(self, pages: int, hosts: int = 1) -> None:
        super().__init__(self._never)
        self._page = numbered_pages(pages)
        self.addresses = [f"127.0.0.{number}" for number in range(1, hosts + 1)]
        self.log: list[Arrival] = []
        """Every request, robots.txt included, in the order of arrival."""
        self.limit: Limit | None = None
        self.forbids_after = inf
        """After this many requests, every page is 403 for every source."""
        self.has_pages = True
        """If False, every numbered page is 404."""
        self.takes_s = 0.0
        self.spread = 0.0
        """The fraction of `takes_s` by which answers take longer or shorter."""
        self.retry_after_s = 0
        self._bans: dict[tuple[str, str], tuple[Ban, float]] = {}
        self._recent: dict[tuple[str, str], list[float]] = {}
        self._changes: list[tuple[str, str, int]] = []

    @property
    def hosts(self) -> list[str]:
        """The hosts, as requests name them."""
        return [f"{address}:{self.port}" for address in self.addresses]

    @property
    def urls(self) -> list[str]:
        """The URLs of the front pages."""
        return [f"http://{host}/" for host in self.hosts]

    def ban(self, source: str, ban: Ban, host: str = "", for_s: float = inf) -> None:
        """Ban a source, at one host or at all."""
        self._bans[source, host] = (ban, time.monotonic() + for_s)

    def lift(self, source: str | None = None) -> None:
        """Lift the bans of a source, or all bans."""
        for key in [key for key in self._bans if source in (None, key[0])]:
            del self._bans[key]
        self._recent.clear()

    def arrivals(
        self, source: str | None = None, host: str | None = None, since: int = 0
    ) -> list[Arrival]:
        """The requests of a source, to a host, from position `since` in the log on."""
        return [
            seen
            for seen in self.log[since:]
            if source in (None, seen.source) and host in (None, seen.host)
        ]

    @property
    def sources(self) -> Counter[str]:
        """The number of requests from each source."""
        return Counter(seen.source for seen in self.log)

    def most_at_once(self, source: str) -> int:
        """The most requests of a source that were under way at once."""
        mine = [by for who, _, by in self._changes if who == source]
        return max(accumulate(mine), default=0)

    def most_at_host(self, host: str) -> int:
        """The most requests to a host that were under way at once."""
        mine = [by for _, where, by in self._changes if where == host]
        return max(accumulate(mine), default=0)

    async def _never(self, path: str) -> web.Response:
        raise AssertionError(path)

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        source, host = request.remote or "", request.headers.get("Host", "")
        now = time.monotonic()
        ban = self._ban_now(source, host, now)
        headers = "".join(f"{name}: {value}\n" for name, value in request.headers.items())
        arrived = Arrival(now, request.raw_path, self._idle_at, source, host, ban, headers)
        self.log.append(arrived)
        self._changes.append((source, host, 1))
        try:
            await asyncio.sleep(self.takes_s * random.uniform(1 - self.spread, 1 + self.spread))
            return await self._answer_to(request, ban)
        finally:
            self._changes.append((source, host, -1))

    def _ban_now(self, source: str, host: str, now: float) -> Ban | None:
        for key in ((source, host), (source, "")):
            ban, until = self._bans.get(key, (None, 0.0))
            if ban and now < until:
                return ban
        if self.limit is None:
            return Ban.FORBIDDEN if len(self.log) >= self.forbids_after else None
        recent = self._recent.setdefault((source, host), [])
        recent[:] = [at for at in recent if at > now - self.limit.within_s] + [now]
        if len(recent) <= self.limit.after:
            return Ban.FORBIDDEN if len(self.log) >= self.forbids_after else None
        recent.clear()
        self.ban(source, self.limit.ban, host, self.limit.for_s)
        return self.limit.ban

    async def _answer_to(self, request: web.BaseRequest, ban: Ban | None) -> web.StreamResponse:
        if ban is Ban.RESET:
            return _reset(request)
        if ban is not None:
            return self._refusal(ban)
        path = request.raw_path
        if path == "/robots.txt":
            return web.Response(text="User-agent: *\nDisallow: /private\n")
        if path == "/" or self.has_pages:
            answer = await self._page(path)
            if answer.status == 200:
                return html((answer.text or "") + TEXT)
        return html("no such page", 404)

    def _refusal(self, ban: Ban) -> web.Response:
        match ban:
            case Ban.FORBIDDEN:
                return html(FORBIDDEN, 403)
            case Ban.TOO_MANY:
                return web.Response(status=429, headers={"Retry-After": str(self.retry_after_s)})
            case Ban.CAPTCHA:
                return html(CAPTCHA)
            case Ban.CHALLENGE:
                answer = html("<title>Just a moment...</title>", 403)
                answer.headers["cf-mitigated"] = "challenge"
                return answer
            case Ban.LOGIN:
                return web.Response(status=302, headers={"Location": "/login?next=/"})
            case _:
                return web.Response(body=b"", content_type="text/html")


def _reset(request: web.BaseRequest) -> web.StreamResponse:
    """End the connection with a reset, as an endpoint that does not know it."""
    transport = request.transport
    assert transport is not None
    taken: socket.socket = transport.get_extra_info("socket")
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
    return web.Response()


def assert_only_by(site: BanningSite, sources: Sequence[str]) -> None:
    """Assert that requests came only from these sources, and above all not from OWN_ADDRESS."""
    unknown = {seen.source for seen in site.log} - set(sources)
    assert not unknown, f"{site.sources}: {[s for s in site.log if s.source in unknown][:3]}"
