"""The yardstick: the same crawl as a bare loop, with nothing that makes a crawl safe or shared.

Uses aiohttp, Lexbor and uvloop, with a queue and a seen set in memory: no politeness, no retries,
nothing stored. can-ada joins the links: urllib's `urljoin` would raise the CPU time of a whole page
by half, and a slow yardstick would flatter Shoal. With --own-client it fetches with Shoal's client,
which takes less CPU than aiohttp. `python -m benchmarks.bare BASE_URL...` prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import aiohttp
import can_ada
import uvloop
from selectolax.lexbor import LexborHTMLParser

FIELDS = {"title": "h1", "sku": "span.sku", "price": "span.price", "stock": "span.stock"}


Get = Callable[[str], Awaitable[bytes]]
Client = Callable[[int], AbstractAsyncContextManager[Get]]


@asynccontextmanager
async def usual_client(concurrency: int) -> AsyncIterator[Get]:
    """Fetch with aiohttp."""
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector, raise_for_status=True) as session:

        async def get(url: str) -> bytes:
            async with session.get(url) as response:
                return await response.read()

        yield get


class BareLoop:
    """A crawl of everything that the start URLs lead to."""

    def __init__(self, start_urls: Sequence[str]) -> None:
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        for url in start_urls:
            self._queue.put_nowait(url)
        self._seen = set(start_urls)
        self.pages = 0
        self.items: list[dict[str, str]] = []

    async def run(self, client: Client, concurrency: int) -> None:
        """Crawl all pages that can be reached."""
        async with client(concurrency) as get, asyncio.TaskGroup() as group:
            loops = [group.create_task(self._loop(get)) for _ in range(concurrency)]
            await self._queue.join()
            for loop in loops:
                loop.cancel()

    async def _loop(self, get: Get) -> None:
        while True:
            url = await self._queue.get()
            self._read(url, await get(url))
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
    """Crawl, and print what it took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bare")
    parser.add_argument("base_urls", nargs="+")
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--own-client", action="store_true", help="Shoal's instead of aiohttp")
    args = parser.parse_args()
    client: Client = usual_client
    if args.own_client:
        from benchmarks.own_client import own_client as client  # Imported late: it takes memory.
    crawl = BareLoop([f"{base}/index.html" for base in args.base_urls])
    started = time.perf_counter()
    uvloop.run(crawl.run(client, args.concurrency))
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
