"""`python -m benchmarks.catalogue`: measures how soon all pages of a catalogue are known, and read.

A site answers every request after 100 ms. One spider follows "next" from page to page; the others
declare a catalogue, one for each way to count its pages. The rate is `none`, all else is default.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import msgspec
from aiohttp import web
from rich.table import Table

from benchmarks.report import keep, wide_console
from shoal import Catalogue, Page, Spider, Task, config
from shoal.fleet.crawl import run_crawl
from shoal.fleet.stores import stores_at
from shoal.frontier.admission import Admission
from shoal.runtime.eventloop import run
from shoal.spider.own_settings import settings_of

PER_PAGE = 20
NEXT = 'following "next"'
WAYS = {
    "last: the link to the last page": {"last": "a.last"},
    "total: a text": {"total": "p.count"},
    "items: probing": {"items": "li"},
}


class Run(msgspec.Struct):
    """Times of one crawl, in seconds since its start."""

    known_s: float
    """When the frontier knew every page. This includes the time to ask it."""
    read_s: float
    """When the crawl was over."""


class Listing(Spider):
    """Reads the pages of the catalogue and nothing else."""

    name = "catalogue"
    rate = "none"
    robots = False

    def parse(self, page: Page) -> Iterator[Any]:
        yield {"page": page.url, "products": len(page.css("li"))}
        yield page.follow_all("a.next") if self.start_urls else None


def spider_for(name: str, base: str) -> type[Spider]:
    """The spider that finds the pages in the way called `name`."""
    template = f"{base}/catalog?page={{page}}"
    members: dict[str, Any] = {"name": Listing.name}
    if name == NEXT:
        members["start_urls"] = (template.replace("{page}", "1"),)
    else:
        members["catalogue"] = Catalogue(template, **WAYS[name])  # type: ignore[arg-type]
    return type("Listing", (Listing,), members)


async def crawl(spider: type[Spider], base: str, pages: int, folder: str) -> Run:
    """Crawl with one worker in this process, on a new file."""
    store = {"frontier": f"sqlite:///{folder}/bench.db", "results": f"sqlite:///{folder}/bench.db"}
    settings = config.build(settings_of(spider) | store | {"allow_private": True})
    admission = Admission(settings.rules)
    async with stores_at(settings, archive=False) as stores:
        frontier = stores.frontier
        await frontier.start(spider.name, settings.rules)
        began = time.monotonic()
        running = asyncio.create_task(run_crawl(spider, settings, targets=None))
        for number in range(1, pages + 1):
            entry = admission.admitted_as(Task(url=f"{base}/catalog?page={number}"))
            while not await frontier.find(spider.name, entry) and not running.done():
                await asyncio.sleep(0.01)
        known_s = time.monotonic() - began
        summary = await running
    if summary.stats.done < pages:
        raise SystemExit(f"only {summary.stats.done} of {pages} pages were read")
    return Run(known_s, time.monotonic() - began)


@contextmanager
def served(pages: int, latency_s: float) -> Iterator[str]:
    """Serve the site from a process of its own. Gives the base URL."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(theirs, pages, latency_s), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(port: Connection, pages: int, latency_s: float) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        await asyncio.sleep(latency_s)
        number = int(request.query.get("page", "0"))
        if not 1 <= number <= pages:
            return web.Response(status=404)
        return web.Response(text=_page(number, pages), content_type="text/html")

    async def serve() -> None:
        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(serve())


def _page(number: int, pages: int) -> str:
    first = (number - 1) * PER_PAGE + 1
    wares = range(first, first + PER_PAGE)
    products = "".join(f'<li><a href="/product/{ware}">Product {ware}</a></li>' for ware in wares)
    onward = f'<a class="next" href="?page={number + 1}">next</a>' if number < pages else ""
    count = f'<p class="count">{first}-{wares[-1]} of {pages * PER_PAGE:,}</p>'
    return f'<ul>{products}</ul>{count}{onward}<a class="last" href="?page={pages}">last</a>'


def table_of(runs: dict[str, list[Run]], pages: int, latency_s: float) -> Table:
    """A table of medians, and of the ratios of each round to following "next"."""
    title = f"{pages} pages, {latency_s * 1000:.0f} ms per answer"
    table = Table("", "all known after s", 'of "next"', "all read after s", title=title)
    for name, own in runs.items():
        ratios = [run.known_s / slow.known_s for run, slow in zip(own, runs[NEXT], strict=True)]
        table.add_row(
            name,
            f"{statistics.median(run.known_s for run in own):.2f}",
            f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
            f"{statistics.median(run.read_s for run in own):.2f}",
        )
    return table


def main() -> None:
    """Measure, print, keep the raw figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.catalogue")
    parser.add_argument("--pages", type=int, default=400)
    parser.add_argument("--latency-ms", type=float, default=100.0)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    console, latency_s = wide_console(), args.latency_ms / 1000
    runs: dict[str, list[Run]] = {}
    with served(args.pages, latency_s) as base:
        for number in range(1, args.rounds + 1):
            for name in (NEXT, *WAYS):
                with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
                    own = run(crawl(spider_for(name, base), base, args.pages, folder))
                runs.setdefault(name, []).append(own)
                console.print(f"round {number}: {name}: all known after {own.known_s:.2f} s")
    console.print(table_of(runs, args.pages, latency_s))
    console.print(f"raw figures: {keep('catalogue', runs)}")


if __name__ == "__main__":
    main()
