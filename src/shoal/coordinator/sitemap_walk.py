"""From one address to every URL of a site's sitemaps: indexes, robots.txt, redirects."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from shoal import urls
from shoal.coordinator.sitemaps import BadSitemap, Location, read_sitemap
from shoal.errors import BadUrl, FetchError
from shoal.fetch.port import Fetcher, Response
from shoal.policy import REDIRECT_STATUSES
from shoal.task import Task

MAX_SITEMAPS = 50_000
MAX_HOPS = 5

Refused = Callable[[str, Exception], None]
"""Told the address of a sitemap that could not be read, or not to its end, and why."""


class SitemapWalk:
    """Reads sitemaps one after the other, with a pause between two requests."""

    def __init__(
        self, fetcher: Fetcher, refused: Refused, *, pause_s: float, since: float | None = None
    ) -> None:
        self._fetcher = fetcher
        self._refused = refused
        self._pause_s = pause_s
        self._since = since
        self._seen: set[str] = set()
        self._waiting: deque[str] = deque()
        self.sitemaps = 0
        """How many were read."""

    async def pages(self, address: str) -> AsyncIterator[str]:
        """The URLs of all pages. `address` is a sitemap, a robots.txt, or a site: then it is its
        robots.txt that names the sitemaps, and /sitemap.xml if it names none."""
        await self._begin(address)
        while self._waiting:
            sitemap = self._waiting.popleft()
            try:
                response = await self._fetched(sitemap)
                self.sitemaps += 1
                for location in read_sitemap(response.body):
                    if self._is_wanted(location):
                        if location.is_sitemap:
                            self._queue(location.url, sitemap)
                        else:
                            yield location.url
            except (BadSitemap, BadUrl, FetchError) as error:
                self._refused(sitemap, error)

    async def _begin(self, address: str) -> None:
        path = urls.parse(address).pathname
        if path not in ("", "/", "/robots.txt"):
            self._queue(address, address)
            return
        root = urls.join(urls.parse(address), "/robots.txt")
        for sitemap in await self._named_in(root) or ["/sitemap.xml"]:
            self._queue(urls.join(urls.parse(address), sitemap), address)

    async def _named_in(self, robots: str) -> list[str]:
        try:
            text = (await self._fetched(robots)).body.decode("utf-8", "replace")
        except (BadSitemap, FetchError):
            return []
        named = (line.partition(":") for line in text.splitlines())
        return [value.strip() for key, _, value in named if key.strip().lower() == "sitemap"]

    def _queue(self, location: str, found_in: str) -> None:
        sitemap = urls.join(urls.parse(found_in), location)
        if sitemap in self._seen:
            return
        if len(self._seen) >= MAX_SITEMAPS:
            raise BadSitemap(f"more than {MAX_SITEMAPS:,} sitemaps: the rest is left out")
        self._seen.add(sitemap)
        self._waiting.append(sitemap)

    def _is_wanted(self, location: Location) -> bool:
        """Whether it may have changed. An index says of a sitemap when any of its pages did."""
        return self._since is None or location.lastmod is None or location.lastmod >= self._since

    async def _fetched(self, url: str) -> Response:
        for _ in range(MAX_HOPS + 1):
            response = await self._fetcher.fetch(Task(url=url))
            await asyncio.sleep(self._pause_s)
            moved_to = response.headers.get("Location")
            if response.status not in REDIRECT_STATUSES or not moved_to:
                break
            url = urls.join(urls.parse(url), moved_to)
        if not 200 <= response.status < 300:
            raise BadSitemap(f"HTTP {response.status}")
        return response
