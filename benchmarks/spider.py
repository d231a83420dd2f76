"""The spider of the benchmarks: the same four fields and all links, as the bare loop reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from shoal import Item, Page, Spider, Task


class Product(Item, key="sku"):
    sku: str
    title: str
    price: str
    stock: str


class Bench(Spider):
    name = "bench"
    rate = "none"
    robots = False
    concurrency_per_host = 100  # The bare loop has no such limit.

    def start(self) -> list[str]:
        return os.environ["SHOAL_BENCH_URLS"].split(",")

    def parse(self, page: Page) -> Iterator[Product | list[Task]]:
        sku = page.css("span.sku::text").get()
        if sku:
            yield Product(
                sku=sku,
                title=page.css("h1::text").get() or "",
                price=page.css("span.price::text").get() or "",
                stock=page.css("span.stock::text").get() or "",
            )
        yield page.follow_all("a")
