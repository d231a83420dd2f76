"""Runs a whole crawl by Crawlee, in memory, in this process.

`python -m benchmarks.crawlee_crawl BASE_URL` prints one line of JSON: pages, items and seconds. It
runs in the environment of the peers, with the settings that were found to be the fastest:

- the same minimum and maximum of requests in flight, so that its load control never lowers them;
- no session pool, no retries, no log, state kept in memory only, uvloop;
- its own HTTP client, impit, and its own queue and data set in memory;
- links by `add_requests`: 1.15 times as fast as `enqueue_links` (1.11 to 1.31 in four rounds).
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from datetime import timedelta
from typing import Any
from urllib.parse import urljoin

import uvloop
from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import ParselCrawler
from crawlee.storage_clients import MemoryStorageClient

CONCURRENCY = 32
NEVER = timedelta(days=1)


class Counting:
    """The handler. It reads the same four fields and all links, as all contestants do."""

    def __init__(self) -> None:
        self.pages = 0
        self.items = 0

    async def __call__(self, context: Any) -> None:
        self.pages += 1
        page = context.selector
        sku = page.css("span.sku::text").get()
        if sku:
            self.items += 1
            item = {
                "sku": sku,
                "title": page.css("h1::text").get(),
                "price": page.css("span.price::text").get(),
                "stock": page.css("span.stock::text").get(),
            }
            await context.push_data(item)
        links = page.css("a::attr(href)").getall()
        await context.add_requests([urljoin(context.request.url, link) for link in links])


def crawler(handler: Counting) -> Any:
    """A crawler without anything that costs time and is not needed."""
    return ParselCrawler(
        request_handler=handler,
        configuration=Configuration(persist_state_interval=NEVER, purge_on_start=False),
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=CONCURRENCY,
            desired_concurrency=CONCURRENCY,
            max_concurrency=CONCURRENCY,
        ),
        use_session_pool=False,
        max_request_retries=0,
        configure_logging=False,
        status_message_logging_interval=NEVER,
    )


def main() -> None:
    """Crawl and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crawlee_crawl")
    parser.add_argument("base")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    handler = Counting()
    started = time.perf_counter()
    uvloop.run(crawler(handler).run([f"{args.base}/index.html"]))
    seconds = time.perf_counter() - started
    json.dump({"pages": handler.pages, "items": handler.items, "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    main()
