"""The spiders of the Scrapy benchmarks. They read four fields and all links, as all others do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy.http import Response, TextResponse

QUEUED = 10_000


class Bench(scrapy.Spider):
    """Crawls the shop, and notes when it has read its first and its last page."""

    name = "bench"

    def __init__(self, base: str, **more: Any) -> None:
        super().__init__(start_urls=[f"{base}/index.html"], **more)
        self.pages = 0
        self.began_at = 0.0
        self.last_at = 0.0

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        self.pages += 1
        self.began_at = self.began_at or time.time()
        sku = response.css("span.sku::text").get()
        if sku:
            yield {
                "sku": sku,
                "title": response.css("h1::text").get(),
                "price": response.css("span.price::text").get(),
                "stock": response.css("span.stock::text").get(),
            }
        yield from response.follow_all(css="a", callback=self.parse)
        self.last_at = time.time()


class Queueing(Bench):
    """Finds many links on its first page. It is closed before it follows them."""

    name = "queueing"

    def parse(self, response: Response) -> Iterator[Any]:
        for number in range(QUEUED):
            yield response.follow(f"/product/{number}.html?from=catalog", callback=self.parse)
