"""The spiders of the benchmarks. `Bench` reads four fields and all links, as the bare loop does.

Environment: SHOAL_BENCH_URLS, the start URLs; SHOAL_BENCH_CLOCK, a folder in which every worker
notes when it read its first page, and the CPU time of the machine by then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

from benchmarks.procstat import busy_s
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
    concurrency_per_host = 1_000  # The bare loop has no such limit.
    has_begun = False

    def start(self) -> list[str]:
        return os.environ["SHOAL_BENCH_URLS"].split(",")

    def parse(self, page: Page) -> Iterator[Product | list[Task]]:
        if not self.has_begun:
            self.note_begin()
        sku = page.css("span.sku::text").get()
        if sku:
            yield self.product(page, sku)
        yield page.follow_all("a")

    def product(self, page: Page, sku: str) -> Product:
        """The product that a page shows."""
        return Product(
            sku=sku,
            title=page.css("h1::text").get() or "",
            price=page.css("span.price::text").get() or "",
            stock=page.css("span.stock::text").get() or "",
        )

    def note_begin(self) -> None:
        """Note the time of the first page, and the machine's CPU time by then, in a file."""
        self.has_begun = True
        if folder := os.environ.get("SHOAL_BENCH_CLOCK"):
            (Path(folder) / f"{os.getpid()}.began").write_text(f"{time.time()} {busy_s()}")


class Thorough(Bench):
    """Reads all properties of a product and digests the phrases of its description, as one does to
    find similar products. So most of the time goes into parsing."""

    def product(self, page: Page, sku: str) -> Product:
        product = super().product(page, sku)
        properties = {
            row.css("td.name::text").get(): (row.css("td.value::text").get(), row.css("i").get())
            for row in page.css("table.properties tr")
        }
        words = [
            word.strip(".,;").lower()
            for text in page.css("div.description *::text").getall()
            for word in text.split()
        ]
        phrases = {
            _digest(" ".join(words[at : at + size]))
            for size in (3, 5, 8)
            for at in range(len(words) - size + 1)
        }
        product.stock += f", {len(properties)} properties, {len(phrases)} phrases"
        return product


def _digest(phrase: str) -> bytes:
    return blake2b(phrase.encode(), digest_size=8).digest()


class Waiting(Spider):
    """For slow hosts with a low rate: keeps the title, and follows no links."""

    PER_SECOND: ClassVar[int] = 5
    name = "waiting"
    rate = f"{PER_SECOND}/s"
    robots = False

    def start(self) -> list[str]:
        return os.environ["SHOAL_BENCH_URLS"].split(",")

    def parse(self, page: Page) -> Iterator[dict[str, str]]:
        yield {"url": page.url, "title": page.css("h1::text").get() or ""}


class OneSite(Spider):
    """For one slow host: keeps the title, and follows no links. SHOAL_BENCH_URLS is the host,
    SHOAL_BENCH_PAGES the number of its pages."""

    name = "one-site"
    rate = "none"
    robots = False

    def start(self) -> Iterator[str]:
        base = os.environ["SHOAL_BENCH_URLS"]
        return (f"{base}/{number}" for number in range(int(os.environ["SHOAL_BENCH_PAGES"])))

    def parse(self, page: Page) -> Iterator[dict[str, str]]:
        yield {"url": page.url, "title": page.css("h1::text").get() or ""}
