"""The yardstick: the same crawl as a bare loop, with nothing that makes a crawl safe or shared.

aiohttp, Lexbor and uvloop, a queue and a seen set in memory: no politeness, no retries, nothing
stored. can-ada joins the links: urllib's `urljoin` takes half as much CPU again for a whole page,
and a slow yardstick would flatter us. `python -m benchmarks.bare BASE_URL...` prints one line of
JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from collections.abc import Sequence

import aiohttp
import can_ada
import uvloop
from selectolax.lexbor import LexborHTMLParser

FIELDS = {"title": "h1", "sku": "span.sku", "price": "span.price", "stock": "span.stock"}


class BareLoop:
    """A crawl of some sites."""

    def __init__(self, start_urls: Sequence[str]) -> None:
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        for url in start_urls:
            self._queue.put_nowait(url)
        self._seen = set(start_urls)
        self.pages = 0
        self.items: list[dict[str, str]] = []

    async def run(self, concurrency: int) -> None:
        """Crawl all that can be reached."""
        connector = aiohttp.TCPConnector(limit=concurrency)
        async with (
            aiohttp.ClientSession(connector=connector, raise_for_status=True) as session,
            asyncio.TaskGroup() as group,
        ):
            loops = [group.create_task(self._loop(session)) for _ in range(concurrency)]
            await self._queue.join()
            for loop in loops:
                loop.cancel()

    async def _loop(self, session: aiohttp.ClientSession) -> None:
        while True:
            url = await self._queue.get()
            async with session.get(url) as response:
                self._read(url, await response.read())
            self._queue.task_done()

    def _read(self, url: str, body: bytes) -> None:
        self.pages += 1
        tree = LexborHTMLParser(body)
        found = {name: tree.css_first(selector) for name, selector in FIELDS.items()}
        if found["sku"]:
            self.items.append({name: node.text() for name, node in found.items() if node})
        base = can_ada.parse(url)
        for node in tree.css("a[href]"):
            link = (base + (node.attributes["href"] or "")).href
            if link not in self._seen:
                self._seen.add(link)
                self._queue.put_nowait(link)


def main() -> None:
    """Crawl a site and print what it took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bare")
    parser.add_argument("base_urls", nargs="+")
    parser.add_argument("--concurrency", type=int, default=32)
    args = parser.parse_args()
    crawl = BareLoop([f"{base}/index.html" for base in args.base_urls])
    started = time.perf_counter()
    uvloop.run(crawl.run(args.concurrency))
    seconds = time.perf_counter() - started
    usage = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "pages": crawl.pages,
        "seconds": round(seconds, 3),
        "items": len(crawl.items),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
        "rss_mb": round(usage.ru_maxrss / 1024, 1),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
