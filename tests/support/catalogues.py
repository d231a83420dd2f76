"""A shop with a catalogue of numbered pages, and spiders for it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import web

from shoal import Catalogue, Page, Spider, Task
from support.sites import Site, html

PRODUCTS = 2
"""Products on each page of the catalogue."""

_LISTING = re.compile(r"/catalog\?page=(-?\d+)")


class ListingSite(Site):
    """A site that answers `/catalog?page=1` and so on. Tests may change it while it runs."""

    def __init__(self, pages: int, *, past_the_end: str = "gone", latency_s: float = 0.0) -> None:
        """`past_the_end`: what follows the last page: nothing (`gone`), an empty page (`empty`), or
        a redirect to page 1 (`back`)."""
        super().__init__(self._answer_in_time)
        self.pages = pages
        self.latency_s = latency_s
        self._past_the_end = past_the_end

    @property
    def template(self) -> str:
        """The URL of the catalogue's pages, with a placeholder for the number."""
        return f"{self.url}catalog?page={{page}}"

    def listed(self) -> list[int]:
        """The numbers of the catalogue's pages that were requested, in order."""
        return [int(found[1]) for path in self.paths if (found := _LISTING.fullmatch(path))]

    def products(self) -> set[str]:
        """The paths of the products that were requested."""
        return {path for path in self.paths if path.startswith("/product/")}

    async def _answer_in_time(self, path: str) -> web.Response:
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        return self.page(path)

    def page(self, path: str) -> web.Response:
        """The answer for a path."""
        listing = _LISTING.fullmatch(path)
        if listing is None:
            return html(f"<h1>{path}</h1>", 200 if path.startswith("/product/") else 404)
        number = int(listing[1])
        if 1 <= number <= self.pages:
            return html(listing_page(number, self.pages))
        if self._past_the_end == "back":
            return web.Response(status=302, headers={"Location": "/catalog?page=1"})
        return html("<p>nothing", 200 if self._past_the_end == "empty" else 404)


def listing_page(number: int, pages: int) -> str:
    """A page of the catalogue. It states the last page and the number of products."""
    first = (number - 1) * PRODUCTS + 1
    wares = range(first, first + PRODUCTS)
    parts = [f'<li><a href="/product/{ware}">{ware}</a></li>' for ware in wares]
    parts.append(f"<p class=count>{wares[0]}–{wares[-1]} of {pages * PRODUCTS:,}</p>")
    parts.append(f'<a class=last href="/catalog?page={pages}">»</a>')
    if number < pages:
        parts.append(f'<a class=next href="/catalog?page={number + 1}">next</a>')
    return "".join(parts)


def products_of(pages: int) -> set[str]:
    """The paths of all products of a catalogue with this many pages."""
    return {f"/product/{number}" for number in range(1, pages * PRODUCTS + 1)}


def page_of(body: str, url: str = "https://shop.example/catalog?page=1") -> Page:
    """A page as a handler sees it."""
    return Page(
        url=url,
        status=200,
        headers={"Content-Type": "text/html"},
        body=body.encode(),
        task=Task(url=url),
        fingerprint=bytes(8),
    )


class ShopSpider(Spider):
    """Reads listing pages and products."""

    name = "shop"
    rate = "none"
    robots = False
    allow_private = True

    def parse(self, page: Page) -> Iterator[Any]:
        yield {"page": page.meta["catalogue"]["page"]}
        yield page.follow_all("li a", handler=self.product)

    def product(self, page: Page) -> Iterator[Any]:
        yield {"product": page.css("h1::text").get()}


class NextSpider(ShopSpider):
    """Follows the `next` links from page to page instead."""

    def parse(self, page: Page) -> Iterator[Task]:
        yield from page.follow_all("a.next")


def spider_of(
    site: ListingSite, way: Mapping[str, Any], base: type[Spider] = ShopSpider, **options: Any
) -> type[Spider]:
    """A spider for the site's catalogue, whose pages it counts in the given way."""
    catalogue = Catalogue(site.template, **way, **options)
    return type("Shop", (base,), {"name": "shop", "catalogue": catalogue})
