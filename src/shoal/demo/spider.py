"""The spider that crawls the demo shop.

    SHOAL_DEMO_URLS=http://127.0.0.1:8080/catalog?page=1 shoal crawl --allow-private \\
        shoal.demo.spider:ShopSpider
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from shoal.core.task import Task
from shoal.spider.items import Item
from shoal.spider.page import Page
from shoal.spider.spider import Spider

URLS_VARIABLE = "SHOAL_DEMO_URLS"
"""The variable that holds the start URLs, separated by commas. Every worker process reads it."""


class Product(Item, key="sku"):
    """What the shop sells."""

    sku: str
    title: str
    price: float


class ShopSpider(Spider):
    """Reads the catalogue and every product, and follows all links of the shop."""

    name = "shop"
    rate = "30/s"

    def start(self) -> Sequence[str]:
        """The `start_urls`, or else the URLs in the environment."""
        listed = os.environ.get(URLS_VARIABLE, "").split(",")
        return self.start_urls or [url.strip() for url in listed if url.strip()]

    def parse(self, page: Page) -> Iterator[Task]:
        """The front page and the pages of the catalogue."""
        yield from page.follow_all("li.product a", handler=self.product, priority=10)
        yield from page.follow_all("a.next, nav a, footer a")

    def product(self, page: Page) -> Iterator[Product | Task]:
        """A product's page. If its price is not a number, this raises, and the task fails."""
        yield Product(
            sku=page.css("span.sku::text").get() or "",
            title=page.css("h1::text").get() or "",
            price=float(page.css("span.price::text").get() or ""),
        )
        yield from page.follow_all("a.related", handler=self.product)
        yield from page.follow_all(".breadcrumbs a, nav a, footer a")


def spider_for(urls: Sequence[str]) -> type[ShopSpider]:
    """A subclass of the spider that starts at these URLs."""
    return type("ShopSpider", (ShopSpider,), {"start_urls": list(urls), "name": ShopSpider.name})
