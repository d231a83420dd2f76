"""Sitemaps, and a site that has some."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from support.sites import Site, html
from support.until import until

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*locations: str, more: str = "") -> bytes:
    """A sitemap of these pages."""
    entries = "".join(f"<url><loc>{location}</loc>{more}</url>" for location in locations)
    return f"<urlset {NAMESPACE}>{entries}</urlset>".encode()


def index(*sitemaps: str) -> bytes:
    """A sitemap of these sitemaps."""
    entries = "".join(f"<sitemap><loc>{sitemap}</loc></sitemap>" for sitemap in sitemaps)
    return f"<sitemapindex {NAMESPACE}>{entries}</sitemapindex>".encode()


class SiteWithSitemaps(Site):
    """A site with the answers in `bodies`, by path, and a page at every path below `/p/`."""

    def __init__(self) -> None:
        super().__init__(self._page)
        self.bodies: dict[str, bytes] = {}
        self.held: set[str] = set()
        """Paths that get no answer while they are in this set."""

    def pages(self, *names: object) -> Sequence[str]:
        """The URLs of pages."""
        return [f"{self.url}p/{name}" for name in names]

    async def _page(self, path: str) -> web.Response:
        await until("the test to let go of it", lambda: path not in self.held)
        if path.startswith("/moved"):
            return web.Response(status=301, headers={"Location": path.removeprefix("/moved")})
        if path in self.bodies:
            return web.Response(body=self.bodies[path])
        return html(path) if path.startswith("/p/") else web.Response(status=404)
