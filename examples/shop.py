"""The spider of the README, with type annotations and a start URL from the environment.

Try it on the demo shop, which prints its address:

    python -m shoal.demo.shop --hosts 1
    SHOP_URL='http://127.0.0.1:PORT/catalog?page=1' shoal crawl examples/shop.py --allow-private
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from shoal import Item, Page, Spider, Task


class Product(Item, key="sku"):
    """A product. If it has no SKU, it is rejected: a key must not be empty."""

    sku: str
    title: str
    price: float


class Shop(Spider):
    """Reads the catalogue, page by page, and every product in it."""

    name = "shop"
    start_urls = (os.environ.get("SHOP_URL", "https://shop.example/catalog?page=1"),)
    rate = "2/s"

    def parse(self, page: Page) -> Iterator[Task]:
        """A page of the catalogue."""
        yield from page.follow_all("li.product a", handler=self.product, priority=10)
        yield from page.follow_all("a.next")

    def product(self, page: Page) -> Iterator[Product]:
        """A product. If it has no price, this raises, and the task is dead with the traceback."""
        yield Product(
            sku=page.css("span.sku::text").get(""),
            title=page.css("h1::text").get(""),
            price=float(page.css("span.price::text").get("")),
        )
