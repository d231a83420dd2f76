"""The simplest crawl: a front page with links to numbered pages, and a spider that follows them."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from support.processes import Folder
from support.sites import Answer, Site, html
from support.until import until

SPIDER = """
from shoal import Spider

class Links(Spider):
    start_urls = {urls!r}
    allow_private = True
{settings}
    def parse(self, page):
        yield {{"url": page.url, "text": page.text}}
        yield from page.follow_all("a")

    def other(self, page):
        yield {{"other": page.url, "note": page.meta["note"]}}
"""


def put_spider(folder: Folder, sites: Sequence[Site], **settings: object) -> None:
    """Write `links.py`, whose crawl `links` starts at the sites' front pages."""
    lines = "".join(f"    {name} = {value!r}\n" for name, value in settings.items())
    urls = [site.url for site in sites]
    folder.write("links.py", SPIDER.format(urls=urls, settings=lines))


def numbered_pages(count: int, size: int = 0) -> Answer:
    """A front page with links to `count` pages, and these pages, with `size` letters in each."""

    front, *others = paths_of(count)
    known = set(others)

    async def answer(path: str) -> web.Response:
        if path == front:
            return html("\n".join(f'<a href="{link}"></a>' for link in others))
        if path in known:
            return html(f"<h1>{path}</h1>{'x' * size}")
        return html("no such page", 404)

    return answer


def paths_of(count: int) -> list[str]:
    """The paths of a site with `count` numbered pages: the front page, then `/1`, `/2`, ..."""
    return ["/", *(f"/{number}" for number in range(1, count + 1))]


class GatedSite(Site):
    """Answers only as many requests as a test allows; the others wait."""

    def __init__(self, count: int) -> None:
        super().__init__(self._gated)
        self._page = numbered_pages(count)
        self.allowed = 0
        """How many requests are answered. Tests raise it."""

    async def _gated(self, path: str) -> web.Response:
        number = len(self.hits)
        if path != "/robots.txt":
            await until(f"{path} to be allowed", lambda: number <= self.allowed)
        return await self._page(path)
