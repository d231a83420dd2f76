"""A finished crawl whose slow pages are still to be seeded, so that workers on it have time to come
and go."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from support.links import put_spider
from support.processes import Folder
from support.sites import Site, html, serving


@contextmanager
def slow_site(folder: Folder, takes_s: float = 0.3) -> Iterator[Site]:
    """A site with any number of pages, and its crawl `links`, which has found only the front
    page."""

    async def answer(path: str) -> web.Response:
        await asyncio.sleep(takes_s if path != "/" else 0)
        return html(f"<h1>{path}</h1>")

    with serving(Site(answer)) as site:
        put_spider(folder, [site], rate="none", robots=False, concurrency_per_host=32)
        ended = folder.shoal("crawl", "links.py")
        assert ended.code == 0, ended.err
        yield site


def seed(folder: Folder, site: Site, first: int, pages: int) -> None:
    """Seed `pages` more pages, from number `first` on."""
    urls = "".join(f"{site.url}{number}\n" for number in range(first, first + pages))
    ended = folder.shoal("seed", "links", "--file", "-", stdin=urls)
    assert ended.code == 0, ended.err


def all_found_once(folder: Folder, pages: int) -> bool:
    """Whether the items of the front page and of `pages` others are stored, each once."""
    found = Counter(item["url"] for item in folder.export("links"))
    return len(found) == pages + 1 and set(found.values()) == {1}
