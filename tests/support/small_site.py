"""A small site with one page for every possible outcome, and a spider that crawls it."""

from __future__ import annotations

from aiohttp import web

from support.processes import Folder
from support.sites import Site, html

SPIDER = """
from urllib.parse import urlsplit

from shoal import Item, Spider

class Thing(Item, key="path"):
    path: str
    size: int

class Small(Spider):
    name = "small"
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True
    allowed_hosts = ["127.0.0.1"]

    def parse(self, page):
        if page.css("h1::text").get() == "broken":
            raise ValueError("a broken page")
        path = urlsplit(page.url).path
        yield Thing(path=path, size=len(page.body))
        if path == "/a":
            yield {{"note": "seen"}}
        yield from page.follow_all("a")
"""

FRONT = (
    "/a?utm_source=front",
    "/a",
    "/gone",
    "/broken",
    "/moved",
    "/private",
    "http://no.example/",
)
THINGS = ["/", "/a", "/b", "/c", "/new"]
"""The keys of all items of kind Thing that a crawl finds, sorted."""


async def answer(path: str) -> web.Response:
    match path.partition("?")[0]:
        case "/robots.txt":
            return web.Response(text="User-agent: *\nDisallow: /private\n")
        case "/":
            return html(_links(*FRONT))
        case "/a":
            return html(_links("/b"))
        case "/b":
            return html(_links("/c"))
        case "/c" | "/new":
            return html("<title>The end</title>")
        case "/broken":
            return html("<h1>broken</h1>")
        case "/moved":
            return web.Response(status=301, headers={"Location": "/new"})
        case _:
            return html("no such page", 404)


def _links(*paths: str) -> str:
    return "".join(f'<a href="{path}"></a>' for path in paths)


def small_site() -> Site:
    return Site(answer)


def put_spider(folder: Folder, site: Site) -> None:
    """Write `small.py` for a site that is open."""
    folder.write("small.py", SPIDER.format(url=site.url))
